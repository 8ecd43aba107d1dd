//! A finished index: the entries of all partitions, in the order in which rows are read.

use std::fs::{self, File};
use std::io;

use sawmill_footer::RangeReader;
use xxhash_rust::xxh3::Xxh3;

use super::addressed::RowAddress;
use super::directory::{Part, decode};
use super::entry::{ENTRY_BYTES, Entry};
use super::workspace::Workspace;
use crate::control::Control;
use crate::error::{Error, Kind, Result};

pub(super) const ENTRIES: &str = "entries";
pub(super) const DIRECTORY: &str = "directory";

/// A finished index.
pub(super) struct Index {
    pub parts: Vec<Part>,
    entries: Entries,
}

/// Where the addresses of the rows are.
enum Entries {
    /// In a file, which is removed with its directory when it is dropped.
    OnDisk { file: File, workspace: Workspace },
    /// Nowhere: the row groups are in order.
    RowGroups(Vec<Stretch>),
}

/// Consecutive rows of the source that are consecutive in the index, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Its first row, counted from the start of the index.
    pub first: u64,
    pub rows: u64,
    /// The address of its first row; those of the others follow.
    pub address: RowAddress,
}

impl Index {
    /// Opens the index in a directory.
    pub(super) fn open(workspace: Workspace, parts: Vec<Part>) -> Result<Self> {
        let file = File::open(workspace.file(ENTRIES)).map_err(|error| workspace.failed(&error))?;
        Ok(Self { parts, entries: Entries::OnDisk { file, workspace } })
    }

    /// The index of a source whose row groups are in order.
    pub(super) fn of_row_groups(parts: Vec<Part>, stretches: Vec<Stretch>) -> Self {
        Self { parts, entries: Entries::RowGroups(stretches) }
    }

    /// Whether there are entries on disk.
    pub(super) fn is_on_disk(&self) -> bool {
        matches!(self.entries, Entries::OnDisk { .. })
    }

    /// Returns the parts of an index that an earlier run has left, if it is whole and of this identity.
    pub(super) fn left_by_earlier(
        workspace: &Workspace,
        identity: &str,
        control: &Control<'_>,
    ) -> Result<Option<Vec<Part>>> {
        let Some(parts) = fs::read(workspace.file(DIRECTORY)).ok().and_then(|bytes| decode(&bytes, identity))
        else {
            return Ok(None);
        };
        let Ok(file) = File::open(workspace.file(ENTRIES)) else { return Ok(None) };
        let mut block = Vec::new();
        for part in &parts {
            let (mut at, end) =
                (part.first * ENTRY_BYTES as u64, (part.first + part.rows) * ENTRY_BYTES as u64);
            let mut hash = Xxh3::new();
            while at < end {
                control.check()?;
                block.resize((end - at).min(1 << 20) as usize, 0);
                if file.read_exact_at(at, &mut block).is_err() {
                    return Ok(None);
                }
                hash.update(&block);
                at += block.len() as u64;
            }
            if hash.digest() != part.hash {
                return Ok(None);
            }
        }
        Ok(Some(parts))
    }

    /// Reads the addresses of a range of a partition's rows.
    pub(super) fn read(
        &self,
        part: &Part,
        first: u64,
        addresses: &mut Vec<RowAddress>,
        rows: u64,
    ) -> Result<()> {
        let rows = rows.min(part.rows.saturating_sub(first));
        let from = part.first + first;
        addresses.clear();
        match &self.entries {
            Entries::OnDisk { file, workspace } => {
                let mut bytes = vec![0; rows as usize * ENTRY_BYTES];
                let read = file.read_exact_at(from * ENTRY_BYTES as u64, &mut bytes);
                read.map_err(|error| lost(workspace, &error))?;
                addresses.extend(Entry::all(&bytes).map(|entry| entry.address()));
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

fn lost(workspace: &Workspace, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::new(Kind::Changed, "another program has changed the index")
            .at(workspace.path().display().to_string())
            .advise("run the same command again"),
        _ => workspace.failed(error),
    }
}
