//! Row numbers or row group numbers: which of them a filter leaves, and how they are shared among partitions.

use std::ops::Range;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};

/// Row numbers: ranges in ascending order, without overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowRanges(Vec<Range<u64>>);

/// Ranges begin and end at multiples of this if they can, because the generator draws this many rows at once.
const ALIGNED: u64 = 1024;

impl RowRanges {
    /// The rows from 0 to `rows`.
    pub(crate) fn all(rows: u64) -> Self {
        Self::new(std::iter::once(0..rows).collect())
    }

    fn new(mut ranges: Vec<Range<u64>>) -> Self {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        Self(merged)
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    /// From the first row to the last; empty if there are none.
    pub(crate) fn span(&self) -> Range<u64> {
        match (self.0.first(), self.0.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => 0..0,
        }
    }

    /// The rows that are in both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let (mut here, mut there) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = Vec::new();
        while let (Some(a), Some(b)) = (here.peek(), there.peek()) {
            both.push(a.start.max(b.start)..a.end.min(b.end));
            if a.end < b.end {
                here.next();
            } else {
                there.next();
            }
        }
        Self::new(both)
    }

    fn or(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        Self::new(self.0)
    }

    /// The first `rows` rows.
    pub(crate) fn first(&self, rows: u64) -> Self {
        let mut left = rows;
        let cut = self.0.iter().map(|range| {
            let taken = left.min(range.end - range.start);
            left -= taken;
            range.start..range.start + taken
        });
        Self::new(cut.collect())
    }

    /// The rows for which `filter` holds, if it is a condition on the column `number`. Otherwise `None`: the rows
    /// themselves have to be checked.
    pub(crate) fn where_holds(filter: &Expr, number: &str) -> Option<Self> {
        match filter {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                Some(Self::where_holds(left, number)?.and(&Self::where_holds(right, number)?))
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
                Some(Self::where_holds(left, number)?.or(Self::where_holds(right, number)?))
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match is_column(left, number) {
                true => Self::compared(*op, whole(right)?),
                false if is_column(right, number) => Self::compared(op.swap()?, whole(left)?),
                false => None,
            },
            Expr::Between(Between { expr, negated: false, low, high }) if is_column(expr, number) => {
                let at_least = Self::compared(Operator::GtEq, whole(low)?)?;
                Some(at_least.and(&Self::compared(Operator::LtEq, whole(high)?)?))
            }
            Expr::InList(list) if !list.negated && is_column(&list.expr, number) => {
                let rows = list.list.iter().map(|row| Some(row_range(whole(row)?, whole(row)?)));
                Some(Self::new(rows.collect::<Option<_>>()?))
            }
            _ => None,
        }
    }

    fn compared(op: Operator, with: i128) -> Option<Self> {
        let all = i128::from(u64::MAX);
        let ranges = match op {
            Operator::Eq => vec![row_range(with, with)],
            Operator::NotEq => vec![row_range(0, with - 1), row_range(with + 1, all)],
            Operator::Lt => vec![row_range(0, with - 1)],
            Operator::LtEq => vec![row_range(0, with)],
            Operator::Gt => vec![row_range(with + 1, all)],
            Operator::GtEq => vec![row_range(with, all)],
            _ => return None,
        };
        Some(Self::new(ranges))
    }

    /// Shares the rows among at most `partitions` parts, in order and about equally, each in ranges. Of few rows
    /// there are fewer parts.
    pub(crate) fn shared(&self, partitions: usize) -> Vec<Vec<Range<u64>>> {
        let share = self.rows().div_ceil(partitions.max(1) as u64).next_multiple_of(ALIGNED);
        let mut parts: Vec<Vec<Range<u64>>> = Vec::new();
        let (mut part, mut left) = (Vec::new(), share);
        for range in &self.0 {
            let mut start = range.start;
            while start < range.end {
                let end = (start + left).next_multiple_of(ALIGNED).min(range.end);
                part.push(start..end);
                left = left.saturating_sub(end - start);
                start = end;
                if left == 0 {
                    parts.push(std::mem::take(&mut part));
                    left = share;
                }
            }
        }
        if !part.is_empty() {
            parts.push(part);
        }
        parts
    }
}

/// The rows from `first` to `last`, both included, that can have a number.
fn row_range(first: i128, last: i128) -> Range<u64> {
    let number = |row: i128| u64::try_from(row.max(0)).unwrap_or(u64::MAX);
    number(first)..number(last.saturating_add(1))
}

fn is_column(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Column(column) if column.name == name)
}

/// The whole number that a literal states.
fn whole(expr: &Expr) -> Option<i128> {
    let Expr::Literal(value, _) = expr else { return None };
    match value {
        ScalarValue::Int64(Some(value)) => Some((*value).into()),
        ScalarValue::Int32(Some(value)) => Some((*value).into()),
        ScalarValue::UInt64(Some(value)) => Some((*value).into()),
        ScalarValue::UInt32(Some(value)) => Some((*value).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::logical_expr::{col, lit};

    /// The first row of each range, and the one after the last.
    fn held(filter: Expr) -> Option<Vec<(u64, u64)>> {
        let rows = RowRanges::where_holds(&filter, "n")?.and(&RowRanges::all(100)).0;
        Some(rows.into_iter().map(|range| (range.start, range.end)).collect())
    }

    #[test]
    fn conditions_on_the_row_number_leave_ranges() {
        assert_eq!(held(col("n").lt(lit(5))), Some(vec![(0, 5)]));
        assert_eq!(held(lit(97_i64).lt_eq(col("n"))), Some(vec![(97, 100)]));
        assert_eq!(held(col("n").eq(lit(-1))), Some(vec![]));
        assert_eq!(held(col("n").not_eq(lit(3))), Some(vec![(0, 3), (4, 100)]));
        assert_eq!(held(col("n").between(lit(10), lit(12))), Some(vec![(10, 13)]));
        assert_eq!(
            held(col("n").in_list(vec![lit(7), lit(8), lit(90)], false)),
            Some(vec![(7, 9), (90, 91)])
        );
        assert_eq!(held(col("n").lt(lit(2)).or(col("n").gt(lit(98)))), Some(vec![(0, 2), (99, 100)]));
        assert_eq!(held(col("n").gt(lit(2)).and(col("n").lt(lit(4)))), Some(vec![(3, 4)]));
    }

    #[test]
    fn other_conditions_are_left_to_the_engine() {
        assert_eq!(held(col("m").lt(lit(5))), None);
        assert_eq!(held(col("n").lt(lit(5.5))), None);
        assert_eq!(held(col("n").lt(lit(5)).or(col("m").lt(lit(5)))), None);
        assert_eq!(held(col("n").eq(lit(ScalarValue::Int64(None)))), None);
    }

    #[test]
    fn shares_have_all_rows_once_and_begin_at_blocks() {
        let some = RowRanges::new(vec![3..5000, 9000..9001, 20_000..90_000]);
        for partitions in [1, 2, 7, 64, 1000] {
            let shared = some.shared(partitions);
            assert!(shared.len() <= partitions, "{} parts", shared.len());
            assert_eq!(RowRanges::new(shared.concat()), some);
            assert_eq!(shared.concat().iter().map(|rows| rows.end - rows.start).sum::<u64>(), some.rows());
        }
        assert_eq!(RowRanges::all(0).shared(4), Vec::<Vec<Range<u64>>>::new());
        assert_eq!(RowRanges::all(4096).shared(2).concat(), [0..2048, 2048..4096]);
    }
}
