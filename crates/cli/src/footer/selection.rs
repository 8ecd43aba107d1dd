//! The part of a footer that the arguments select.

use std::ops::Range;

use sawmill_footer::{ColumnSelector, Options};

use crate::footer::FooterArgs;

/// A range of row groups as a user writes it: `3`, `2..5`, `2..`, `..5`.
pub(crate) fn row_groups(text: &str) -> Result<Range<usize>, String> {
    let wrong = || format!("{text:?} is no range of row groups: give one like 3, 2..5, 2.. or ..5");
    let number = |text: &str, none: usize| match text.trim() {
        "" => Ok(none),
        digits => digits.parse::<usize>().map_err(|_| wrong()),
    };
    let range = match text.split_once("..") {
        Some((start, end)) => number(start, 0)?..number(end, usize::MAX)?,
        None => {
            let one = text.trim().parse::<usize>().map_err(|_| wrong())?;
            one..one.saturating_add(1)
        }
    };
    if range.is_empty() {
        return Err(format!("{text:?} is an empty range: its end is not part of it"));
    }
    Ok(range)
}

/// What is to be decoded.
pub(crate) fn options(args: &FooterArgs) -> Options {
    let mut options = Options::new().tail_hint(args.tail_hint);
    if !args.column.is_empty() {
        options = options.select(columns(args));
    }
    match &args.row_group {
        Some(range) => options.row_groups(range.clone()),
        None => options,
    }
}

/// The wanted columns; none for all.
pub(crate) fn columns(args: &FooterArgs) -> Vec<ColumnSelector> {
    let selector = |column: &String| match column.contains(['*', '?']) {
        true => ColumnSelector::Glob(column.clone()),
        false => ColumnSelector::Path(column.clone()),
    };
    args.column.iter().map(selector).collect()
}

#[cfg(test)]
mod tests {
    use super::row_groups;

    #[test]
    fn ranges_of_row_groups_are_read_or_refused() {
        assert_eq!(row_groups("3"), Ok(3..4));
        assert_eq!(row_groups("2..5"), Ok(2..5));
        assert_eq!(row_groups("2.."), Ok(2..usize::MAX));
        assert_eq!(row_groups("..5"), Ok(0..5));
        for bad in ["", "x", "5..2", "3..3", "-1", "1..=2", "1...3"] {
            assert!(row_groups(bad).is_err(), "{bad}");
        }
    }
}
