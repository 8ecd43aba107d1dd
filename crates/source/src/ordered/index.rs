//! A finished index: the entries of all partitions, in the order in which rows are read.

use std::fs::File;

use sawmill_footer::RangeReader;
use sawmill_profile::Result;

use super::addressed::{RowAddress, Wanted};
use super::entry::{Entry, row_bytes};
use super::partition::Slot;
use super::workspace::IndexPlace;

/// A partition's part of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub slot: Slot,
    /// Its first entry, counted from the start of the index.
    pub first: u64,
    pub rows: u64,
    /// The bytes of its rows in the source.
    pub bytes: u64,
}

/// A finished index.
pub(super) struct Index {
    pub parts: Vec<Part>,
    entries: Entries,
}

/// Where the addresses of the rows are.
enum Entries {
    /// In a file; each with the place of the row's copy, if there are sorted copies of the rows, in other files.
    OnDisk { file: File, copies: Vec<File>, place: IndexPlace },
    /// Nowhere: the row groups are in order.
    RowGroups(Vec<Stretch>),
}

/// Rows that are consecutive both in the source and in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Its first row, counted from the start of the index.
    pub first: u64,
    pub rows: u64,
    /// The address of its first row; the addresses of the others follow.
    pub address: RowAddress,
}

impl Index {
    /// The index whose entries and copies are in these files.
    pub(super) fn on_disk(parts: Vec<Part>, file: File, copies: Vec<File>, place: IndexPlace) -> Self {
        Self { parts, entries: Entries::OnDisk { file, copies, place } }
    }

    /// The files of copies; empty if there are none.
    pub(super) fn copies(&self) -> &[File] {
        match &self.entries {
            Entries::OnDisk { copies, .. } => copies,
            Entries::RowGroups(_) => &[],
        }
    }

    /// The bytes of the index and of all copies on disk.
    pub(super) fn bytes(&self) -> u64 {
        match &self.entries {
            Entries::OnDisk { copies, .. } => {
                let has_copies = !copies.is_empty();
                let of_row = row_bytes(has_copies) as u64;
                let of_part = |part: &Part| part.rows * of_row + if has_copies { part.bytes } else { 0 };
                self.parts.iter().map(of_part).sum()
            }
            Entries::RowGroups(_) => 0,
        }
    }

    /// The index of a source whose row groups are in order.
    pub(super) fn of_row_groups(parts: Vec<Part>, stretches: Vec<Stretch>) -> Self {
        Self { parts, entries: Entries::RowGroups(stretches) }
    }

    /// Whether there are entries on disk.
    pub(super) fn is_on_disk(&self) -> bool {
        matches!(self.entries, Entries::OnDisk { .. })
    }

    /// Reads where a range of a partition's rows is.
    pub(super) fn read(&self, part: &Part, first: u64, found: &mut Wanted, rows: u64) -> Result<()> {
        let rows = rows.min(part.rows.saturating_sub(first));
        let from = part.first + first;
        let Wanted { addresses, copies: places } = found;
        addresses.clear();
        places.clear();
        match &self.entries {
            Entries::OnDisk { file, copies, place } => {
                let row_bytes = row_bytes(!copies.is_empty());
                let mut bytes = vec![0; rows as usize * row_bytes];
                let read = file.read_exact_at(from * row_bytes as u64, &mut bytes);
                read.map_err(|error| place.failed(&error))?;
                for (address, copy) in bytes.chunks_exact(row_bytes).filter_map(Entry::read_row) {
                    addresses.push(address);
                    places.extend(copy);
                }
            }
            Entries::RowGroups(stretches) => {
                let start = stretches.partition_point(|stretch| stretch.first + stretch.rows <= from);
                let of_stretch = |stretch: &Stretch| {
                    let (skipped, address) = (from.saturating_sub(stretch.first), stretch.address);
                    (skipped..stretch.rows).map(move |row| RowAddress { at: address.at + row, ..address })
                };
                let rows = stretches.iter().skip(start).flat_map(of_stretch).take(rows as usize);
                addresses.extend(rows);
            }
        }
        Ok(())
    }
}
