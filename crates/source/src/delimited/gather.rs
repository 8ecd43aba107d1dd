//! Gathers records from anywhere in the files: neighbours in one read, into one buffer in the wanted order.
//!
//! ```text
//! addresses in the order of time ─ sorted by place ─▶ ▮ ▮▮▮   ▮▮ ▮     neighbours are one read
//!                                                     └ copied to their places in the buffer
//! ```

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use super::addressed::NEWLINE;
use super::files::DelimitedFiles;
use crate::error::Result;
use crate::ordered::RowAddress;
use crate::parquet_files::reader::Readable;

/// Bytes between two records that are read rather than skipped: that many take no longer to copy than
/// another read.
const NEAR: u64 = 1 << 10;

/// Most bytes of one read, unless a single record has more.
const MOST: u64 = 256 << 10;

/// How many records were gathered, by how many reads, and in which time, by all threads.
#[derive(Debug, Default)]
pub(super) struct Ways {
    records: AtomicU64,
    reads: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Ways {
    fn add(&self, records: u64, reads: u64, since: Instant) {
        self.records.fetch_add(records, Relaxed);
        self.reads.fetch_add(reads, Relaxed);
        let elapsed = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(elapsed, Relaxed);
    }
}

impl fmt::Display for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (records, reads) = (self.records.load(Relaxed), self.reads.load(Relaxed));
        let each = self.nanoseconds.load(Relaxed) / records.max(1);
        write!(f, "{records} records in {reads} reads by pread ({each} ns each)")
    }
}

/// A read: neighbours in the file.
struct Group {
    file: u32,
    at: u64,
    len: usize,
    /// Its records, as a range of [`Gatherer::order`].
    first: usize,
    end: usize,
}

/// Gathers records.
pub(super) struct Gatherer<'a> {
    source: &'a DelimitedFiles,
    files: HashMap<u32, Readable>,
    /// The records in the wanted order, each with the end of its line.
    bytes: Vec<u8>,
    /// Where each record ends in `bytes`.
    ends: Vec<usize>,
    /// The records in the order of their places in the files, with their places in `bytes`.
    order: Vec<(RowAddress, usize)>,
    groups: Vec<Group>,
    scratch: Vec<u8>,
}

impl<'a> Gatherer<'a> {
    pub(super) fn new(source: &'a DelimitedFiles) -> Self {
        Self {
            source,
            files: HashMap::new(),
            bytes: Vec::new(),
            ends: Vec::new(),
            order: Vec::new(),
            groups: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The n-th gathered record, with the end of its line.
    pub(super) fn line(&self, number: usize) -> &[u8] {
        let start =
            number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        self.ends.get(number).and_then(|end| self.bytes.get(start..*end)).unwrap_or_default()
    }

    /// Gathers these records.
    pub(super) fn gather(&mut self, addresses: &[RowAddress]) -> Result<()> {
        self.lay_out(addresses);
        self.group();
        for group in &self.groups {
            if !self.files.contains_key(&group.file) {
                self.files.insert(group.file, self.source.file(group.file)?.reopen()?);
            }
        }
        let (records, reads) = (addresses.len() as u64, self.groups.len() as u64);
        let started = Instant::now();
        for group in &self.groups {
            let read = read_one(group, &self.files, &self.order, &mut self.bytes, &mut self.scratch);
            if let Err(error) = read {
                return Err(self.source.file(group.file)?.failed_read(&error));
            }
        }
        self.source.ways.add(records, reads, started);
        Ok(())
    }

    /// Makes room for the records and the ends of their lines.
    fn lay_out(&mut self, addresses: &[RowAddress]) {
        self.ends.clear();
        self.order.clear();
        let mut end = 0;
        for address in addresses {
            self.order.push((*address, end));
            end += address.len as usize + NEWLINE.len();
            self.ends.push(end);
        }
        self.bytes.resize(end, 0);
        for end in &self.ends {
            if let Some(newline) = self.bytes.get_mut(end - NEWLINE.len()..*end) {
                newline.copy_from_slice(NEWLINE);
            }
        }
        self.order.sort_unstable();
    }

    /// Puts neighbours together.
    fn group(&mut self) {
        self.groups.clear();
        for (number, (record, _)) in self.order.iter().enumerate() {
            let record_end = record.at + u64::from(record.len);
            if let Some(group) = self.groups.last_mut() {
                let end = group.at + group.len as u64;
                let new_end = record_end.max(end);
                let is_near = record.at.saturating_sub(end) <= NEAR && new_end - group.at <= MOST;
                if group.file == record.file && is_near {
                    (group.len, group.end) = ((new_end - group.at) as usize, number + 1);
                    continue;
                }
            }
            let (file, at, len) = (record.file, record.at, record.len as usize);
            self.groups.push(Group { file, at, len, first: number, end: number + 1 });
        }
    }
}

/// Reads a group by itself.
fn read_one(
    group: &Group,
    files: &HashMap<u32, Readable>,
    order: &[(RowAddress, usize)],
    bytes: &mut [u8],
    scratch: &mut Vec<u8>,
) -> io::Result<()> {
    let file = files.get(&group.file).ok_or(io::ErrorKind::NotFound)?;
    if group.end - group.first == 1
        && let Some((record, place)) = order.get(group.first)
        && let Some(target) = bytes.get_mut(*place..*place + record.len as usize)
    {
        return file.read_exact_at(record.at, target);
    }
    scratch.resize(group.len, 0);
    file.read_exact_at(group.at, scratch)?;
    place(group, order, scratch, bytes);
    Ok(())
}

/// Copies the records of a group to their places.
fn place(group: &Group, order: &[(RowAddress, usize)], found: &[u8], bytes: &mut [u8]) {
    for (record, place) in order.get(group.first..group.end).unwrap_or_default() {
        let start = (record.at - group.at) as usize;
        let found = found.get(start..start + record.len as usize);
        if let (Some(found), Some(target)) = (found, bytes.get_mut(*place..*place + record.len as usize)) {
            target.copy_from_slice(found);
        }
    }
}
