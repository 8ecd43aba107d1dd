//! Merges the sections of a partition into its part of the index.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use sawmill_footer::RangeReader;
use xxhash_rust::xxh3::Xxh3;

use super::entry::{ENTRY_BYTES, Entry};
use super::runs::Section;

/// Fewest and most entries that are read of a section at once.
const FEWEST: u64 = 64;
const MOST: u64 = 32 << 10;

/// Bytes that are written at once.
const BLOCK: usize = 256 << 10;

/// The entries of a section, one after the other.
struct Stream<'a> {
    file: &'a File,
    section: Section,
    buffer: Vec<u8>,
    at: usize,
    most: u64,
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
        Ok(entry)
    }
}

/// Writes the entries of all sections in their order to the file at `path`, from the entry `first` on.
/// Returns a hash of what was written. Reads with buffers of `memory` bytes altogether.
pub(super) fn merge(
    files: &[File],
    sections: &[Section],
    path: &Path,
    first: u64,
    memory: u64,
    check: &dyn Fn() -> io::Result<()>,
) -> io::Result<u64> {
    let mut out = Out::at(path, first)?;
    let most = (memory / (ENTRY_BYTES * sections.len().max(1)) as u64).clamp(FEWEST, MOST);
    let mut streams = Vec::with_capacity(sections.len());
    for section in sections {
        let file = files.get(section.file).ok_or(io::ErrorKind::NotFound)?;
        streams.push(Stream { file, section: *section, buffer: Vec::new(), at: 0, most });
    }
    if let [stream] = streams.as_mut_slice() {
        while let Some(entry) = stream.next()? {
            if out.add(&entry)? {
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
        if out.add(&entry)? {
            check()?;
        }
        match streams.get_mut(number).map(Stream::next).transpose()?.flatten() {
            // The heap puts the new entry in its place when the guard is dropped.
            Some(next) => *least = Reverse((next, number)),
            None => drop(PeekMut::pop(least)),
        }
    }
    out.finish()
}

/// The file that the merged entries go to.
struct Out {
    file: File,
    block: Vec<u8>,
    hash: Xxh3,
}

impl Out {
    fn at(path: &Path, first: u64) -> io::Result<Self> {
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.seek(SeekFrom::Start(first * ENTRY_BYTES as u64))?;
        Ok(Self { file, block: Vec::with_capacity(BLOCK), hash: Xxh3::new() })
    }

    /// Returns whether a block was written.
    fn add(&mut self, entry: &Entry) -> io::Result<bool> {
        entry.write(&mut self.block);
        let full = self.block.len() + ENTRY_BYTES > BLOCK;
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

    fn finish(mut self) -> io::Result<u64> {
        self.write()?;
        Ok(self.hash.digest())
    }
}
