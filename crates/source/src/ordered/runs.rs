//! Sorted runs on disk: each thread fills a buffer with entries, sorts it and appends it to a file of its own.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::entry::{ENTRY_BYTES, Entry};
use super::workspace::Workspace;
use crate::error::Result;

/// Bytes that are written at once.
const BLOCK: usize = 256 << 10;

/// The entries of one partition in a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    /// The file that contains it.
    pub file: usize,
    /// Its first entry, counted from the start of the file.
    pub first: u64,
    pub rows: u64,
}

/// The sections of all runs.
#[derive(Default)]
pub(super) struct Runs {
    pub files: Vec<PathBuf>,
    /// The sections of each partition, by the numbers of the book.
    pub sections: Vec<Vec<Section>>,
    /// The bytes of the rows of each partition.
    pub bytes: Vec<u64>,
}

/// A thread's entries.
pub(super) struct Spill<'a> {
    workspace: &'a Workspace,
    runs: &'a Mutex<Runs>,
    /// Its file, and the file's number.
    file: Option<(File, usize)>,
    written: u64,
    buffer: Vec<(u32, Entry)>,
    most: usize,
    block: Vec<u8>,
}

impl<'a> Spill<'a> {
    /// One that holds `memory` bytes of entries.
    pub(super) fn new(workspace: &'a Workspace, runs: &'a Mutex<Runs>, memory: u64) -> Self {
        let most = usize::try_from(memory).unwrap_or(usize::MAX) / size_of::<(u32, Entry)>();
        let (file, buffer, block) = (None, Vec::new(), Vec::new());
        Self { workspace, runs, file, written: 0, buffer, most: most.max(1024), block }
    }

    /// Takes the entry of a row of a partition.
    pub(super) fn add(&mut self, partition: u32, entry: Entry) -> Result<()> {
        if self.buffer.len() >= self.most {
            self.write()?;
        }
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(self.most);
        }
        self.buffer.push((partition, entry));
        Ok(())
    }

    /// Sorts the buffer, and appends it as a run.
    pub(super) fn write(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.buffer.sort_unstable();
        let failed = |error: std::io::Error| self.workspace.failed(&error);
        let (file, number) = match &mut self.file {
            Some((file, number)) => (file, *number),
            None => {
                let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
                let number = runs.files.len();
                let path = self.workspace.file(&format!("runs-{number}"));
                let file = File::create(&path).map_err(failed)?;
                runs.files.push(path);
                (&mut self.file.insert((file, number)).0, number)
            }
        };
        let mut found: Vec<(usize, Section, u64)> = Vec::new();
        for same in self.buffer.chunk_by(|a, b| a.0 == b.0) {
            let mut bytes = 0;
            for (_, entry) in same {
                entry.write(&mut self.block);
                bytes += u64::from(entry.address().len);
                if self.block.len() + ENTRY_BYTES > BLOCK {
                    file.write_all(&self.block).map_err(failed)?;
                    self.block.clear();
                }
            }
            let section = Section { file: number, first: self.written, rows: same.len() as u64 };
            self.written += section.rows;
            found.push((same.first().map_or(0, |(partition, _)| *partition as usize), section, bytes));
        }
        file.write_all(&self.block).map_err(failed)?;
        self.block.clear();
        self.buffer.clear();
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
