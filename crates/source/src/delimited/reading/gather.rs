//! Gathers records from the sorted copies in an index: neighbours in one read, into one buffer in the wanted order.
//!
//! ```text
//! copies in the order of time ─ sorted by place ─▶ ▮▮▮▮   ▮▮▮   ▮▮▮▮▮     a stretch of each run is one read
//!                                                  └ copied to their places in the buffer
//! ```

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use sawmill_footer::RangeReader;
use sawmill_profile::{Error, Kind, Result};

use super::addressed::NEWLINE;
use crate::ordered::RowAddress;

/// Most bytes of one read, unless a single record has more.
const MAX: u64 = 256 << 10;

/// How many records were gathered, by how many reads, and in which time, by all threads.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    records: AtomicU64,
    reads: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Gathered {
    fn add(&self, records: u64, reads: u64, since: Instant) {
        self.records.fetch_add(records, Relaxed);
        self.reads.fetch_add(reads, Relaxed);
        let elapsed = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(elapsed, Relaxed);
    }
}

impl fmt::Display for Gathered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (records, reads) = (self.records.load(Relaxed), self.reads.load(Relaxed));
        let each = self.nanoseconds.load(Relaxed) / records.max(1);
        let copies = if records == 1 { "copy" } else { "copies" };
        let s = if reads == 1 { "" } else { "s" };
        write!(f, "{records} sorted {copies} in {reads} read{s} ({each} ns each)")
    }
}

/// Gathers records.
pub(crate) struct Gatherer<'a> {
    copies: &'a [File],
    gathered: &'a Gathered,
    /// The records in the wanted order, each with the end of its line.
    bytes: Vec<u8>,
    /// Where each record ends in `bytes`.
    ends: Vec<usize>,
    /// The records in the order of their places in the files, with their places in `bytes`.
    order: Vec<(RowAddress, usize)>,
    scratch: Vec<u8>,
}

impl<'a> Gatherer<'a> {
    /// Reads from `copies`, and counts records, reads and time in `gathered`.
    pub(crate) fn new(copies: &'a [File], gathered: &'a Gathered) -> Self {
        Self { copies, gathered, bytes: Vec::new(), ends: Vec::new(), order: Vec::new(), scratch: Vec::new() }
    }

    /// These of the gathered records, each with the end of its line.
    pub(crate) fn lines(&self, numbers: Range<usize>) -> &[u8] {
        let end_of = |before: usize| before.checked_sub(1).and_then(|last| self.ends.get(last)).copied();
        let (start, end) = (end_of(numbers.start), end_of(numbers.end));
        self.bytes.get(start.unwrap_or_default()..end.unwrap_or_default()).unwrap_or_default()
    }

    /// Gathers the records whose copies are at these addresses.
    pub(crate) fn gather(&mut self, addresses: &[RowAddress]) -> Result<()> {
        let started = Instant::now();
        self.lay_out(addresses);
        let (mut rest, mut reads) = (self.order.as_slice(), 0);
        while !rest.is_empty() {
            let (neighbours, others) = rest.split_at(neighbours(rest));
            let read = read_one(neighbours, self.copies, &mut self.bytes, &mut self.scratch);
            (rest, reads) = (others, reads + 1);
            read.map_err(|error| {
                Error::new(Kind::Changed, format!("the copies of the rows cannot be read: {error}"))
                    .at("the directory of the index")
                    .advise("run the same command again")
            })?;
        }
        self.gathered.add(addresses.len() as u64, reads, started);
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
}

/// How many of the first records follow one another in their file, within the bytes of one read.
fn neighbours(records: &[(RowAddress, usize)]) -> usize {
    let mut bytes = 0;
    let follows = |pair: &&[(RowAddress, usize)]| {
        let [(record, _), (next, _)] = pair else { return false };
        bytes += u64::from(record.len);
        record.file == next.file
            && record.at + u64::from(record.len) == next.at
            && bytes + u64::from(next.len) <= MAX
    };
    1 + records.windows(2).take_while(follows).count()
}

/// Reads records that follow one another.
fn read_one(
    records: &[(RowAddress, usize)],
    copies: &[File],
    bytes: &mut [u8],
    scratch: &mut Vec<u8>,
) -> io::Result<()> {
    let (Some((first, place)), Some((last, _))) = (records.first(), records.last()) else { return Ok(()) };
    let file = copies.get(first.file as usize).ok_or(io::ErrorKind::NotFound)?;
    if records.len() == 1
        && let Some(target) = bytes.get_mut(*place..*place + first.len as usize)
    {
        return file.read_exact_at(first.at, target);
    }
    scratch.resize((last.at - first.at) as usize + last.len as usize, 0);
    file.read_exact_at(first.at, scratch)?;
    for (record, place) in records {
        let start = (record.at - first.at) as usize;
        let found = scratch.get(start..start + record.len as usize);
        if let (Some(found), Some(target)) = (found, bytes.get_mut(*place..*place + record.len as usize)) {
            target.copy_from_slice(found);
        }
    }
    Ok(())
}
