//! Some rows of a sample, whole: what pairs of columns are compared by.

use std::cmp::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use xxhash_rust::xxh3::xxh3_64;

use crate::infer::sample::leaf_sample::{each_whole, reals};

/// The columns whose rows are kept: all pairs of more take too long.
pub(crate) const MAX_COLUMNS: usize = 300;

/// The most rows that are kept.
const MAX_ROWS: usize = 1 << 15;

/// The most rows times pairs of columns, which bounds both time and memory.
const MAX_WORK: usize = 150_000_000;

/// The whole numbers that are exact as real numbers.
const EXACT: u128 = 1 << 53;

/// Which rows of a sample are kept: some of all that come, in pairs of rows that follow one another.
#[derive(Debug)]
pub(crate) struct ChosenRows {
    /// The numbers of the rows.
    pub rows: Vec<u64>,
    /// A pair of rows is kept if these bits of its hash are 0.
    mask: u64,
    most: usize,
}

impl ChosenRows {
    /// For this many columns.
    pub(crate) fn new(columns: usize) -> Self {
        let columns = columns.min(MAX_COLUMNS);
        let pairs = columns * columns.saturating_sub(1) / 2;
        ChosenRows { rows: Vec::new(), mask: 0, most: MAX_ROWS.min(MAX_WORK / pairs.max(1)) }
    }

    /// Chooses among the `n` rows from row number `first`; returns the places of the chosen ones.
    pub(crate) fn choose(&mut self, first: u64, n: usize) -> Vec<usize> {
        let mask = self.mask;
        let places: Vec<usize> = (0..n).filter(|i| is_chosen(first + *i as u64, mask)).collect();
        self.rows.extend(places.iter().map(|i| first + *i as u64));
        places
    }

    /// Whether each row stays, if there are too many.
    pub(crate) fn thinned(&mut self) -> Option<Vec<bool>> {
        if self.rows.len() <= self.most {
            return None;
        }
        let of_rows = self.rows.len();
        let mut stays = vec![true; of_rows];
        let mut left = of_rows;
        while left > self.most && self.mask < u64::MAX / 2 {
            self.mask = self.mask << 1 | 1;
            for (stays, row) in stays.iter_mut().zip(&self.rows) {
                *stays &= is_chosen(*row, self.mask);
            }
            left = stays.iter().filter(|stays| **stays).count();
        }
        retain(&mut self.rows, &stays);
        Some(stays)
    }
}

fn is_chosen(row: u64, mask: u64) -> bool {
    // By a hash: a choice with a period could meet a period in the rows.
    let mixed = (row / 2).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32) & mask == 0
}

fn retain<T>(all: &mut Vec<T>, stays: &[bool]) {
    let mut stays = stays.iter();
    all.retain(|_| stays.next() == Some(&true));
}

/// The values of one column in the rows that are kept.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    pub there: Vec<bool>,
    /// The value of each row as a number: of strings and bytes their lengths.
    pub numbers: Vec<f64>,
    /// What only equal values have in common.
    pub words: Vec<u64>,
    /// Of strings: how the row before compares with each row, if it is known.
    pub rises: Vec<Option<Ordering>>,
}

impl Cells {
    /// Adds the rows at `places` of an array, whose values are `there` or not.
    pub(crate) fn add(&mut self, array: &ArrayRef, there: &[bool], places: &[usize]) {
        let is_there = |i: usize| there.get(i) == Some(&true);
        self.there.extend(places.iter().map(|i| is_there(*i)));
        let mut push = |value: (f64, u64)| {
            self.numbers.push(value.0);
            self.words.push(value.1);
        };
        let mut each = |value: &dyn Fn(usize) -> (f64, u64)| {
            places.iter().for_each(|i| push(if is_there(*i) { value(*i) } else { (0.0, 0) }));
        };
        let of_real = |value: f64| (value + 0.0, (value + 0.0).to_bits());
        let of_bytes = |bytes: &[u8]| (bytes.len() as f64, xxh3_64(bytes));
        match array.data_type() {
            DataType::Boolean => each(&|i| of_real(f64::from(u8::from(array.as_boolean().value(i))))),
            kind if kind.is_floating() => {
                reals(array).iter().for_each(|numbers| each(&|i| of_real(numbers.value(i))));
            }
            DataType::Utf8 => {
                let texts = array.as_string::<i32>();
                each(&|i| (texts.value(i).chars().count() as f64, xxh3_64(texts.value(i).as_bytes())));
                self.rises.extend(places.iter().map(|i| {
                    let before = i.checked_sub(1).filter(|before| is_there(*before) && is_there(*i))?;
                    Some(texts.value(before).cmp(texts.value(*i)))
                }));
            }
            DataType::Binary => each(&|i| of_bytes(array.as_binary::<i32>().value(i))),
            DataType::FixedSizeBinary(_) => each(&|i| of_bytes(array.as_fixed_size_binary().value(i))),
            kind => {
                let scale = match kind {
                    DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => i32::from(*scale),
                    _ => 0,
                };
                let unit = libm::pow(10.0, scale.into());
                each_whole(array, &mut |whole| {
                    each(&|i| {
                        let Some(value) = whole(i) else { return (f64::NAN, 0) };
                        let number = value as f64 / unit;
                        let is_exact = value.unsigned_abs() < EXACT;
                        (number, if is_exact { number.to_bits() } else { xxh3_64(&value.to_le_bytes()) })
                    });
                });
            }
        }
        // Each row has a number and a word, whatever its type.
        self.numbers.resize(self.there.len(), f64::NAN);
        self.words.resize(self.there.len(), 0);
    }

    /// Removes the rows that do not stay.
    pub(crate) fn retain(&mut self, stays: &[bool]) {
        retain(&mut self.there, stays);
        retain(&mut self.numbers, stays);
        retain(&mut self.words, stays);
        retain(&mut self.rises, stays);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_kept_in_pairs_and_as_many_as_fit() {
        let mut chosen = ChosenRows::new(2);
        for batch in 0..100 {
            chosen.choose(batch * 8192, 8192);
            chosen.thinned();
        }
        let n = chosen.rows.len();
        assert!(n <= MAX_ROWS && n > MAX_ROWS / 3, "{n}");
        let pairs = chosen.rows.windows(2).filter(|rows| rows[0] + 1 == rows[1]).count();
        assert!(pairs >= n / 2, "{pairs} of {n}");
        assert!(ChosenRows::new(2000).most > 1000);
    }
}
