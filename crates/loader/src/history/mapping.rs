//! Which rows and columns a load takes from its files, as its record says it.

use std::borrow::Cow;
use std::ops::Range;

use sawmill_source::Source;

/// Identifies the rows and columns that a load takes from its files, and how it reads text. Loads with the same mapping
/// agree on them.
pub fn mapping_of_files(source: &dyn Source, by_position: bool) -> String {
    let by_position = if by_position { " by position" } else { "" };
    format!("files {}{by_position}", source.facts().mapping)
}

/// Whether two mappings take the same rows and columns of a file, even if they read its text by other options. A file
/// that is loaded is not read again, so these do not matter to it.
pub fn takes_the_same(one: &str, other: &str) -> bool {
    one == other || without_reading(one) == without_reading(other)
}

/// A mapping without the way in which text is read, except for the names of its columns.
fn without_reading(mapping: &str) -> Cow<'_, str> {
    const TEXT: &str = "files text ";
    const LEAVES_OUT: &str = " without records that cannot be read";
    if !mapping.starts_with(TEXT) {
        return Cow::Borrowed(mapping);
    }
    let plain = without_quoted(mapping);
    let list = |begins: &str| -> Option<Range<usize>> {
        let start = plain.find(begins)?;
        Some(start..start + plain.get(start..)?.find(']')? + 1)
    };
    let Some(types) = list(" types [") else { return Cow::Borrowed(mapping) };
    let names = list(" header ").filter(|names| names.end < types.start).and_then(|names| mapping.get(names));
    let (names, rest) = (names.unwrap_or_default(), mapping.get(types.end..).unwrap_or_default());
    let rest = rest.replacen(LEAVES_OUT, "", 1);
    Cow::Owned(format!("{TEXT}{names}{rest}"))
}

/// A text of the same length, with a blank for each byte of its literals of texts and characters.
fn without_quoted(text: &str) -> String {
    let (mut quote, mut is_escaped) = (None, false);
    let plain = text.bytes().map(|byte| {
        let is_inside = quote.is_some() || !byte.is_ascii();
        match quote {
            Some(_) if is_escaped => is_escaped = false,
            Some(_) if byte == b'\\' => is_escaped = true,
            Some(mark) if byte == mark => quote = None,
            None if matches!(byte, b'"' | b'\'') => quote = Some(byte),
            _ => {}
        }
        if is_inside { ' ' } else { char::from(byte) }
    });
    plain.collect()
}

/// Begins the condition on the rows in a mapping.
const WHERE: &str = " where ";

/// A mapping without its texts, which may be long.
pub fn hashed_mapping(mapping: &str) -> String {
    let hash = |text: &str| format!("{:032x}", xxhash_rust::xxh3::xxh3_128(text.as_bytes()));
    match mapping.split_once(WHERE) {
        Some((columns, condition)) => hash(columns) + WHERE + &hash(condition),
        None => hash(mapping),
    }
}

/// Begins the columns of lineage in a mapping.
const LINEAGE: &str = " from [";

/// Whether loads with these mappings may take different rows of a file: both have a condition, and the same columns.
pub(super) fn may_be_parts(one: &str, other: &str) -> bool {
    let extends = |longer: &str, shorter: &str| {
        longer.strip_prefix(shorter).is_some_and(|rest| rest.is_empty() || rest.starts_with(LINEAGE))
    };
    match (one.split_once(WHERE), other.split_once(WHERE)) {
        (Some((columns, one)), Some((same, other))) => {
            takes_the_same(columns, same) && !extends(one, other) && !extends(other, one)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_same_columns_and_other_conditions() {
        for (one, other, expected) in [
            ("files c where part = 1", "files c where part = 10", true),
            ("files c where part = 1", "files d where part = 2", false),
            ("files c", "files c where part = 2", false),
            ("files c where part = 1", "files c where part = 1 from [File]", false),
        ] {
            assert_eq!([may_be_parts(one, other), may_be_parts(other, one)], [expected; 2], "{one}; {other}");
        }
        let hashed = ["files c where part = 1", "files c where part = 10"].map(hashed_mapping);
        assert!(may_be_parts(&hashed[0], &hashed[1]));
    }

    #[test]
    fn how_text_is_read_is_no_part_of_the_rows() {
        let text = |names: &str, null: &str, types: &str, rest: &str| {
            format!(
                "files text delimiter None quote Some('\"') escape None comment None header true names [{names}] \
                 null [{null:?}] quoted false skip 0 types [{types}] {rest}"
            )
        };
        let plain = text("", "", "", "columns [\"a\"] renames []");
        for same in [
            text("", " types [x] ' header", "\"\\\"a ] \\\"\" text", "columns [\"a\"] renames []"),
            text("", "", "", " without records that cannot be readcolumns [\"a\"] renames []"),
        ] {
            assert!(takes_the_same(&plain, &same), "{same}: {}", without_reading(&same));
        }
        for other in [
            text("\"a\", \"b\"", "", "", "columns [\"a\"] renames []"),
            text("", "", "", "columns [\"b\"] renames []"),
            text("", "", "", "columns [\"a\"] renames [] where x > 1"),
            "files columns [\"a\"] renames []".to_owned(),
        ] {
            assert!(!takes_the_same(&plain, &other), "{other}: {}", without_reading(&other));
        }
        let json = "files text json encoding None skip 0 types [\"a\" text] folders [(\"y\", Integer)] ";
        assert_eq!(without_reading(json), "files text  folders [(\"y\", Integer)] ");
    }
}
