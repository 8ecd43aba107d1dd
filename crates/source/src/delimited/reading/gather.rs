//! Gathers records from anywhere in the files: neighbours in one read, into one buffer in the wanted order.
//!
//! ```text
//! addresses in the order of time ─ sorted by place ─▶ ▮ ▮▮▮   ▮▮ ▮     neighbours are one read
//!                                                     └ copied to their places in the buffer
//! ```
//!
//! A few reads of each window are timed. If the disk has to be asked for them, a ring may be quicker, which has many
//! under way at a time: both ways are tried, and the quicker one is taken. Reads from the page cache are made one after
//! the other.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sawmill_footer::RangeReader;

use super::addressed::NEWLINE;
#[cfg(target_os = "linux")]
use super::ring::{MAX_LENGTH, Read, Ring};
use crate::delimited::content::Opened;
use crate::delimited::files::DelimitedFiles;
use crate::error::{Error, Kind, Result};
use crate::ordered::RowAddress;

/// Bytes between two records that are read rather than skipped: that many take no longer to copy than
/// another read.
const NEAR: u64 = 1 << 10;

/// Most bytes of one read, unless a single record has more.
const MAX: u64 = 256 << 10;

/// The fewest reads of a window that are worth a ring, and how many of them are timed.
const MANY: usize = 512;
const TIMED: usize = 32;

/// Reads that take longer on average are from the disk: from the page cache they take 1 µs, and from the quickest
/// disks 50 µs.
const SLOW: Duration = Duration::from_micros(8);

/// How many records were gathered, by how many reads, and in which time, by all threads.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    records: AtomicU64,
    reads: AtomicU64,
    /// The reads that a ring did.
    by_ring: AtomicU64,
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
        let what =
            if self.copies.load(Relaxed) { ("sorted copy", "sorted copies") } else { ("record", "records") };
        let way = match self.by_ring.load(Relaxed) {
            0 => "pread".to_owned(),
            by_ring if by_ring == reads => "io_uring".to_owned(),
            by_ring => format!("pread, {by_ring} of them by io_uring"),
        };
        let what = if records == 1 { what.0 } else { what.1 };
        let s = if reads == 1 { "" } else { "s" };
        write!(f, "{records} {what} in {reads} read{s} by {way} ({each} ns each)")
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
    /// Made for the first window that is slow; `Some(None)` if this machine has no ring.
    #[cfg(target_os = "linux")]
    ring: Option<Option<Ring>>,
    paces: Paces,
}

/// How long a read took by either way in the last such window, of those whose reads are slow.
#[derive(Debug, Default)]
struct Paces {
    ring: Option<Duration>,
    pread: Option<Duration>,
    windows: u32,
}

/// One window in this many takes the slower way, to see whether it still is.
const RETRIED: u32 = 16;

impl Paces {
    /// Whether the next window takes the ring.
    fn take_ring(&mut self) -> bool {
        self.windows += 1;
        match (self.ring, self.pread) {
            (None, _) => true,
            (_, None) => false,
            (Some(ring), Some(pread)) => (ring <= pread) != self.windows.is_multiple_of(RETRIED),
        }
    }

    fn note(&mut self, by_ring: bool, pace: Duration) {
        *(if by_ring { &mut self.ring } else { &mut self.pread }) = Some(pace);
    }
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
            #[cfg(target_os = "linux")]
            ring: None,
            paces: Paces::default(),
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
                self.files.opened.insert(group.file, self.source.file(group.file)?.open_again()?);
            }
        }
        self.source.ways.copies.store(!self.files.copies.is_empty(), Relaxed);
        let (records, reads) = (addresses.len() as u64, self.groups.len() as u64);
        let begun = Instant::now();
        let is_slow = self.is_slow()?;
        let started = Instant::now();
        let by_ring = is_slow && self.paces.take_ring() && self.read_by_ring()?;
        if !by_ring {
            for group in &self.groups {
                let read = read_one(group, &self.files, &self.order, &mut self.bytes, &mut self.scratch);
                read.map_err(|error| self.failed(group, &error))?;
            }
        }
        if is_slow {
            self.paces.note(by_ring, started.elapsed() / u32::try_from(reads).unwrap_or(u32::MAX).max(1));
        }
        self.source.ways.add(records, reads, begun);
        Ok(())
    }

    /// Times some of the reads, if they are many and a ring is possible. Returns whether the disk has to be asked for
    /// them.
    #[cfg(target_os = "linux")]
    fn is_slow(&mut self) -> Result<bool> {
        if self.groups.len() < MANY || matches!(self.ring, Some(None)) {
            return Ok(false);
        }
        let (started, step) = (Instant::now(), self.groups.len() / TIMED);
        for group in self.groups.iter().step_by(step).take(TIMED) {
            let read = read_one(group, &self.files, &self.order, &mut self.bytes, &mut self.scratch);
            read.map_err(|error| self.failed(group, &error))?;
        }
        Ok(started.elapsed() >= SLOW * TIMED as u32)
    }

    /// Reads all groups, the short ones by a ring. Returns whether it did.
    #[cfg(target_os = "linux")]
    fn read_by_ring(&mut self) -> Result<bool> {
        let is_short = |group: &&Group| group.len <= MAX_LENGTH && self.files.plain(group.file).is_some();
        let short: Vec<&Group> = self.groups.iter().filter(is_short).collect();
        if short.len() < MANY {
            return Ok(false);
        }
        let Some(ring) = self.ring.get_or_insert_with(|| Ring::new().ok()) else { return Ok(false) };
        let read =
            |group: &&Group| Some(Read { file: self.files.plain(group.file)?, at: group.at, len: group.len });
        let reads: Vec<Read<'_>> = short.iter().filter_map(read).collect();
        let (order, bytes) = (&self.order, &mut self.bytes);
        let done = ring.read(&reads, |number, found| {
            if let Some(group) = short.get(number) {
                place(group, order, found, bytes);
            }
        });
        if done.is_err() {
            // `pread` names the fault, unless the ring itself has one.
            self.ring = Some(None);
            return Ok(false);
        }
        self.source.ways.by_ring.fetch_add(short.len() as u64, Relaxed);
        for group in self.groups.iter().filter(|group| !is_short(group)) {
            let read = read_one(group, &self.files, &self.order, &mut self.bytes, &mut self.scratch);
            read.map_err(|error| self.failed(group, &error))?;
        }
        Ok(true)
    }

    #[cfg(not(target_os = "linux"))]
    fn is_slow(&self) -> Result<bool> {
        Ok(false)
    }

    #[cfg(not(target_os = "linux"))]
    fn read_by_ring(&self) -> Result<bool> {
        Ok(false)
    }

    fn failed(&self, group: &Group, error: &io::Error) -> Error {
        match (self.files.copies.is_empty(), self.source.file(group.file)) {
            (true, Ok(file)) => file.failed_read(error),
            (true, Err(error)) => error,
            (false, _) => {
                Error::new(Kind::Changed, format!("the copies of the rows cannot be read: {error}"))
                    .at("the directory of the index")
                    .advise("run the same command again")
            }
        }
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
                let is_near = record.at.saturating_sub(end) <= NEAR && new_end - group.at <= MAX;
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

/// The files to read: the source's files, or copies.
struct Files<'a> {
    opened: HashMap<u32, Opened>,
    copies: &'a [File],
}

impl Files<'_> {
    fn get(&self, number: u32) -> Option<&dyn RangeReader> {
        match self.copies.is_empty() {
            true => self.opened.get(&number).map(Opened::as_bytes),
            false => self.copies.get(number as usize).map(|file| file as &dyn RangeReader),
        }
    }

    /// The file itself, if its bytes are those to read.
    #[cfg(target_os = "linux")]
    fn plain(&self, number: u32) -> Option<&File> {
        match self.copies.is_empty() {
            true => self.opened.get(&number)?.file(),
            false => self.copies.get(number as usize),
        }
    }
}

/// Reads a group alone.
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
