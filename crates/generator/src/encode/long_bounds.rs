//! Truncated bounds of long byte strings.
//!
//! A footer with values of a megabyte as the bounds of each page could be longer than the pages themselves.
//! The format allows a minimum below all values and a maximum above them (`ColumnIndex`), so a prefix is
//! enough for the minimum, and a prefix with its last character incremented for the maximum.

use crate::spec::dataset::Leaf;
use crate::types::logical_type::{LogicalType, Physical};

/// Longer bounds are truncated to this many bytes.
const MAX_LENGTH: usize = 1024;

/// Whether bounds of the leaf's values can be truncated: byte strings that sort by their bytes.
fn can_be_cut(leaf: &Leaf) -> bool {
    leaf.physical == Physical::Bytes && !matches!(leaf.kind, LogicalType::Decimal { .. })
}

/// Whether values are text, which must be truncated at a character.
fn is_text(leaf: &Leaf) -> bool {
    matches!(leaf.kind, LogicalType::String | LogicalType::Enum | LogicalType::Json)
}

pub(crate) fn short_low(leaf: &Leaf, low: &[u8]) -> Vec<u8> {
    prefix(leaf, low).unwrap_or(low).to_vec()
}

/// A short upper bound for `high`; `high` itself if it has none.
pub(crate) fn short_high(leaf: &Leaf, high: &[u8]) -> Vec<u8> {
    let Some(prefix) = prefix(leaf, high) else { return high.to_vec() };
    let raised = if is_text(leaf) { raised_text(prefix) } else { raised_bytes(prefix) };
    raised.unwrap_or_else(|| high.to_vec())
}

/// The prefix to keep of a long value; `None` for a short value.
fn prefix<'a>(leaf: &Leaf, value: &'a [u8]) -> Option<&'a [u8]> {
    if value.len() <= MAX_LENGTH || !can_be_cut(leaf) {
        return None;
    }
    let mut end = MAX_LENGTH;
    while is_text(leaf) && end > 0 && value[end] & 0xC0 == 0x80 {
        end -= 1;
    }
    Some(&value[..end])
}

/// The shortest string greater than all strings that begin with `prefix`.
fn raised_bytes(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut raised = prefix[..=last].to_vec();
    raised[last] += 1;
    Some(raised)
}

/// The same for text: whole characters, which sort like their UTF-8 bytes.
fn raised_text(prefix: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(prefix).ok()?;
    let above = |character: char| (character..=char::MAX).nth(1);
    let (at, raised) = text.char_indices().rev().find_map(|(at, last)| Some((at, above(last)?)))?;
    let mut out = text[..at].to_owned();
    out.push(raised);
    Some(out.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::value_spec::ValueSpec;

    fn leaf(kind: LogicalType) -> Leaf {
        Leaf::new(0, kind, ValueSpec::Bytes { least: 0, most: 0 })
    }

    #[test]
    fn short_values_are_their_own_bounds() {
        for kind in [LogicalType::String, LogicalType::Binary] {
            let (leaf, value) = (leaf(kind), vec![b'x'; MAX_LENGTH]);
            assert_eq!((short_low(&leaf, &value), short_high(&leaf, &value)), (value.clone(), value));
        }
    }

    #[test]
    fn long_values_are_between_their_bounds() {
        let bytes = |byte: u8| vec![byte; 5000];
        let text = |text: &str| text.repeat(5000).into_bytes();
        for (kind, value) in [
            (LogicalType::Binary, bytes(7)),
            (LogicalType::Binary, [vec![9], bytes(0xFF)].concat()),
            (LogicalType::String, text("a")),
            (LogicalType::String, text("é")),
            (LogicalType::String, text("€")),
            (LogicalType::String, [b"x".to_vec(), text("\u{10FFFF}")].concat()),
            (LogicalType::String, text("\u{D7FF}")),
        ] {
            let leaf = leaf(kind);
            let (low, high) = (short_low(&leaf, &value), short_high(&leaf, &value));
            assert!(low <= value && value <= high && low.len() <= MAX_LENGTH && high.len() <= MAX_LENGTH + 3);
            assert_eq!(short_low(&leaf, &low), low);
            if is_text(&leaf) {
                assert!(std::str::from_utf8(&low).is_ok() && std::str::from_utf8(&high).is_ok());
            }
        }
        let highest = bytes(0xFF);
        assert_eq!(short_high(&leaf(LogicalType::Binary), &highest), highest);
    }
}
