//! The part of a footer that the arguments select.

use std::ops::Range;

use sawmill_footer::{ColumnSelector, Options, Verify};
use sawmill_profile::parse_bytes;

use crate::arguments::words::words;
use crate::footer::FooterArgs;
use crate::screen::phases;

words!(
    /// How much of a footer to verify.
    Level => Verify {
        /// The decoded part.
        Decoded,
        /// All values, including statistics.
        Values,
        /// All values, and whether they are consistent with each other and with the file.
        Consistency as Values,
    }
);

/// The row groups that `--row-group` selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowGroups {
    /// By their numbers.
    Numbers(Range<usize>),
    /// By how many rows they have.
    Rows(Range<u64>),
    /// By where in the file their data starts.
    Bytes(Range<u64>),
}

impl RowGroups {
    /// Parses `3`, `2..5`, `2..`, `..5`, `rows=1M..` or `bytes=0..64MB`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let bytes = |number: &str| parse_bytes(number).map_err(|error| error.to_string());
        match text.split_once('=') {
            Some(("rows", rows)) => range(rows, phases::count).map(Self::Rows),
            Some(("bytes", places)) => range(places, bytes).map(Self::Bytes),
            _ => {
                let wrong =
                    || format!("{text:?} is not a range of row groups: give one like 3, 2..5, 2.. or ..5");
                let range = range(text, |number| number.parse::<u64>().map_err(|_| wrong()))?;
                let place = |number| usize::try_from(number).unwrap_or(usize::MAX);
                Ok(Self::Numbers(place(range.start)..place(range.end)))
            }
        }
    }

    /// The options that decode only these.
    fn select(&self, options: Options) -> Options {
        match self.clone() {
            Self::Numbers(range) => options.row_groups(range),
            // The decoder rejects negative numbers of rows.
            Self::Rows(range) => {
                options.row_groups_where(move |rows| range.contains(&u64::try_from(rows).unwrap_or(0)))
            }
            Self::Bytes(range) => options.row_groups_in_bytes(range),
        }
    }

    /// The error if a file of `there` row groups lacks all of these numbers. A range without an end takes the remaining
    /// row groups, and a range from 0 takes all up to its end: both may be empty.
    pub(crate) fn missed(&self, there: usize) -> Option<String> {
        let Self::Numbers(wanted) = self else { return None };
        let open = wanted.end == usize::MAX || (wanted.start == 0 && wanted.end > 1);
        if open || wanted.start < there {
            return None;
        }
        let last = match there.checked_sub(1) {
            None => "found none in the file".to_owned(),
            Some(0) => "found one row group in the file, 0".to_owned(),
            Some(last) => format!("found {there} row groups in the file, 0 to {last}"),
        };
        Some(match wanted.len() {
            1 => format!("expected a row group {}, {last}", wanted.start),
            _ => format!("expected row groups from {} on, {last}", wanted.start),
        })
    }
}

/// Parses a range. Both ends are optional; a single number is a range of one.
fn range(text: &str, number: impl Fn(&str) -> Result<u64, String>) -> Result<Range<u64>, String> {
    let end = |text: &str, none: u64| match text.trim() {
        "" => Ok(none),
        text => number(text),
    };
    let range = match text.split_once("..") {
        Some((start, open)) => end(start, 0)?..end(open, u64::MAX)?,
        None => {
            let one = number(text.trim())?;
            one..one.saturating_add(1)
        }
    };
    if range.is_empty() {
        return Err(format!("{text:?} is an empty range: a range does not include its end"));
    }
    Ok(range)
}

/// What to decode.
pub(crate) fn options(args: &FooterArgs) -> Options {
    let mut options = Options::new()
        .tail_hint(usize::try_from(args.tail_hint).unwrap_or(usize::MAX))
        .max_footer(args.max_footer)
        .verify(args.verify.into());
    let columns = columns(args);
    if !columns.is_empty() {
        options = options.select(columns);
    }
    args.row_group.iter().fold(options, |options, wanted| wanted.select(options))
}

/// The columns that the value of `--column` names.
pub(crate) fn selector(column: &str) -> ColumnSelector {
    match column.contains(['*', '?']) {
        true => ColumnSelector::Glob(column.to_owned()),
        false => ColumnSelector::Path(column.to_owned()),
    }
}

/// What to decode of the columns that these values of `--column` name, in these row groups; without any, everything.
pub(crate) fn part(columns: &[String], row_groups: Option<&RowGroups>) -> Options {
    let options = match columns {
        [] => Options::new(),
        columns => Options::new().select(columns.iter().map(|column| selector(column))),
    };
    row_groups.into_iter().fold(options, |options, wanted| wanted.select(options))
}

/// The selected columns; none for all.
pub(crate) fn columns(args: &FooterArgs) -> Vec<ColumnSelector> {
    let numbers = args.column_number.iter().map(|&number| ColumnSelector::Index(number));
    args.column.iter().map(|column| selector(column)).chain(numbers).collect()
}

#[cfg(test)]
mod tests {
    use super::RowGroups;

    #[test]
    fn ranges_of_row_groups_are_parsed_or_rejected() {
        let numbers = |range| Ok(RowGroups::Numbers(range));
        assert_eq!(RowGroups::parse("3"), numbers(3..4));
        assert_eq!(RowGroups::parse("2..5"), numbers(2..5));
        assert_eq!(RowGroups::parse("2.."), numbers(2..usize::MAX));
        assert_eq!(RowGroups::parse("..5"), numbers(0..5));
        for bad in ["", "x", "5..2", "3..3", "-1", "1..=2", "1...3", "rows=many", "bytes=2..1", "row=1"] {
            assert!(RowGroups::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(RowGroups::parse("rows=1k..2M"), Ok(RowGroups::Rows(1_000..2_000_000)));
        assert_eq!(RowGroups::parse("bytes=..64MB"), Ok(RowGroups::Bytes(0..64_000_000)));
    }

    #[test]
    fn a_missing_row_group_is_an_error_and_an_empty_rest_is_not() {
        let missed = |text, there| RowGroups::parse(text).unwrap().missed(there);
        for (text, there) in [("0", 1), ("2..9", 3), ("7..", 3), ("..5", 0), ("0..", 0), ("0..2", 0)] {
            assert_eq!(missed(text, there), None, "{text} of {there}");
        }
        for (text, there, expected) in [
            ("7", 1, "expected a row group 7, found one row group in the file, 0"),
            ("0", 0, "expected a row group 0, found none in the file"),
            ("3..5", 3, "expected row groups from 3 on, found 3 row groups in the file, 0 to 2"),
        ] {
            assert_eq!(missed(text, there).as_deref(), Some(expected));
        }
    }
}
