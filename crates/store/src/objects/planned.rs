//! Reads planned ranges of an object: with requests of a good size, some of them ahead, within a budget.
//!
//! ```text
//! ranges ── fit into the budget ─────▶ merged over gaps, cut into requests, all started at the first read
//!    └───── do not ─▶ each stream cut into smaller requests; a read starts the one after its own and drops those before it
//! ```

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::Error;
use crate::objects::{Object, Pending};

/// Gaps up to this are read along: that is quicker than another request.
const GAP: u64 = 256 << 10;
/// The least bytes of a request.
const MIN: u64 = 64 << 10;
/// The bytes of a request. Only parts of them are needed.
const PART: u64 = 1 << 20;

/// How objects are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAhead {
    /// How many bytes each reader may hold or have requested.
    pub budget: u64,
    /// The most bytes of a request.
    pub request: u64,
}

impl Default for ReadAhead {
    fn default() -> Self {
        Self { budget: 64 << 20, request: 8 << 20 }
    }
}

/// The first error of an object, which all its readers share. Readers above wrap it in words of their own.
pub type Fault = Arc<OnceLock<Error>>;

/// The requests for ranges of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPlan {
    blocks: Vec<Block>,
    /// Whether the blocks fit into the budget together.
    whole: bool,
}

/// The bytes of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    range: Range<u64>,
    /// The stream that it is a part of: ranges that are read one after the other.
    of: usize,
}

impl RequestPlan {
    /// Plans to read all bytes of these ranges, each from start to end.
    pub fn all(ranges: &[Range<u64>], how: ReadAhead) -> Self {
        Self::streams(&each_alone(ranges), how)
    }

    /// Plans to read all bytes of these streams, of each the ranges in their order: for example some pages of
    /// several column chunks.
    pub fn streams(streams: &[Vec<Range<u64>>], how: ReadAhead) -> Self {
        let merged = merged(&streams.concat(), GAP);
        let bytes: u64 = merged.iter().map(|range| range.end - range.start).sum();
        if bytes <= how.budget {
            return Self { blocks: cut(merged.into_iter().enumerate(), how.request), whole: true };
        }
        Self { blocks: in_turn(streams, how, how.request), whole: false }
    }

    /// Plans to read parts of these streams, which are not known yet.
    pub fn parts(streams: &[Vec<Range<u64>>], how: ReadAhead) -> Self {
        Self { blocks: in_turn(streams, how, how.request.min(PART)), whole: false }
    }

    /// Whether all requests fit into the budget together, so that several readers can share their bytes.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// The number of requests.
    pub fn requests(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// The bytes of all requests.
    pub fn bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.range.end - block.range.start).sum()
    }
}

/// A stream for each range.
fn each_alone(ranges: &[Range<u64>]) -> Vec<Vec<Range<u64>>> {
    ranges.iter().map(|range| vec![range.clone()]).collect()
}

/// Requests small enough for every stream to hold two at a time within the budget.
fn in_turn(streams: &[Vec<Range<u64>>], how: ReadAhead, most: u64) -> Vec<Block> {
    let mut streams: Vec<Vec<Range<u64>>> =
        streams.iter().map(|stream| merged(stream, MIN)).filter(|stream| !stream.is_empty()).collect();
    streams.sort_unstable_by_key(|stream| stream.first().map(|range| range.start));
    let most = (how.budget / (2 * streams.len().max(1) as u64)).clamp(MIN, most.max(MIN));
    let ranges = streams.into_iter().enumerate();
    let ranges = ranges.flat_map(|(of, stream)| stream.into_iter().map(move |range| (of, range)));
    let mut blocks = cut(ranges, most);
    // Chunks may overlap in a file that is damaged.
    blocks.sort_by_key(|block| block.range.start);
    blocks
}

/// The ranges in their order; those that overlap, or have a gap of at most this many bytes, as one.
fn merged(ranges: &[Range<u64>], gap: u64) -> Vec<Range<u64>> {
    let mut ranges: Vec<_> = ranges.iter().filter(|range| !range.is_empty()).cloned().collect();
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start.saturating_sub(last.end) <= gap => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// The ranges cut into parts of equal size, none longer than `most`.
fn cut(ranges: impl Iterator<Item = (usize, Range<u64>)>, most: u64) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (of, range) in ranges {
        let length = range.end - range.start;
        let parts = length.div_ceil(most.max(1)).max(1);
        let mut start = range.start;
        for part in 1..=parts {
            // The product of a length and a number of parts fits into 128 bits.
            let end = range.start + (u128::from(length) * u128::from(part) / u128::from(parts)) as u64;
            blocks.push(Block { range: start..end, of });
            start = end;
        }
    }
    blocks
}

/// Reads an object by a plan. Other bytes take a request of their own. Several threads may read at once.
pub struct PlannedReader {
    object: Object,
    plan: RequestPlan,
    /// Each is locked while its bytes are waited for.
    slots: Vec<Mutex<Slot>>,
    begun: AtomicBool,
    fault: Fault,
}

enum Slot {
    Empty,
    Pending(Pending),
    Ready(Arc<Vec<u8>>),
}

impl PlannedReader {
    /// Returns a reader that has not requested anything yet.
    pub fn new(object: Object, plan: RequestPlan, fault: Fault) -> Self {
        let slots = plan.blocks.iter().map(|_| Mutex::new(Slot::Empty)).collect();
        Self { object, plan, slots, begun: AtomicBool::new(false), fault }
    }

    /// Starts the requests if all of them fit into the budget.
    pub fn begin(&self) {
        if self.plan.whole && !self.begun.swap(true, Relaxed) {
            for at in 0..self.slots.len() {
                self.start(at);
            }
        }
    }

    /// Starts the request of a block, unless it was.
    fn start(&self, at: usize) {
        if let Some(block) = self.plan.blocks.get(at) {
            let mut slot = self.slot(at);
            if matches!(*slot, Slot::Empty) {
                *slot = Slot::Pending(self.object.start(block.range.clone()));
            }
        }
    }

    /// The object.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// The object is shorter, has changed, or cannot be read.
    pub fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.saturating_add(buffer.len() as u64);
        if end > self.object.size() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (mut at, mut rest) = (offset, buffer);
        while !rest.is_empty() {
            if let Some(fault) = self.fault.get() {
                return Err(fault.clone().into());
            }
            let (from, bytes) = self.bytes_at(at, end).map_err(|error| {
                let _ = self.fault.set(error.clone());
                io::Error::from(error)
            })?;
            let found =
                usize::try_from(at - from).ok().and_then(|from| bytes.get(from..)).unwrap_or_default();
            let few = found.len().min(rest.len());
            if few == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let (now, later) = rest.split_at_mut(few);
            now.copy_from_slice(&found[..few]);
            (at, rest) = (at + few as u64, later);
        }
        Ok(())
    }

    /// Bytes that contain the one at `at`, and where they start; without a plan for it, those up to `end`.
    fn bytes_at(&self, at: u64, end: u64) -> Result<(u64, Arc<Vec<u8>>), Error> {
        let blocks = &self.plan.blocks;
        let place = blocks.partition_point(|block| block.range.end <= at);
        match blocks.get(place) {
            Some(block) if block.range.start <= at => Ok((block.range.start, self.block(place)?)),
            next => {
                let end = next.map_or(end, |next| end.min(next.range.start));
                Ok((at, Arc::new(self.object.start(at..end).wait()?)))
            }
        }
    }

    fn slot(&self, at: usize) -> MutexGuard<'_, Slot> {
        // A panic cannot leave it half-changed.
        self.slots[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn block(&self, place: usize) -> Result<Arc<Vec<u8>>, Error> {
        let blocks = &self.plan.blocks;
        let same = |other: usize| blocks.get(other).is_some_and(|block| block.of == blocks[place].of);
        if self.plan.whole {
            self.begin();
        } else {
            self.start(place);
            if same(place + 1) {
                self.start(place + 1);
            }
            for before in (0..place).rev().take_while(|before| same(*before)) {
                *self.slot(before) = Slot::Empty;
            }
        }
        let mut slot = self.slot(place);
        let bytes = match std::mem::replace(&mut *slot, Slot::Empty) {
            Slot::Ready(bytes) => bytes,
            Slot::Pending(pending) => Arc::new(pending.wait()?),
            Slot::Empty => Arc::new(self.object.start(blocks[place].range.clone()).wait()?),
        };
        *slot = Slot::Ready(Arc::clone(&bytes));
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(plan: &RequestPlan) -> Vec<Range<u64>> {
        plan.blocks.iter().map(|block| block.range.clone()).collect()
    }

    #[test]
    fn near_ranges_share_requests_and_long_ones_are_cut() {
        let how = ReadAhead { budget: 100 << 20, request: 8 << 20 };
        let mib = 1 << 20;
        let plan = RequestPlan::all(&[4..mib, mib + 1000..2 * mib, 9 * mib..29 * mib], how);
        assert!(plan.whole);
        assert_eq!(ranges(&plan)[0], 4..2 * mib);
        assert_eq!((plan.requests(), plan.bytes()), (4, 22 * mib - 4));
        assert!(plan.blocks.iter().all(|block| block.range.end - block.range.start <= how.request));
    }

    #[test]
    fn what_exceeds_the_budget_is_read_in_smaller_requests_column_by_column() {
        let how = ReadAhead { budget: 8 << 20, request: 8 << 20 };
        let mib: u64 = 1 << 20;
        let plan = RequestPlan::all(&[0..10 * mib, 10 * mib..20 * mib], how);
        assert!(
            !plan.whole && plan.blocks.iter().all(|block| block.range.end - block.range.start <= 2 * mib)
        );
        assert!(ranges(&plan).iter().all(|range| range.end <= 10 * mib || range.start >= 10 * mib));
        assert_eq!(plan.bytes(), 20 * mib);
    }

    #[test]
    fn of_pages_no_more_than_the_gaps_between_them_are_read_along() {
        let mib: u64 = 1 << 20;
        let (first, second) =
            (vec![0..100_000, 200_000..mib, 8 * mib..9 * mib], std::iter::once(20 * mib..21 * mib).collect());
        let streams = [first, second];
        let plan = RequestPlan::streams(&streams, ReadAhead::default());
        assert!(plan.whole);
        assert_eq!(ranges(&plan), [0..mib, 8 * mib..9 * mib, 20 * mib..21 * mib]);
        // Where they do not fit, the pages of a column follow each other.
        let plan = RequestPlan::streams(&streams, ReadAhead { budget: mib, request: 8 * mib });
        assert!(!plan.whole && plan.bytes() == 3 * mib - 100_000, "{plan:?}");
        assert!(plan.blocks.iter().all(|block| block.range.end - block.range.start <= mib / 4));
        assert_eq!(plan.blocks.iter().filter(|block| block.of == 1).count(), 4);
    }
}
