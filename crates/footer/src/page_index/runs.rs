//! Which bytes of a file to read for which page indexes: neighbours together.

use std::ops::Range;

/// Gaps up to this are read along: that is quicker than another read.
pub(crate) const READ_ALONG: u64 = 16 << 10;

/// The most bytes of neighbouring indexes to read at once.
const READ_LEN: u64 = 8 << 20;

/// An index to read: its offset, its length, and the row of its chunk.
#[derive(Clone, Copy)]
pub(crate) struct WantedIndex {
    pub start: u64,
    pub len: u32,
    pub row: u32,
}

impl WantedIndex {
    pub fn range(&self) -> Range<u64> {
        self.start..self.start.saturating_add(self.len.into())
    }
}

/// The leading indexes with small gaps between them, up to [`READ_LEN`] bytes.
pub(crate) fn first_run(wanted: &[WantedIndex]) -> Option<&[WantedIndex]> {
    let start = wanted.first()?.start;
    let mut count = 1;
    while let Some(next) = wanted.get(count) {
        let gap = next.start.checked_sub(wanted[count - 1].range().end);
        if gap.is_none_or(|gap| gap > READ_ALONG) || next.range().end - start > READ_LEN {
            break;
        }
        count += 1;
    }
    Some(&wanted[..count])
}

/// Joins ranges, in the order of their starts, that overlap, and those with a gap of at most this many bytes if
/// all of them are then no longer together than the limit.
pub(crate) fn merge(ranges: &mut Vec<Range<u64>>, gap: u64, limit: u64) {
    join(ranges, 0);
    let mut joined = ranges.clone();
    join(&mut joined, gap);
    if total(&joined) <= limit {
        *ranges = joined;
    }
}

/// Joins ranges, in the order of their starts, with gaps of at most this many bytes.
pub(crate) fn join(ranges: &mut Vec<Range<u64>>, gap: u64) {
    ranges.dedup_by(|next, range| {
        let joins = next.start <= range.end.saturating_add(gap);
        range.end = if joins { range.end.max(next.end) } else { range.end };
        joins
    });
}

/// The length of all ranges together.
pub(crate) fn total(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).fold(0, u64::saturating_add)
}
