//! The values of a dictionary page, for callers that decompress it.

use std::io::{self, Write};
use std::ops::Range;

use sawmill_footer::{Element, PhysicalType};
use serde::Serialize;

use crate::text::json::Each;
use crate::text::style::TextStyle;
use crate::text::table::Table;
use crate::text::values::{CLIP, Reader, Value};

/// How many values to put into one table: their widths decide the width of its columns.
const ROWS: usize = 10_000;

/// The values of a decompressed dictionary page in encoding PLAIN.
pub struct DictionaryValues<'a> {
    reader: Reader,
    bytes: &'a [u8],
    /// Where each value is.
    places: Vec<Range<u32>>,
}

impl<'a> DictionaryValues<'a> {
    /// Finds the `count` values of a column in the bytes of its dictionary.
    ///
    /// # Errors
    ///
    /// The bytes are not as many values of the column's type.
    pub fn new(column: Element<'_>, bytes: &'a [u8], count: usize) -> Result<Self, String> {
        let physical = column.physical_type().unwrap_or(PhysicalType::Unknown(-1));
        if matches!(physical, PhysicalType::Boolean | PhysicalType::Unknown(_)) {
            return Err(format!("expected a type with dictionaries, found {physical}"));
        }
        let len = physical.width(column.type_length());
        let found = |at: usize| format!("expected {count} values in its {} bytes, found {at}", bytes.len());
        // Values of no bytes need not be counted one by one.
        let smallest = len.unwrap_or(4);
        if u32::try_from(bytes.len()).is_err() || count.saturating_mul(smallest.max(1)) > bytes.len() {
            return Err(found(bytes.len() / smallest.max(1)));
        }
        let mut places = Vec::with_capacity(count);
        let mut at = 0;
        for place in 0..count {
            let len = match len {
                Some(len) => len,
                None => {
                    let length = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
                    at += 4;
                    u32::from_le_bytes(*length.ok_or_else(|| found(place))?) as usize
                }
            };
            let end = at.checked_add(len).filter(|&end| end <= bytes.len()).ok_or_else(|| found(place))?;
            // The bytes' length has 32 bits.
            places.push(at as u32..end as u32);
            at = end;
        }
        Ok(Self { reader: Reader::new(column, physical), bytes, places })
    }

    fn values(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        let of = |place: &Range<u32>| self.bytes.get(place.start as usize..place.end as usize);
        self.places.iter().map(move |place| self.reader.value(of(place).unwrap_or_default()))
    }

    /// How many values, and their bytes: `3 values, 26 B (24 B compressed)`.
    pub fn summary(&self, compressed: u32, style: &TextStyle) -> String {
        let (count, bytes) = (style.count(self.places.len() as u64), style.bytes(self.bytes.len() as u64));
        let values = if self.places.len() == 1 { "value" } else { "values" };
        format!("{count} {values}, {bytes} ({} compressed)", style.bytes(compressed.into()))
    }

    /// Writes a table of the first values with their indices.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn text(&self, limit: usize, style: &TextStyle, out: &mut dyn Write) -> io::Result<()> {
        let mut values = self.values().enumerate().take(limit).peekable();
        while values.peek().is_some() {
            let mut table = Table::new("index>, value");
            for (index, value) in values.by_ref().take(ROWS) {
                table.row(&[&index, &value.shown(style.at_most(CLIP))]);
            }
            table.write(out)?;
        }
        match self.places.len().saturating_sub(limit) {
            0 => Ok(()),
            more => writeln!(out, "... {} more", style.count(more as u64)),
        }
    }

    /// Writes a JSON object of what `head` has and of the first values.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn json(&self, head: serde_json::Value, limit: usize, out: &mut dyn Write) -> io::Result<()> {
        let values = Each(|| self.values().take(limit));
        serde_json::to_writer_pretty(out, &Document { head, values }).map_err(io::Error::from)
    }
}

#[derive(Serialize)]
struct Document<V> {
    #[serde(flatten)]
    head: serde_json::Value,
    values: V,
}

#[cfg(test)]
mod tests {
    use sawmill_footer::{Footer, Options};

    use super::*;
    use crate::synthetic::{SyntheticColumns, SyntheticFooter};

    /// The shown values of a dictionary of the first column of this kind.
    fn shown(kind: SyntheticColumns, bytes: &[u8], count: usize) -> Result<Vec<String>, String> {
        let footer = SyntheticFooter { columns: 1, row_groups: 1, kind, seed: 1 }.bytes();
        let footer = Footer::decode(footer, &Options::new()).unwrap();
        let values = DictionaryValues::new(footer.schema().leaf(0).unwrap(), bytes, count)?;
        Ok(values.values().map(|value| value.shown(CLIP)).collect())
    }

    #[test]
    fn values_have_the_length_of_their_type_or_state_it() {
        let floats = [0.5_f32.to_le_bytes(), (-2.0_f32).to_le_bytes()].concat();
        assert_eq!(shown(SyntheticColumns::Float, &floats, 2).unwrap(), ["0.5", "-2.0"]);
        let text = b"\x01\0\0\0a\0\0\0\0\x02\0\0\0bc";
        assert_eq!(shown(SyntheticColumns::Text, text, 3).unwrap(), ["\"a\"", "\"\"", "\"bc\""]);
        assert!(shown(SyntheticColumns::Text, b"", 0).unwrap().is_empty());
    }

    #[test]
    fn bytes_that_are_not_as_many_values_are_an_error_whatever_they_claim() {
        for (bytes, count) in
            [(&b"\x09\0\0\0a"[..], 1), (b"\x01\0\0\0a", 2), (b"", usize::MAX), (b"\x01\0\0", 1)]
        {
            let error = shown(SyntheticColumns::Text, bytes, count).unwrap_err();
            assert!(error.contains(&format!("expected {count} values")), "{error}");
        }
        assert!(shown(SyntheticColumns::Float, &[0; 7], 2).is_err());
    }
}
