//! The proof of a load: sums of rows, and their comparison.

use std::fmt;
use std::str::FromStr;

use sawmill_profile::format_counted;
use sawmill_source::{Error, Kind, Result};
use serde::{Serialize, Serializer};

/// Where the two sides of a verification differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Located {
    /// Units of the source with rows that the target lacks.
    pub units: Vec<LocatedUnit>,
    /// Rows of the target that are not in the source.
    pub rows_of_none: u64,
}

/// A unit with rows that the target lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LocatedUnit {
    /// The file's name.
    pub file: String,
    /// The row group in the file.
    pub row_group: u32,
    /// The first row, counted from 0 in the row group.
    pub first_row: u64,
    /// The last row, counted likewise.
    pub last_row: u64,
    /// How many of its rows the target lacks.
    pub missing: u64,
    /// The first of them, counted from 0 in the row group.
    pub first_missing: Vec<u64>,
}

impl std::fmt::Display for LocatedUnit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, row_group, first_row, last_row, missing, first_missing } = self;
        let rows: Vec<String> = first_missing.iter().map(u64::to_string).collect();
        let more = if (rows.len() as u64) < *missing { " and more" } else { "" };
        write!(
            f,
            "{file}, row group {row_group}, rows {first_row} to {last_row}: {missing} not in the table ({}{more})",
            rows.join(", ")
        )
    }
}

/// Both sides of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Names of the compared columns, in the order of the totals' counts.
    pub columns: Vec<String>,
    /// The source's rows, without rejected ones.
    pub source: Tally,
    /// The target's rows.
    pub target: Tally,
    /// Rejected rows of the source, if the comparison leaves them out.
    #[serde(rename = "put_aside", skip_serializing_if = "is_zero")]
    pub rejected: u64,
    /// Other rows of the target: they were there before the source's rows, or came later, and were not compared with
    /// the source.
    #[serde(skip_serializing_if = "is_zero")]
    pub rows_of_others: u64,
    /// Columns of the target that the source lacks; the comparison does not cover them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<String>,
    /// Columns whose values differ; empty if all agree, or if columns were not compared one by one.
    pub differing: Vec<String>,
    /// Where the sides differ, if they do and the caller asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub located: Option<Located>,
}

fn is_zero(rows: &u64) -> bool {
    *rows == 0
}

impl Verification {
    /// The comparison of two sums over these columns.
    pub fn new(columns: Vec<String>, source: Tally, target: Tally) -> Self {
        Self { columns, source, target, ..Self::default() }
    }

    /// Adds the later verification of further rows of the same table, among whose other rows are these.
    pub(crate) fn add(&mut self, other: Self) {
        self.rows_of_others = other.rows_of_others.saturating_sub(self.target.rows);
        self.source.add(&other.source);
        self.target.add(&other.target);
        self.rejected += other.rejected;
        self.differing.extend(other.differing);
    }

    /// Whether rows, sums and counts agree.
    pub fn matches(&self) -> bool {
        self.source == self.target
    }

    /// Returns the difference as an error that names the columns.
    pub fn into_result(self, table: &str) -> Result<Self> {
        if self.matches() {
            return Ok(self);
        }
        let mut what = String::from("the table does not hold what the files hold");
        if self.source.rows != self.target.rows {
            what += &format!(": {} instead of {}", format_counted(self.target.rows, "row"), self.source.rows);
        }
        let counts = self.source.non_null.iter().zip(&self.target.non_null);
        for (name, (source, target)) in self.columns.iter().zip(counts) {
            if source != target {
                what +=
                    &format!("; column {name:?}: {} instead of {source}", format_counted(*target, "value"));
            }
        }
        if !self.differing.is_empty() {
            what += &format!("; values differ in {}", self.differing.join(", "));
        }
        if self.source.rows == self.target.rows && self.source.content_sum != self.target.content_sum {
            what +=
                &format!("; content sum {} instead of {}", self.target.content_sum, self.source.content_sum);
        }
        if let Some(Located { units, rows_of_none }) = &self.located {
            const NAMED: usize = 20;
            for unit in units.iter().take(NAMED) {
                what += &format!("; {unit}");
            }
            if units.len() > NAMED {
                what += &format!("; and {}", format_counted((units.len() - NAMED) as u64, "more unit"));
            }
            if *rows_of_none > 0 {
                what +=
                    &format!("; the table has {} that the files lack", format_counted(*rows_of_none, "row"));
            }
        }
        Err(Error::new(Kind::Mismatch, what)
            .at(table)
            .advise("another client wrote to the table, or a trigger changed rows: --locate shows where (sawmill verify); --mode \
                     replace loads it from the beginning"))
    }
}

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
