//! Builds an index: scans the parts of a source on all cores, spills sorted runs, and merges them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use sawmill_profile::{Control, Error, Kind, Result};

use super::Order;
use super::addressed::Addressed;
use super::directory::{Listed, Part, encode};
use super::entry::{ENTRY_BYTES, Entry, MAX_FILES, row_bytes};
use super::index::{DIRECTORY, ENTRIES, Index};
use super::keys::{Book, Keying};
use super::merge::{Target, merge};
use super::runs::{Runs, Section, Spill};
use super::workspace::{IndexPlace, Workspace};
use crate::units::SourceFile;

/// The source of an index, and its place.
pub(super) struct Builder<'a> {
    pub addressed: &'a dyn Addressed,
    pub order: &'a Order,
    pub keying: &'a Keying,
    pub place: &'a IndexPlace,
}

impl Builder<'_> {
    /// Builds the index, or takes the one that a killed run of the same command has left. The flag says
    /// whether it did.
    pub(super) fn build(&self, control: &Control<'_>) -> Result<(Index, bool)> {
        let identity = self.identity();
        let workspace = Workspace::open(self.place, &self.command(), &identity)?;
        if let Some(listed) = Index::left_by_earlier(&workspace, &identity, control)? {
            return Ok((Index::open(workspace, listed)?, true));
        }
        workspace.clear()?;
        let (runs, book) = self.scan(&workspace, control)?;
        let parts = self.merge(&workspace, &runs, &book, control)?;
        for path in &runs.files {
            fs::remove_file(path).map_err(|error| workspace.failed(&error))?;
        }
        let listed = Listed { parts, copies: runs.copies };
        let written =
            workspace.create(DIRECTORY).and_then(|mut to| to.write_all(&encode(&identity, &listed)));
        written.map_err(|error| workspace.failed(&error))?;
        Ok((Index::open(workspace, listed)?, false))
    }

    /// The order and the names of the files, whatever they contain.
    fn command(&self) -> String {
        self.order_and(|file| file.name.clone())
    }

    /// Everything that decides what the index contains.
    fn identity(&self) -> String {
        self.order_and(|file| format!("{} {}", file.name, file.fingerprint))
    }

    fn order_and(&self, shown: impl Fn(&SourceFile) -> String) -> String {
        let source = self.addressed.source();
        let files: Vec<String> = source.files().iter().map(shown).collect();
        format!("{}\n{}\n{}", self.order.identity(), source.facts().mapping.to_text(), files.join("\n"))
    }

    /// Reads the columns that decide the order, and writes sorted runs, with copies of the rows if they are ranges
    /// of bytes.
    fn scan(&self, workspace: &Workspace, control: &Control<'_>) -> Result<(Runs, Book)> {
        let source = self.addressed.source();
        if source.files().len() > MAX_FILES {
            return Err(Error::new(Kind::Config, "there are too many files").advise("sort fewer at a time"));
        }
        let (runs, book) = (Mutex::new(Runs::default()), Book::default());
        let parts = self.addressed.parts();
        let threads = threads().min(parts.len().max(1));
        let memory = self.place.memory / threads as u64;
        let next = AtomicUsize::new(0);
        let workers: Vec<usize> = (0..threads).collect();
        let row_bytes = self.addressed.record_bytes().map(|bytes| bytes / source.rows().max(1));
        control.on_all_cores(
            "index",
            &workers,
            || (),
            |(), _, control| {
                let mut spill = Spill::new(workspace, &runs, memory, source.rows(), row_bytes);
                let (mut pages, mut numbers) = (book.pages(), Vec::new());
                while let Some(part) = parts.get(next.fetch_add(1, Relaxed)) {
                    self.addressed.scan(part, &self.keying.columns, control, &mut |scanned| {
                        control.check()?;
                        self.keying.partitions(scanned.batch, &mut pages, &mut numbers)?;
                        let times = self.keying.times(scanned.batch);
                        let addresses = scanned.addresses;
                        for (row, (address, partition)) in addresses.iter().zip(&numbers).enumerate() {
                            // Without a time, rows keep the order of the input.
                            let time =
                                times.as_ref().map_or(Some(0), |times| times.get(row).copied().flatten());
                            let copied = scanned.record(row).unwrap_or_default();
                            spill.add(*partition, Entry::new(time, *address), copied)?;
                        }
                        control.phase().add_rows(addresses.len() as u64);
                        control.phase().add_bytes((addresses.len() * ENTRY_BYTES) as u64);
                        Ok(())
                    })?;
                }
                spill.finish()
            },
        )?;
        Ok((runs.into_inner().unwrap_or_else(PoisonError::into_inner), book))
    }

    /// Merges the runs of each partition.
    fn merge(
        &self,
        workspace: &Workspace,
        runs: &Runs,
        book: &Book,
        control: &Control<'_>,
    ) -> Result<Vec<Part>> {
        let failed = |error: io::Error| match control.cancelled() {
            true => Error::cancelled(),
            false => workspace.failed(&error),
        };
        let none: &[Section] = &[];
        let mut slots: Vec<_> = book.slots().into_iter().enumerate().collect();
        slots.sort_unstable_by(|a, b| a.1.cmp(&b.1));
        let (mut parts, mut first) = (Vec::with_capacity(slots.len()), 0);
        for (number, slot) in slots {
            let of_slot = runs.sections.get(number).map_or(none, Vec::as_slice);
            let rows = of_slot.iter().map(|section| section.rows).sum();
            let bytes = runs.bytes.get(number).copied().unwrap_or_default();
            parts.push((Mutex::new(Part { slot, first, rows, bytes, hash: 0 }), of_slot));
            first += rows;
        }
        let copies = !runs.copies.is_empty();
        let entries = workspace.create(ENTRIES);
        entries.and_then(|file| file.set_len(first * row_bytes(copies) as u64)).map_err(failed)?;
        let files = runs.files.iter().map(File::open).collect::<io::Result<Vec<File>>>().map_err(failed)?;
        let memory = self.place.memory / threads() as u64;
        control.on_all_cores(
            "merge",
            &parts,
            || (),
            |(), (part, sections), control| {
                let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
                let check = || match control.cancelled() {
                    true => Err(io::ErrorKind::Interrupted.into()),
                    false => Ok(()),
                };
                let target = Target { directory: workspace.path(), first: part.first, copies };
                part.hash = merge(&files, sections, &target, memory, &check).map_err(failed)?;
                Ok(())
            },
        )?;
        let parts = parts.into_iter().map(|(part, _)| part.into_inner());
        Ok(parts.map(|part| part.unwrap_or_else(PoisonError::into_inner)).collect())
    }
}

/// Threads that build an index.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(8)
}
