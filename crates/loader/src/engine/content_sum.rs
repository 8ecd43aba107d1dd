//! Proof of content: an order-independent 128-bit sum over the canonical bytes of rows.
//!
//! A row's canonical form is its tuple in PostgreSQL's binary COPY format: a 16-bit field count,
//! then for each column a 32-bit length (-1 for NULL) and that many bytes, exactly as
//! `COPY (SELECT columns FROM table) TO STDOUT (FORMAT binary)` sends them
//! (<https://www.postgresql.org/docs/current/sql-copy.html>). The loader sends the same bytes, so
//! one function sums both sides. Arrays and composite values contain type OIDs, which differ from server to
//! server; they are hashed as zeros, so that the same rows have the same sum in every table. Each row is
//! hashed with XXH3-128, and the hashes are added modulo 2^128. Row order therefore does not matter, a
//! duplicate row counts twice, and sums of parts add up to the sum of the whole. So each unit is summed where
//! it is encoded, and the sum of added rows is the difference of two sums.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A sum of row hashes; see the module's documentation. Displayed as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentSum(u128);

impl ContentSum {
    /// Adds one row, or one field where each column is summed separately.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        self.0 = self.0.wrapping_add(xxhash_rust::xxh3::xxh3_128(bytes));
    }

    /// Adds the rows of `other`.
    pub fn merge(&mut self, other: ContentSum) {
        self.0 = self.0.wrapping_add(other.0);
    }

    /// Returns the sum without the rows of `other`.
    pub fn minus(self, other: ContentSum) -> Self {
        Self(self.0.wrapping_sub(other.0))
    }
}

impl fmt::Display for ContentSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for ContentSum {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Self)
    }
}

impl Serialize for ContentSum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The totals of a set of rows: row count, content sum, and non-null values of each column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Number of rows.
    pub rows: u64,
    /// Sum over the rows' canonical bytes.
    pub content_sum: ContentSum,
    /// Non-null values of each column, in column order.
    pub non_null: Vec<u64>,
}

impl Tally {
    /// Zero rows of `columns` columns.
    pub fn empty(columns: usize) -> Self {
        Self { non_null: vec![0; columns], ..Self::default() }
    }

    /// Adds the rows of `other`.
    pub fn add(&mut self, other: &Tally) {
        self.rows = self.rows.saturating_add(other.rows);
        self.content_sum.0 = self.content_sum.0.wrapping_add(other.content_sum.0);
        self.non_null.resize(self.non_null.len().max(other.non_null.len()), 0);
        for (mine, theirs) in self.non_null.iter_mut().zip(&other.non_null) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// Subtracts the rows of `other`.
    pub fn minus(&self, other: &Tally) -> Tally {
        let non_null = self.non_null.iter().enumerate();
        Tally {
            rows: self.rows.wrapping_sub(other.rows),
            content_sum: self.content_sum.minus(other.content_sum),
            non_null: non_null
                .map(|(i, n)| n.wrapping_sub(other.non_null.get(i).copied().unwrap_or(0)))
                .collect(),
        }
    }
}

/// Sums of rows, and of single columns if requested.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// The sum of whole rows.
    pub whole: Tally,
    /// One sum for each column, over its values; empty unless requested.
    pub each: Vec<ContentSum>,
}

impl Sums {
    /// The sum of several parts, of this many columns.
    pub fn new(parts: Vec<Sums>, columns: usize) -> Self {
        let mut sums = Self { whole: Tally::empty(columns), each: Vec::new() };
        for part in parts {
            sums.whole.add(&part.whole);
            sums.each.resize(part.each.len().max(sums.each.len()), ContentSum::default());
            for (sum, part) in sums.each.iter_mut().zip(&part.each) {
                sum.merge(*part);
            }
        }
        sums
    }

    /// Zero rows of `columns` columns, which are also summed separately if `each_column`.
    pub fn empty(columns: usize, each_column: bool) -> Self {
        let each = if each_column { vec![ContentSum::default(); columns] } else { Vec::new() };
        Self { whole: Tally::empty(columns), each }
    }

    /// These sums without the rows of `other`.
    pub fn minus(&self, other: &Sums) -> Self {
        let each = self.each.iter().zip(&other.each).map(|(sum, other)| sum.minus(*other)).collect();
        Self { whole: self.whole.minus(&other.whole), each }
    }

    /// The names of the columns whose values differ, as multisets.
    pub fn differing<'n>(&self, other: &Sums, names: impl Iterator<Item = &'n String>) -> Vec<String> {
        let pairs = self.each.iter().zip(&other.each).zip(names);
        pairs.filter(|((a, b), _)| a != b).map(|(_, name)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(rows: &[&[u8]]) -> Tally {
        let mut tally = Tally::empty(0);
        for row in rows {
            tally.rows += 1;
            tally.content_sum.add(row);
        }
        tally
    }

    #[test]
    fn order_does_not_matter_but_number_and_content_do() {
        assert_eq!(tally(&[b"a", b"b", b"b"]), tally(&[b"b", b"a", b"b"]));
        assert_ne!(tally(&[b"a", b"b", b"b"]), tally(&[b"a", b"a", b"b"]));
        assert_ne!(tally(&[b"a", b"b"]).content_sum, tally(&[b"a", b"b", b"b"]).content_sum);
    }

    #[test]
    fn parts_add_up_and_are_taken_away_again() {
        let mut whole = tally(&[b"a"]);
        whole.add(&tally(&[b"b", b"c"]));
        assert_eq!(whole, tally(&[b"c", b"b", b"a"]));
        assert_eq!(whole.minus(&tally(&[b"a"])), tally(&[b"b", b"c"]));
    }

    #[test]
    fn the_written_form_reads_back() {
        let sum = tally(&[b"x"]).content_sum;
        assert_eq!(sum.to_string().parse(), Ok(sum));
        assert_eq!(ContentSum::default().to_string(), "0".repeat(32));
    }
}
