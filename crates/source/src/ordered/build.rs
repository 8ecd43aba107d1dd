//! Builds an index: scans the parts of a source on all cores, spills sorted runs, and merges them.

use std::fs::File;
use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use sawmill_profile::{Control, Error, Kind, Result};

use super::addressed::Addressed;
use super::entry::{ENTRY_BYTES, Entry, MAX_FILES};
use super::index::{Index, Part};
use super::keys::{Book, Keying};
use super::merge::{Target, merge};
use super::runs::{Runs, Section, Spill};
use super::workspace::IndexPlace;

/// The source of an index, and its place.
pub(super) struct Builder<'a> {
    pub addressed: &'a dyn Addressed,
    pub keying: &'a Keying,
    pub place: &'a IndexPlace,
}

impl Builder<'_> {
    /// Builds the index.
    pub(super) fn build(&self, control: &Control<'_>) -> Result<Index> {
        let (runs, book) = self.scan(control)?;
        let entries = self.place.create()?;
        let parts = self.merge(&entries, &runs, &book, control)?;
        Ok(Index::on_disk(parts, entries, runs.copies, self.place.clone()))
    }

    /// Reads the columns that decide the order, and writes sorted runs, with copies of the rows if they are ranges
    /// of bytes.
    fn scan(&self, control: &Control<'_>) -> Result<(Runs, Book)> {
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
                let mut spill = Spill::new(self.place, &runs, memory, source.rows(), row_bytes);
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
    fn merge(&self, entries: &File, runs: &Runs, book: &Book, control: &Control<'_>) -> Result<Vec<Part>> {
        let failed = |error: io::Error| match control.cancelled() {
            true => Error::cancelled(),
            false => self.place.failed(&error),
        };
        let none: &[Section] = &[];
        let mut slots: Vec<_> = book.slots().into_iter().enumerate().collect();
        slots.sort_unstable_by(|a, b| a.1.cmp(&b.1));
        let (mut parts, mut first) = (Vec::with_capacity(slots.len()), 0);
        for (number, slot) in slots {
            let of_slot = runs.sections.get(number).map_or(none, Vec::as_slice);
            let rows = of_slot.iter().map(|section| section.rows).sum();
            let bytes = runs.bytes.get(number).copied().unwrap_or_default();
            parts.push((Part { slot, first, rows, bytes }, of_slot));
            first += rows;
        }
        let copies = !runs.copies.is_empty();
        let memory = self.place.memory / threads() as u64;
        control.on_all_cores(
            "merge",
            &parts,
            || (),
            |(), (part, sections), control| {
                let check = || match control.cancelled() {
                    true => Err(io::ErrorKind::Interrupted.into()),
                    false => Ok(()),
                };
                let target = Target { file: entries, first: part.first, copies };
                merge(&runs.files, sections, &target, memory, &check).map_err(failed)
            },
        )?;
        Ok(parts.into_iter().map(|(part, _)| part).collect())
    }
}

/// Threads that build an index.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(8)
}
