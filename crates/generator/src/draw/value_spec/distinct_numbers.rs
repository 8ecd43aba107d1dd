//! Whole numbers of a range in random order, each drawn once: keys that are not a sequence.

use crate::random::permutation::Permutation;
use crate::random::rng::{Sequence, Stream, scale64};
use crate::types::int256::Int256;

/// The numbers of a range, one for each row.
#[derive(Clone, Debug)]
pub(crate) struct DistinctNumbers {
    pub least: Int256,
    /// How many numbers are drawn; later rows continue after the range.
    pub span: u64,
    /// The distance of neighbours.
    step: i128,
    /// The parts of the range by density; empty if all its numbers are drawn.
    pub pieces: Vec<Piece>,
    /// The random stream of the order.
    purpose: u64,
}

/// A part of the range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// How many numbers are drawn before it.
    pub first: u64,
    /// How many of them it draws, at most its `width`.
    pub count: u64,
    /// Where it begins, and how far it reaches, in steps.
    pub low: i128,
    pub width: i128,
}

impl DistinctNumbers {
    /// `span` numbers from `least` up, at least one.
    pub(crate) fn new(least: Int256, span: u64, purpose: u64) -> Self {
        DistinctNumbers { least, span: span.max(1), step: 1, pieces: Vec::new(), purpose }
    }

    /// The numbers of pieces of a range: multiples of `step` from `least` up.
    pub(crate) fn with_pieces(least: i128, step: i128, pieces: Vec<Piece>, purpose: u64) -> Self {
        let span = pieces.iter().map(|piece| piece.count).sum::<u64>().max(1);
        DistinctNumbers { least: least.into(), span, step, pieces, purpose }
    }

    /// How far the number of each row is from the least one, in a job with this `seed`.
    pub(crate) fn offsets(&self, seed: u64) -> impl Fn(u64) -> i128 {
        let key = Stream::new(seed, self.purpose, 0).draw(0);
        let order = Permutation::new(self.span, key);
        let range = self.pieces.last().map_or(self.span.into(), |last| last.low + last.width);
        move |row| {
            let (round, place) = (row / self.span, order.place(row % self.span));
            let after = self.pieces.partition_point(|piece| piece.first <= place);
            let piece = after.checked_sub(1).and_then(|at| self.pieces.get(at));
            let offset = piece.map_or(place.into(), |piece| piece.number(place - piece.first, key ^ place));
            i128::from(round).saturating_mul(range).saturating_add(offset).saturating_mul(self.step)
        }
    }
}

impl Piece {
    /// The number at a `place` below [`count`](Self::count), drawn from the room before the next number.
    fn number(&self, place: u64, draw: u64) -> i128 {
        let (count, place) = (i128::from(self.count.max(1)), i128::from(place));
        let (every, rest) = (self.width / count, self.width % count);
        let within = scale64(Sequence::new(draw).next(), u64::try_from(every).unwrap_or(u64::MAX));
        self.low + place * every + place * rest / count + i128::from(within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_numbers_of_the_record_are_unique() {
        let refused = |field: &str| {
            let spec = format!("name = 't'\nfields = [{{ name = 'x', {field} }}]");
            crate::Dataset::from_toml(&spec).map(|_| ()).map_err(|error| error.to_string())
        };
        let values = "values.uniform = { min = 1, max = 9, unique = true }";
        assert_eq!(refused(&format!("type = 'int8', {values}")), Ok(()));
        let list = format!("type = 'list', length.constant = 2, element = {{ type = 'int8', {values} }}");
        for field in [format!("type = 'double', {values}"), list] {
            let error = refused(&field).unwrap_err();
            assert!(error.contains("unique numbers that are real or in a list"), "{error}");
        }
    }

    #[test]
    fn pieces_have_their_shares_of_numbers_and_none_repeats() {
        let piece = |first, count, low, width| Piece { first, count, low, width };
        let pieces = vec![piece(0, 10, 0, 10), piece(10, 3, 10, 1000), piece(13, 987, 2000, 1500)];
        let numbers = DistinctNumbers::with_pieces(-50, 5, pieces, 3);
        let offset = numbers.offsets(42);
        let mut all: Vec<i128> = (0..1000).map(&offset).collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]) && all.iter().all(|n| n % 5 == 0), "{all:?}");
        assert!(all[..10].iter().copied().eq((0..10).map(|n| 5 * n)));
        assert!(all[12] < 5 * 1010 && all[13] >= 5 * 2000 && all[999] < 5 * 3500);
        assert!((1000..2000).all(|row| (5 * 3500..5 * 7000).contains(&offset(row))));
    }

    #[test]
    fn no_number_repeats_and_all_of_the_range_come_first() {
        for (min, span) in [(-7, 1), (5, 1_000), (0, 1_025)] {
            let distinct = DistinctNumbers::new(Int256::from(min), span, 3);
            let offset = distinct.offsets(42);
            let mut numbers: Vec<i128> = (0..3 * span).map(|row| min + offset(row)).collect();
            assert!(numbers[..span as usize].iter().all(|n| (min..min + span as i128).contains(n)));
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq((0..3 * span).map(|row| min + i128::from(row))));
        }
    }
}
