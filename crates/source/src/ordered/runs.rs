//! Sorted runs on disk: each thread fills a buffer with entries, and with copies of the rows if they are kept,
//! sorts it and appends it to its own files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use sawmill_profile::Result;

use super::entry::{ENTRY_BYTES, Entry};
use super::workspace::IndexPlace;

/// The fewest bytes of copies in the buffer.
const MIN_COPIES: u64 = 64 << 10;

/// Bytes that are written at once.
const BLOCK: usize = 256 << 10;

/// A run of this many bytes is sorted and copied in the processor's cache: 20 % faster than one of 32 MiB.
const IN_CACHE: u64 = 4 << 20;

/// More runs than these would be read in short stretches, so longer runs take the memory that there is.
const MAX_RUNS: u64 = 512;

/// The entries of one partition in a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    /// The file that contains it.
    pub file: usize,
    /// Its first entry, counted from the start of the file.
    pub first: u64,
    pub rows: u64,
    /// Where the copy of its first row starts in the file of copies; the others follow one another.
    pub copies: u64,
}

/// The sections of all runs.
#[derive(Default)]
pub(super) struct Runs {
    pub files: Vec<File>,
    /// The files of copies, in the same order; empty if rows are not copied.
    pub copies: Vec<File>,
    /// The sections of each partition, by the numbers of the book.
    pub sections: Vec<Vec<Section>>,
    /// The bytes of the rows of each partition.
    pub bytes: Vec<u64>,
}

/// An entry in the buffer.
#[derive(Clone, Copy)]
struct Item {
    partition: u32,
    entry: Entry,
    /// Where the copy of the row starts in the buffer of copies.
    copy: u32,
}

/// A thread's entries.
pub(super) struct Spill<'a> {
    place: &'a IndexPlace,
    runs: &'a Mutex<Runs>,
    out: Option<Out>,
    items: Vec<Item>,
    most_items: usize,
    copies: Vec<u8>,
    /// How many bytes of copies the buffer holds; `None` if rows are not copied.
    most_copies: Option<usize>,
}

/// The files of a thread.
struct Out {
    number: usize,
    entries: Blocks,
    copies: Option<Blocks>,
}

impl<'a> Spill<'a> {
    /// The spill of one of the threads that together take `rows` rows. Its buffer has at most `memory` bytes of
    /// entries, and of copies of rows of about `row_bytes` bytes if that is known.
    pub(super) fn new(
        place: &'a IndexPlace,
        runs: &'a Mutex<Runs>,
        memory: u64,
        rows: u64,
        row_bytes: Option<u64>,
    ) -> Self {
        let of_item = size_of::<Item>() as u64;
        let of_row = of_item + row_bytes.unwrap_or_default();
        let memory = memory.min((rows.saturating_mul(of_row) / MAX_RUNS).max(IN_CACHE));
        let items = memory / of_row;
        let most_items = usize::try_from(items).unwrap_or(usize::MAX).max(1024);
        // Places in the buffer take 32 bits.
        let most_copies =
            row_bytes.map(|_| memory.saturating_sub(items * of_item).clamp(MIN_COPIES, 1 << 31) as usize);
        let (out, items, copies) = (None, Vec::new(), Vec::new());
        Self { place, runs, out, items, most_items, copies, most_copies }
    }

    /// Takes the entry of a row of a partition, and the row if rows are copied.
    pub(super) fn add(&mut self, partition: u32, entry: Entry, row: &[u8]) -> Result<()> {
        let is_full = |most: usize| self.copies.len() + row.len() > most && !self.items.is_empty();
        if self.items.len() >= self.most_items || self.most_copies.is_some_and(is_full) {
            self.write()?;
        }
        if self.items.capacity() == 0 {
            self.items.reserve_exact(self.most_items);
            self.copies.reserve_exact(self.most_copies.unwrap_or_default());
        }
        // Within `most_copies`, unless it is the first row.
        let copy = self.copies.len() as u32;
        if self.most_copies.is_some() {
            self.copies.extend_from_slice(row);
        }
        self.items.push(Item { partition, entry, copy });
        Ok(())
    }

    /// Writes the rest. No more rows follow.
    pub(super) fn finish(mut self) -> Result<()> {
        self.write()?;
        let files = self.out.take().map(|out| [Some(out.entries), out.copies]);
        let finished = files.into_iter().flatten().flatten().try_for_each(Blocks::finish);
        finished.map_err(|error| self.place.failed(&error))
    }

    /// Sorts the buffer, and appends it as a run.
    fn write(&mut self) -> Result<()> {
        if self.items.is_empty() {
            return Ok(());
        }
        self.items.sort_unstable_by(|a, b| {
            let (a, b) = (a.entry.rank(a.partition), b.entry.rank(b.partition));
            a.0.cmp(&b.0).then(a.1.cmp(&b.1))
        });
        let failed = |error: io::Error| self.place.failed(&error);
        let out = match &mut self.out {
            Some(out) => out,
            None => self.out.insert(Out::create(self.place, self.runs, self.most_copies.is_some())?),
        };
        let mut found: Vec<(usize, Section, u64)> = Vec::new();
        for same in self.items.chunk_by(|a, b| a.partition == b.partition) {
            let partition = same.first().map_or(0, |item| item.partition as usize);
            let first = out.entries.written / ENTRY_BYTES as u64;
            let copies = out.copies.as_ref().map_or(0, |copies| copies.written);
            let mut bytes = 0;
            for Item { entry, copy, .. } in same {
                out.entries.add(ENTRY_BYTES, |block| entry.write(block)).map_err(failed)?;
                bytes += entry.len();
                if let Some(copies) = &mut out.copies {
                    let start = *copy as usize;
                    let row = self.copies.get(start..start + entry.len() as usize).unwrap_or_default();
                    copies.add(row.len(), |block| block.extend_from_slice(row)).map_err(failed)?;
                }
            }
            let section = Section { file: out.number, first, rows: same.len() as u64, copies };
            found.push((partition, section, bytes));
        }
        self.items.clear();
        self.copies.clear();
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        for (partition, section, bytes) in found {
            if runs.sections.len() <= partition {
                runs.sections.resize_with(partition + 1, Vec::new);
                runs.bytes.resize(partition + 1, 0);
            }
            runs.sections[partition].push(section);
            runs.bytes[partition] += bytes;
        }
        Ok(())
    }
}

impl Out {
    fn create(place: &IndexPlace, runs: &Mutex<Runs>, copies: bool) -> Result<Self> {
        let mut runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
        let number = runs.files.len();
        let create = |listed: &mut Vec<File>| -> Result<Blocks> {
            let file = place.create()?;
            listed.push(file.try_clone().map_err(|error| place.failed(&error))?);
            Ok(Blocks::new(file, 0))
        };
        let entries = create(&mut runs.files)?;
        let copies = if copies { Some(create(&mut runs.copies)?) } else { None };
        Ok(Self { number, entries, copies })
    }
}

/// A file that is written in blocks.
pub(super) struct Blocks {
    file: File,
    /// Where the next block is written.
    at: u64,
    block: Vec<u8>,
    /// How many bytes were written, those included that wait in the block.
    pub written: u64,
}

impl Blocks {
    /// Writes from byte `at` of the file on.
    pub(super) fn new(file: File, at: u64) -> Self {
        Self { file, at, block: Vec::with_capacity(BLOCK), written: 0 }
    }

    /// Appends `bytes` bytes, which `write` appends to the block it is given. Returns whether a block was written.
    pub(super) fn add(&mut self, bytes: usize, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<bool> {
        let is_full = self.block.len() + bytes > BLOCK;
        if is_full {
            self.write()?;
            self.block.clear();
            self.block.shrink_to(BLOCK);
        }
        write(&mut self.block);
        self.written += bytes as u64;
        Ok(is_full)
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.block, self.at)?;
        self.at += self.block.len() as u64;
        Ok(())
    }

    /// Writes the rest.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.write()
    }
}
