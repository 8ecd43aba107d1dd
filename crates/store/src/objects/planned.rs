//! Reads planned ranges of an object: with requests of a good size, some of them ahead, within a budget.
//!
//! ```text
//! ranges ── fit into the budget ─────▶ merged over gaps, cut into requests, all started at the first read
//!    └───── do not ─▶ each cut into smaller requests; a read starts the one after its own and drops those before it
//! ```

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::Error;
use crate::objects::{Object, Pending};

/// Gaps up to this are read along: that is quicker than another request.
const GAP: u64 = 256 << 10;
/// The least bytes of a request.
const LEAST: u64 = 64 << 10;
/// The bytes of a request of which only parts are needed.
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
    /// The range that it is a part of.
    of: usize,
}

impl RequestPlan {
    /// Plans to read all bytes of these ranges.
    pub fn all(ranges: &[Range<u64>], how: ReadAhead) -> Self {
        let merged = merged(ranges, GAP);
        let bytes: u64 = merged.iter().map(|range| range.end - range.start).sum();
        if bytes <= how.budget {
            return Self { blocks: cut(&merged, how.request), whole: true };
        }
        let merged = self::merged(ranges, 0);
        let streams = 2 * merged.len().max(1) as u64;
        Self {
            blocks: cut(&merged, (how.budget / streams).clamp(LEAST, how.request.max(LEAST))),
            whole: false,
        }
    }

    /// Plans to read only parts of these ranges, which are not known yet.
    pub fn parts(ranges: &[Range<u64>], how: ReadAhead) -> Self {
        let merged = merged(ranges, 0);
        let streams = 2 * merged.len().max(1) as u64;
        let most = how.request.clamp(LEAST, PART);
        Self { blocks: cut(&merged, (how.budget / streams).clamp(LEAST, most)), whole: false }
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

/// The ranges in their order; those that overlap, or have a gap of at most this many bytes, as one.
fn merged(ranges: &[Range<u64>], gap: u64) -> Vec<Range<u64>> {
    let mut ranges: Vec<_> = ranges.iter().filter(|range| !range.is_empty()).cloned().collect();
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            // Ranges that only touch stay apart unless gaps are read along.
            Some(last) if range.start < last.end || (gap > 0 && range.start - last.end <= gap) => {
                last.end = last.end.max(range.end);
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// The ranges cut into parts of equal size, none longer than `most`.
fn cut(ranges: &[Range<u64>], most: u64) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (of, range) in ranges.iter().enumerate() {
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

/// Reads an object by a plan. Other bytes take a request of their own.
pub struct PlannedReader {
    object: Object,
    plan: RequestPlan,
    slots: Mutex<Vec<Slot>>,
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
        let slots = plan.blocks.iter().map(|_| Slot::Empty).collect();
        Self { object, plan, slots: Mutex::new(slots), fault }
    }

    /// Starts the requests if all of them fit into the budget.
    pub fn begin(&self) {
        if self.plan.whole {
            let mut slots = self.slots();
            for (slot, block) in slots.iter_mut().zip(&self.plan.blocks) {
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

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        // A panic cannot leave them half-changed.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn block(&self, place: usize) -> Result<Arc<Vec<u8>>, Error> {
        let blocks = &self.plan.blocks;
        let mut slots = self.slots();
        let same = |other: usize| blocks.get(other).is_some_and(|block| block.of == blocks[place].of);
        let ahead = match self.plan.whole {
            true => 0..blocks.len(),
            false => place..if same(place + 1) { place + 2 } else { place + 1 },
        };
        for at in ahead {
            if matches!(slots[at], Slot::Empty) {
                slots[at] = Slot::Pending(self.object.start(blocks[at].range.clone()));
            }
        }
        if !self.plan.whole {
            for before in (0..place).rev().take_while(|before| same(*before)) {
                slots[before] = Slot::Empty;
            }
        }
        let bytes = match std::mem::replace(&mut slots[place], Slot::Empty) {
            Slot::Ready(bytes) => bytes,
            Slot::Pending(pending) => Arc::new(pending.wait()?),
            Slot::Empty => Arc::new(self.object.start(blocks[place].range.clone()).wait()?),
        };
        slots[place] = Slot::Ready(Arc::clone(&bytes));
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
}
