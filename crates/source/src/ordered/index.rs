//! A finished index: the entries of all partitions, in the order in which rows are read.

use std::fs::{self, File};
use std::io;

use sawmill_footer::RangeReader;
use sawmill_profile::{Control, Error, Kind, Result};
use xxhash_rust::xxh3::Xxh3;

use super::addressed::{RowAddress, Wanted};
use super::directory::{CopyFile, Listed, Part, decode};
use super::entry::{Entry, row_bytes};
use super::workspace::Workspace;

pub(super) const ENTRIES: &str = "entries";
pub(super) const DIRECTORY: &str = "directory";

/// The name of a file of copies.
pub(super) fn file_of_copies(number: usize) -> String {
    format!("records-{number}")
}

/// A finished index.
pub(super) struct Index {
    pub parts: Vec<Part>,
    entries: Entries,
}

/// Where the addresses of the rows are.
enum Entries {
    /// In a file, which is removed with its directory when it is dropped; each with the place of the row's copy, if
    /// there are sorted copies of the rows, in other files of `copied` bytes.
    OnDisk { file: File, copies: Vec<File>, copied: u64, workspace: Workspace },
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
    /// Opens the index in a directory.
    pub(super) fn open(workspace: Workspace, listed: Listed) -> Result<Self> {
        let open = |name: &str| File::open(workspace.file(name)).map_err(|error| workspace.failed(&error));
        let file = open(ENTRIES)?;
        let copies = (0..listed.copies.len()).map(|number| open(&file_of_copies(number)));
        let copies = copies.collect::<Result<_>>()?;
        let copied = listed.copies.iter().map(|file| file.bytes).sum();
        Ok(Self { parts: listed.parts, entries: Entries::OnDisk { file, copies, copied, workspace } })
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
            Entries::OnDisk { copies, copied, .. } => {
                let rows: u64 = self.parts.iter().map(|part| part.rows).sum();
                rows * row_bytes(!copies.is_empty()) as u64 + copied
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

    /// Returns the content of the directory that an earlier run has left, if the index is whole and of this
    /// identity.
    pub(super) fn left_by_earlier(
        workspace: &Workspace,
        identity: &str,
        control: &Control<'_>,
    ) -> Result<Option<Listed>> {
        let listed = fs::read(workspace.file(DIRECTORY)).ok().and_then(|bytes| decode(&bytes, identity));
        let Some(listed) = listed else { return Ok(None) };
        let open = |name: &str| File::open(workspace.file(name)).ok();
        let Some(entries) = open(ENTRIES) else { return Ok(None) };
        let row_bytes = row_bytes(!listed.copies.is_empty()) as u64;
        for part in &listed.parts {
            let range = (part.first * row_bytes, part.rows * row_bytes);
            if hash_of(&entries, range, control)? != Some(part.hash) {
                return Ok(None);
            }
        }
        for (number, CopyFile { bytes, hash }) in listed.copies.iter().enumerate() {
            let Some(file) = open(&file_of_copies(number)) else { return Ok(None) };
            if hash_of(&file, (0, *bytes), control)? != Some(*hash) {
                return Ok(None);
            }
        }
        Ok(Some(listed))
    }

    /// Reads where a range of a partition's rows is.
    pub(super) fn read(&self, part: &Part, first: u64, found: &mut Wanted, rows: u64) -> Result<()> {
        let rows = rows.min(part.rows.saturating_sub(first));
        let from = part.first + first;
        let Wanted { addresses, copies: places } = found;
        addresses.clear();
        places.clear();
        match &self.entries {
            Entries::OnDisk { file, copies, workspace, .. } => {
                let row_bytes = row_bytes(!copies.is_empty());
                let mut bytes = vec![0; rows as usize * row_bytes];
                let read = file.read_exact_at(from * row_bytes as u64, &mut bytes);
                read.map_err(|error| lost(workspace, &error))?;
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

/// The hash of a range of a file, given by its start and length; `None` if the file does not have it.
fn hash_of(file: &File, (mut at, bytes): (u64, u64), control: &Control<'_>) -> Result<Option<u64>> {
    let (mut hash, end) = (Xxh3::new(), at + bytes);
    let mut block = Vec::new();
    while at < end {
        control.check()?;
        block.resize((end - at).min(1 << 20) as usize, 0);
        if file.read_exact_at(at, &mut block).is_err() {
            return Ok(None);
        }
        hash.update(&block);
        at += block.len() as u64;
    }
    Ok(Some(hash.digest()))
}

fn lost(workspace: &Workspace, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::new(Kind::Changed, "another program has changed the index")
            .at(workspace.path().display().to_string())
            .advise("run the same command again"),
        _ => workspace.failed(error),
    }
}
