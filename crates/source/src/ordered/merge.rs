//! Merges the sections of a partition into its part of the index.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use sawmill_footer::RangeReader;
use xxhash_rust::xxh3::Xxh3;

use super::entry::{COPY_BYTES, ENTRY_BYTES, Entry, write_copy};
use super::index::{COPIES, ENTRIES};
use super::runs::Section;

/// Fewest and most entries that are read of a section at once.
const MIN: u64 = 64;
const MAX: u64 = 32 << 10;

/// Bytes that are written at once.
const BLOCK: usize = 256 << 10;

/// The entries of a section, one after the other.
struct Stream<'a> {
    file: &'a File,
    section: Section,
    buffer: Vec<u8>,
    at: usize,
    most: u64,
    /// Where the copies of the last entry and of the next one start.
    copy: u64,
    next_copy: u64,
}

impl Stream<'_> {
    fn next(&mut self) -> io::Result<Option<Entry>> {
        if self.at == self.buffer.len() {
            let rows = self.section.rows.min(self.most);
            if rows == 0 {
                return Ok(None);
            }
            self.buffer.resize(rows as usize * ENTRY_BYTES, 0);
            self.file.read_exact_at(self.section.first * ENTRY_BYTES as u64, &mut self.buffer)?;
            self.section.first += rows;
            self.section.rows -= rows;
            self.at = 0;
        }
        let entry = self.buffer.get(self.at..).and_then(|rest| rest.first_chunk()).map(Entry::read);
        self.at += ENTRY_BYTES;
        self.copy = self.next_copy;
        self.next_copy += entry.map_or(0, |entry| entry.len());
        Ok(entry)
    }

    /// The file and the place of the last entry's copy.
    fn copy(&self) -> (u32, u64) {
        // There is a file for each thread.
        (self.section.file as u32, self.copy)
    }
}

/// Where merged entries go: into the index in `directory`, from the entry `first` on, with the places of copies
/// if rows are copied.
pub(super) struct Target<'a> {
    pub directory: &'a Path,
    pub first: u64,
    pub copies: bool,
}

/// Writes the entries of all sections in their order. Returns a hash of the written bytes. Reads with buffers
/// of `memory` bytes altogether.
pub(super) fn merge(
    files: &[File],
    sections: &[Section],
    target: &Target<'_>,
    memory: u64,
    check: &dyn Fn() -> io::Result<()>,
) -> io::Result<u64> {
    let mut out = Out::open(target)?;
    let most = (memory / (ENTRY_BYTES * sections.len().max(1)) as u64).clamp(MIN, MAX);
    let mut streams = Vec::with_capacity(sections.len());
    for section in sections {
        let file = files.get(section.file).ok_or(io::ErrorKind::NotFound)?;
        let (buffer, copy) = (Vec::new(), section.copies);
        streams.push(Stream { file, section: *section, buffer, at: 0, most, copy, next_copy: copy });
    }
    if let [stream] = streams.as_mut_slice() {
        while let Some(entry) = stream.next()? {
            if out.add(&entry, stream.copy())? {
                check()?;
            }
        }
        return out.finish();
    }
    let mut heap = BinaryHeap::with_capacity(streams.len());
    for (number, stream) in streams.iter_mut().enumerate() {
        heap.extend(stream.next()?.map(|entry| Reverse((entry, number))));
    }
    while let Some(mut least) = heap.peek_mut() {
        let Reverse((entry, number)) = *least;
        let Some(stream) = streams.get_mut(number) else { break };
        if out.add(&entry, stream.copy())? {
            check()?;
        }
        match stream.next()? {
            // The heap puts the new entry in its place when the guard is dropped.
            Some(next) => *least = Reverse((next, number)),
            None => drop(PeekMut::pop(least)),
        }
    }
    out.finish()
}

/// The hash of entries and of the places of their copies.
pub(super) fn both_hashes(entries: &Xxh3, copies: &Xxh3) -> u64 {
    entries.digest() ^ copies.digest().rotate_left(1)
}

/// The files that the merged entries go to.
struct Out {
    entries: Stretch,
    copies: Option<Stretch>,
}

/// A stretch of a file, written in blocks.
struct Stretch {
    file: File,
    block: Vec<u8>,
    hash: Xxh3,
}

impl Out {
    fn open(target: &Target<'_>) -> io::Result<Self> {
        let open =
            |name: &str, bytes: usize| Stretch::at(&target.directory.join(name), target.first * bytes as u64);
        let copies = if target.copies { Some(open(COPIES, COPY_BYTES)?) } else { None };
        Ok(Self { entries: open(ENTRIES, ENTRY_BYTES)?, copies })
    }

    /// Returns whether a block was written.
    fn add(&mut self, entry: &Entry, (file, at): (u32, u64)) -> io::Result<bool> {
        if let Some(copies) = &mut self.copies {
            write_copy(file, at, &mut copies.block);
            copies.write_if_full(COPY_BYTES)?;
        }
        entry.write(&mut self.entries.block);
        self.entries.write_if_full(ENTRY_BYTES)
    }

    fn finish(mut self) -> io::Result<u64> {
        self.entries.write()?;
        let Some(mut copies) = self.copies else { return Ok(self.entries.hash.digest()) };
        copies.write()?;
        Ok(both_hashes(&self.entries.hash, &copies.hash))
    }
}

impl Stretch {
    fn at(path: &Path, place: u64) -> io::Result<Self> {
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.seek(SeekFrom::Start(place))?;
        Ok(Self { file, block: Vec::with_capacity(BLOCK), hash: Xxh3::new() })
    }

    fn write_if_full(&mut self, next: usize) -> io::Result<bool> {
        let full = self.block.len() + next > BLOCK;
        if full {
            self.write()?;
        }
        Ok(full)
    }

    fn write(&mut self) -> io::Result<()> {
        self.hash.update(&self.block);
        self.file.write_all(&self.block)?;
        self.block.clear();
        Ok(())
    }
}
