//! A finished index: the entries of all partitions, in the order in which rows are read.

use std::fs::{self, File};
use std::io;

use sawmill_footer::RangeReader;
use sawmill_profile::{Control, Error, Kind, Result};
use xxhash_rust::xxh3::Xxh3;

use super::addressed::RowAddress;
use super::directory::{CopyFile, Listed, Part, decode};
use super::entry::{COPY_BYTES, ENTRY_BYTES, Entry, copies};
use super::merge::both_hashes;
use super::workspace::Workspace;

pub(super) const ENTRIES: &str = "entries";
pub(super) const DIRECTORY: &str = "directory";
/// Where the copy of each row is, in the order of the entries.
pub(super) const COPIES: &str = "copies";

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
    /// In a file, which is removed with its directory when it is dropped.
    OnDisk { file: File, copies: Option<Copies>, workspace: Workspace },
    /// Nowhere: the row groups are in order.
    RowGroups(Vec<Stretch>),
}

/// Sorted copies of the rows.
struct Copies {
    /// Where the copy of each row is.
    places: File,
    files: Vec<File>,
    bytes: u64,
}

/// The rows of a stretch of the index.
#[derive(Default)]
pub(super) struct Found {
    pub addresses: Vec<RowAddress>,
    /// Where their copies are; empty if there are none.
    pub copies: Vec<RowAddress>,
}

impl Found {
    pub(super) fn truncate(&mut self, rows: usize) {
        self.addresses.truncate(rows);
        self.copies.truncate(rows);
    }
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
        let copies = match listed.copies.is_empty() {
            true => None,
            false => Some(Copies {
                places: open(COPIES)?,
                files: (0..listed.copies.len())
                    .map(|number| open(&file_of_copies(number)))
                    .collect::<Result<_>>()?,
                bytes: listed.copies.iter().map(|file| file.bytes).sum(),
            }),
        };
        Ok(Self { parts: listed.parts, entries: Entries::OnDisk { file, copies, workspace } })
    }

    /// The files of copies; empty if there are none.
    pub(super) fn copies(&self) -> &[File] {
        self.sorted_copies().map_or(&[], |copies| &copies.files)
    }

    /// The bytes of all copies.
    pub(super) fn copied_bytes(&self) -> u64 {
        self.sorted_copies().map_or(0, |copies| copies.bytes)
    }

    fn sorted_copies(&self) -> Option<&Copies> {
        match &self.entries {
            Entries::OnDisk { copies, .. } => copies.as_ref(),
            Entries::RowGroups(_) => None,
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
        let places = open(COPIES);
        for part in &listed.parts {
            let mut hash = Xxh3::new();
            let of_entries = (part.first * ENTRY_BYTES as u64, part.rows * ENTRY_BYTES as u64);
            let mut is_there = add_hash(&mut hash, &entries, of_entries, control)?;
            let mut digest = hash.digest();
            if !listed.copies.is_empty() {
                let Some(places) = &places else { return Ok(None) };
                let of_places = (part.first * COPY_BYTES as u64, part.rows * COPY_BYTES as u64);
                let mut of_copies = Xxh3::new();
                is_there &= add_hash(&mut of_copies, places, of_places, control)?;
                digest = both_hashes(&hash, &of_copies);
            }
            if !is_there || digest != part.hash {
                return Ok(None);
            }
        }
        for (number, CopyFile { bytes, hash }) in listed.copies.iter().enumerate() {
            let Some(file) = open(&file_of_copies(number)) else { return Ok(None) };
            let mut found = Xxh3::new();
            if !add_hash(&mut found, &file, (0, *bytes), control)? || found.digest() != *hash {
                return Ok(None);
            }
        }
        Ok(Some(listed))
    }

    /// Reads where a range of a partition's rows is.
    pub(super) fn read(&self, part: &Part, first: u64, found: &mut Found, rows: u64) -> Result<()> {
        let rows = rows.min(part.rows.saturating_sub(first));
        let from = part.first + first;
        let Found { addresses, copies: places } = found;
        addresses.clear();
        places.clear();
        match &self.entries {
            Entries::OnDisk { file, copies: of_rows, workspace } => {
                let mut bytes = vec![0; rows as usize * ENTRY_BYTES];
                let read = file.read_exact_at(from * ENTRY_BYTES as u64, &mut bytes);
                read.map_err(|error| lost(workspace, &error))?;
                addresses.extend(Entry::all(&bytes).map(|entry| entry.address()));
                if let Some(of_rows) = of_rows {
                    bytes.resize(rows as usize * COPY_BYTES, 0);
                    let read = of_rows.places.read_exact_at(from * COPY_BYTES as u64, &mut bytes);
                    read.map_err(|error| lost(workspace, &error))?;
                    let rows = copies(&bytes).zip(addresses.iter());
                    places.extend(rows.map(|((file, at), row)| RowAddress { file, at, len: row.len }));
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

/// Adds a range of a file, given by its start and length, to a hash. Returns whether the file has it.
fn add_hash(
    hash: &mut Xxh3,
    file: &File,
    (mut at, bytes): (u64, u64),
    control: &Control<'_>,
) -> Result<bool> {
    let end = at + bytes;
    let mut block = Vec::new();
    while at < end {
        control.check()?;
        block.resize((end - at).min(1 << 20) as usize, 0);
        if file.read_exact_at(at, &mut block).is_err() {
            return Ok(false);
        }
        hash.update(&block);
        at += block.len() as u64;
    }
    Ok(true)
}

fn lost(workspace: &Workspace, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::new(Kind::Changed, "another program has changed the index")
            .at(workspace.path().display().to_string())
            .advise("run the same command again"),
        _ => workspace.failed(error),
    }
}
