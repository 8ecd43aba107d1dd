//! Finds where row groups probably start without walking what precedes them.
//!
//! Row groups of one file begin with the same bytes: the stop of the previous one, the header of the column
//! list with its length, the first byte of the first chunk. An offset with these bytes near the expected
//! start is only a guess: it counts only if the walk over the previous row group ends exactly there.

use crate::thrift::cursor::STRUCT;

/// The bytes just before and at the start of a row group.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    bytes: Vec<u8>,
    /// The index in `bytes` of the byte to search for, which is rare elsewhere.
    anchor: usize,
}

impl Opening {
    /// The opening of row groups like the one that starts at `start` and has the first of `columns` chunks at
    /// `first_chunk`.
    pub fn new(bytes: &[u8], start: usize, first_chunk: usize, columns: usize) -> Option<Self> {
        let opening = bytes.get(start..first_chunk + 1)?;
        // The header of a long list precedes its length.
        let header = if columns < 15 { (columns as u8) << 4 | STRUCT } else { 0xf0 | STRUCT };
        let anchor = opening.iter().position(|&byte| byte == header)?;
        let mut pattern = vec![0];
        pattern.extend_from_slice(opening);
        Some(Self { bytes: pattern, anchor: anchor + 1 })
    }

    /// The offset nearest to `expected` where a row group may start, at most `reach` away and at least
    /// `from`.
    pub fn find(&self, bytes: &[u8], expected: usize, reach: usize, from: usize) -> Option<usize> {
        // Usually the start is close: search there first, then further out.
        let mut tried = 0;
        let mut radius = 128.min(reach);
        loop {
            let low = expected.saturating_sub(radius).max(from);
            let high = expected.saturating_add(radius);
            let inner = expected.saturating_sub(tried)..expected.saturating_add(tried);
            let below = self.search(bytes, low..inner.start.max(low), true);
            let above = self.search(bytes, inner.end.max(from)..high, false);
            let nearest = match (below, above) {
                (Some(below), Some(above)) => {
                    Some(if expected - below <= above - expected { below } else { above })
                }
                (below, above) => below.or(above),
            };
            if nearest.is_some() || radius == reach {
                return nearest;
            }
            (tried, radius) = (radius, radius.saturating_mul(8).min(reach));
        }
    }

    /// The first or last start in `starts`.
    fn search(&self, bytes: &[u8], starts: std::ops::Range<usize>, last: bool) -> Option<usize> {
        // The anchor of a start `s` is at `s - 1 + anchor`.
        let offset = self.anchor - 1;
        let region = bytes.get(starts.start + offset..(starts.end + offset).min(bytes.len()))?;
        let fits = |at: usize| {
            let start = (starts.start + at).checked_sub(1)?;
            let found = bytes.get(start..start + self.bytes.len())?;
            (found == self.bytes).then_some(start + 1)
        };
        // The anchor's value may occur anywhere, but is seldom followed by the same byte as here.
        let anchor = *self.bytes.get(self.anchor)?;
        let next = self.bytes.get(self.anchor + 1).copied();
        let region_end = starts.start + offset + region.len();
        let after = bytes.get(starts.start + offset + 1..region_end + 1);
        let mut best = None;
        for (block, chunk) in region.chunks(64).enumerate() {
            // Without a branch, the loop compiles to a few vector comparisons.
            let found = match (next, after.and_then(|after| after.get(block * 64..block * 64 + chunk.len())))
            {
                (Some(next), Some(after)) => chunk
                    .iter()
                    .zip(after)
                    .fold(false, |any, (&byte, &follows)| any | ((byte == anchor) & (follows == next))),
                _ => true,
            };
            if !found {
                continue;
            }
            for (at, &byte) in chunk.iter().enumerate() {
                if byte == anchor
                    && let Some(start) = fits(block * 64 + at)
                {
                    if !last {
                        return Some(start);
                    }
                    best = Some(start);
                }
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::Opening;

    #[test]
    fn find_returns_the_nearest_start_within_reach() {
        let mut bytes = vec![0x33; 40_000];
        for start in [1000, 20_000, 30_000] {
            bytes[start - 1..start + 5].copy_from_slice(&[0, 0x19, 0xfc, 100, 0x26, 0]);
        }
        bytes[25_001] = 0xfc;
        let opening = Opening::new(&bytes, 1000, 1003, 100).unwrap();
        assert_eq!(opening.find(&bytes, 19_990, 100, 0), Some(20_000));
        assert_eq!(opening.find(&bytes, 20_100, 100, 0), Some(20_000));
        assert_eq!(opening.find(&bytes, 20_101, 100, 0), None);
        assert_eq!(opening.find(&bytes, 24_000, 10_000, 0), Some(20_000));
        assert_eq!(opening.find(&bytes, 26_000, 10_000, 0), Some(30_000));
        assert_eq!(opening.find(&bytes, 24_000, 10_000, 20_001), Some(30_000));
        assert_eq!(opening.find(&bytes, 39_999, 10, 0), None);
        assert_eq!(opening.find(&bytes, 0, 2000, 0), Some(1000));
    }

    #[test]
    fn row_groups_of_few_columns_are_found_by_the_header_of_their_list() {
        let mut bytes = vec![0x8c; 4000];
        for start in [1000, 2000, 3000] {
            bytes[start - 1..start + 4].copy_from_slice(&[0, 0x19, 0x8c, 0x26, 0]);
        }
        let opening = Opening::new(&bytes, 1000, 1002, 8).unwrap();
        assert_eq!(opening.find(&bytes, 2100, 500, 1001), Some(2000));
        assert_eq!(opening.find(&bytes, 2600, 500, 1001), Some(3000));
        assert!(Opening::new(&bytes, 1000, 1002, 9).is_none());
    }
}
