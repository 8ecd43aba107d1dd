//! Merges the sections of a partition into its part of the index.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io;

use sawmill_footer::RangeReader;

use super::entry::{ENTRY_BYTES, Entry, row_bytes, write_copy};
use super::runs::{Blocks, Section};

/// Fewest and most entries that are read of a section at once.
const MIN: u64 = 64;
const MAX: u64 = 32 << 10;

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

/// Where merged entries go: into the index in `file`, from the entry `first` on, with the places of copies
/// if rows are copied.
pub(super) struct Target<'a> {
    pub file: &'a File,
    pub first: u64,
    pub copies: bool,
}

/// Writes the entries of all sections in their order. Reads with buffers of `memory` bytes altogether.
pub(super) fn merge(
    files: &[File],
    sections: &[Section],
    target: &Target<'_>,
    memory: u64,
    check: &dyn Fn() -> io::Result<()>,
) -> io::Result<()> {
    let row_bytes = row_bytes(target.copies);
    let mut out = Blocks::new(target.file.try_clone()?, target.first * row_bytes as u64);
    let mut write = |entry: &Entry, copy: (u32, u64)| {
        let is_written = out.add(row_bytes, |block| {
            entry.write(block);
            if target.copies {
                write_copy(copy, block);
            }
        })?;
        if is_written { check() } else { Ok(()) }
    };
    let most = (memory / (ENTRY_BYTES * sections.len().max(1)) as u64).clamp(MIN, MAX);
    let mut streams = Vec::with_capacity(sections.len());
    for section in sections {
        let file = files.get(section.file).ok_or(io::ErrorKind::NotFound)?;
        let (buffer, copy) = (Vec::new(), section.copies);
        streams.push(Stream { file, section: *section, buffer, at: 0, most, copy, next_copy: copy });
    }
    if let [stream] = streams.as_mut_slice() {
        while let Some(entry) = stream.next()? {
            write(&entry, stream.copy())?;
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
        write(&entry, stream.copy())?;
        match stream.next()? {
            // The heap puts the new entry in its place when the guard is dropped.
            Some(next) => *least = Reverse((next, number)),
            None => drop(PeekMut::pop(least)),
        }
    }
    out.finish()
}
