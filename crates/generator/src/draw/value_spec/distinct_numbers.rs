//! Whole numbers of a range in a drawn order, none of them twice: keys that are no sequence.

use crate::random::permutation::Permutation;
use crate::random::rng::Stream;
use crate::types::int256::Int256;

/// The numbers of a range, one for each row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DistinctNumbers {
    least: Int256,
    /// How many numbers the range has; later rows continue after it.
    span: u64,
    /// The random stream of the order.
    purpose: u64,
}

impl DistinctNumbers {
    /// `span` numbers from `least` up, at least one.
    pub(crate) fn new(least: Int256, span: u64, purpose: u64) -> Self {
        DistinctNumbers { least, span: span.max(1), purpose }
    }

    pub(crate) fn least(&self) -> Int256 {
        self.least
    }

    /// How many rows have different numbers of the range.
    pub(crate) fn span(&self) -> u64 {
        self.span
    }

    /// How far the number of each row is from the least one, in a job with this `seed`.
    pub(crate) fn offsets(self, seed: u64) -> impl Fn(u64) -> i128 {
        let order = Permutation::new(self.span, Stream::new(seed, self.purpose, 0).draw(0));
        let span = self.span;
        move |row| i128::from(row / span * span) + i128::from(order.place(row % span))
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
    fn no_number_repeats_and_all_of_the_range_come_first() {
        for (min, span) in [(-7, 1), (5, 1_000), (0, 1_025)] {
            let offset = DistinctNumbers::new(Int256::from(min), span, 3).offsets(42);
            let mut numbers: Vec<i128> = (0..3 * span).map(|row| min + offset(row)).collect();
            assert!(numbers[..span as usize].iter().all(|n| (min..min + span as i128).contains(n)));
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq((0..3 * span).map(|row| min + i128::from(row))));
        }
    }
}
