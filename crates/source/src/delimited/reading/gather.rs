//! Gathers records from anywhere in the files: neighbours in one read, into one buffer in the wanted order.
//!
//! ```text
//! addresses in the order of time ─ sorted by place ─▶ ▮ ▮▮▮   ▮▮ ▮     neighbours are one read
//!                                                     └ copied to their places in the buffer
//! ```

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use sawmill_footer::RangeReader;

use super::addressed::NEWLINE;
use crate::delimited::files::DelimitedFiles;
use crate::error::{Error, Kind, Result};
use crate::ordered::RowAddress;
use crate::parquet_files::reader::Readable;

/// Bytes between two records that are read rather than skipped: that many take no longer to copy than
/// another read.
const NEAR: u64 = 1 << 10;

/// Most bytes of one read, unless a single record has more.
const MOST: u64 = 256 << 10;

/// How many records were gathered, by how many reads, and in which time, by all threads.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    records: AtomicU64,
    reads: AtomicU64,
    nanoseconds: AtomicU64,
    /// Whether they were sorted copies.
    copies: AtomicBool,
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
        let what = if self.copies.load(Relaxed) { "sorted copies" } else { "records" };
        write!(f, "{records} {what} in {reads} reads by pread ({each} ns each)")
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
pub(crate) struct Gatherer<'a> {
    source: &'a DelimitedFiles,
    files: Files<'a>,
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
    /// One that reads from `copies`, unless that is empty.
    pub(crate) fn new(source: &'a DelimitedFiles, copies: &'a [File]) -> Self {
        Self {
            source,
            files: Files { opened: HashMap::new(), copies },
            bytes: Vec::new(),
            ends: Vec::new(),
            order: Vec::new(),
            groups: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// These of the gathered records, each with the end of its line.
    pub(crate) fn lines(&self, numbers: Range<usize>) -> &[u8] {
        let end_of = |before: usize| before.checked_sub(1).and_then(|last| self.ends.get(last)).copied();
        let (start, end) = (end_of(numbers.start), end_of(numbers.end));
        self.bytes.get(start.unwrap_or_default()..end.unwrap_or_default()).unwrap_or_default()
    }

    /// Gathers these records.
    pub(crate) fn gather(&mut self, addresses: &[RowAddress]) -> Result<()> {
        self.lay_out(addresses);
        self.group();
        for group in &self.groups {
            if self.files.copies.is_empty() && !self.files.opened.contains_key(&group.file) {
                self.files.opened.insert(group.file, self.source.file(group.file)?.reopen()?);
            }
        }
        self.source.ways.copies.store(!self.files.copies.is_empty(), Relaxed);
        let (records, reads) = (addresses.len() as u64, self.groups.len() as u64);
        let started = Instant::now();
        for group in &self.groups {
            let read = read_one(group, &self.files, &self.order, &mut self.bytes, &mut self.scratch);
            if let Err(error) = read {
                return Err(match self.files.copies.is_empty() {
                    true => self.source.file(group.file)?.failed_read(&error),
                    false => {
                        Error::new(Kind::Changed, format!("the copies of the rows cannot be read: {error}"))
                            .at("the directory of the index")
                            .advise("run the same command again")
                    }
                });
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
        let place = |record: &RowAddress| u128::from(record.file) << 64 | u128::from(record.at);
        self.order.sort_unstable_by_key(|(record, _)| place(record));
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

/// The files to read: those of the source, or those of copies.
struct Files<'a> {
    opened: HashMap<u32, Readable>,
    copies: &'a [File],
}

impl Files<'_> {
    fn get(&self, number: u32) -> Option<&dyn RangeReader> {
        match self.copies.is_empty() {
            true => self.opened.get(&number).map(|file| &**file as &dyn RangeReader),
            false => self.copies.get(number as usize).map(|file| file as &dyn RangeReader),
        }
    }
}

/// Reads a group by itself.
fn read_one(
    group: &Group,
    files: &Files<'_>,
    order: &[(RowAddress, usize)],
    bytes: &mut [u8],
    scratch: &mut Vec<u8>,
) -> io::Result<()> {
    let file = files.get(group.file).ok_or(io::ErrorKind::NotFound)?;
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
