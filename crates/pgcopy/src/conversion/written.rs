//! Values written as the text that another type reads.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};

use super::shapes::Shapes;
use super::{numbers, to_wire};
use crate::arrays::byte_strings::ByteStrings;
use crate::arrays::fault::{Fault, shown};
use crate::arrays::lists::{Items, Lists};
use crate::arrays::marks::{is_interval, is_uuid};
use crate::from_text::TextForm;
use crate::jsonb::JsonLayout;
use crate::jsonb::text::write_hex;
use crate::types::column_type::item_of;
use crate::types::pg_type::PgType;
use crate::types::server_type::ServerType;

/// The server's types whose text is of no number, boolean, date or UUID, or of another value than SQL's cast gives.
const NO_SCALARS: [&str; 18] = [
    "point",
    "line",
    "lseg",
    "box",
    "path",
    "polygon",
    "circle",
    "inet",
    "cidr",
    "macaddr",
    "macaddr8",
    "bit",
    "bit varying",
    "char",
    "xml",
    "tsquery",
    "jsonpath",
    "pg_lsn",
];

/// How the values of a field are written, planned once per column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    /// Text as it is; numbers and booleans as the server writes them.
    Plain,
    /// Nested values as JSON.
    Json(JsonLayout),
    /// Dates, times, intervals and UUIDs: JSON without its quotes, and with a blank between date and time.
    Unquoted(JsonLayout),
    /// The same of timestamps at midnight, without the time.
    Day(JsonLayout),
    /// Shapes as hexadecimal digits, after their reference system.
    Shape(Shapes),
    /// Lists as arrays, such as `{1,NULL}`.
    Array(Box<Writing>),
    /// Maps as hstore: `"a"=>"1"`.
    Pairs(Box<Writing>, Box<Writing>),
}

/// A value that a type of the server gets.
enum Value {
    /// In the wire format.
    Known(Vec<u8>),
    /// As text that the server reads.
    Text(String),
    /// Not at all, and why.
    Refused(String),
}

/// Appends the value of a row, which is not null.
type Write<'a> = Box<dyn Fn(usize, &mut Vec<u8>) -> Result<(), Fault> + 'a>;

impl Writing {
    /// Returns how a column of this type gets the values of a field that it does not take as they are.
    pub(super) fn to_plain(field: &Field, target: PgType) -> Option<Self> {
        use PgType::{Bool, Char, Date, Json, Jsonb, Name, Numeric, Oid, Text, Varchar};
        let arrow = field.data_type();
        match (arrow, target) {
            (arrow, Numeric(_) | Bool | Oid) if arrow.is_numeric() => Some(Self::Plain),
            (_, Text | Varchar(_) | Char(_) | Name) => Self::scalar(field).or_else(|| Self::nested(field)),
            (arrow, Json | Jsonb) if arrow.is_numeric() || *arrow == DataType::Boolean => Some(Self::Plain),
            (_, Json) => Self::nested(field),
            (DataType::Timestamp(_, None), Date) => JsonLayout::new(field).ok().map(Self::Day),
            _ => None,
        }
    }

    /// Returns how a type that the server reads gets the values of a field. `base` is the type without a modifier.
    pub(super) fn to_server(field: &Field, of: &ServerType, base: &str) -> Option<Self> {
        let arrow = field.data_type();
        if let Some(element) = base.strip_suffix("[]").filter(|_| !arrow.is_string()) {
            let item = item_of(field)?;
            let base = if item_of(&item).is_some() { base } else { element };
            return Self::to_server(&item, of, base).map(Box::new).map(Self::Array);
        }
        let name = base.rsplit('.').next().unwrap_or(base).trim_matches('"');
        let is_time = ["timestamp", "time", "interval"].iter().any(|kind| name.starts_with(kind));
        match arrow {
            arrow if ByteStrings::holds(arrow) && !arrow.is_string() && !is_uuid(field) => {
                matches!(name, "geometry" | "geography").then(|| Self::Shape(Shapes::new(field, of)))
            }
            DataType::Map(entries, _) if name == "hstore" => {
                let DataType::Struct(parts) = entries.data_type() else { return None };
                let [key, value] = parts.as_ref() else { return None };
                let part = |field: &Field| Self::scalar(field).map(Box::new);
                Some(Self::Pairs(part(key)?, part(value)?))
            }
            // Without a zone it would be a time of the session's.
            DataType::Timestamp(_, Some(_)) => {
                name.ends_with("with time zone").then(|| Self::scalar(field)).flatten()
            }
            arrow if arrow.is_string() => Some(Self::Plain),
            _ if is_time && (name.ends_with("with time zone") || arrow.is_numeric()) => None,
            _ if NO_SCALARS.contains(&name) || name.ends_with("range") => None,
            _ => Self::scalar(field),
        }
    }

    fn scalar(field: &Field) -> Option<Self> {
        let arrow = field.data_type();
        if arrow.is_string() || arrow.is_numeric() || *arrow == DataType::Boolean {
            return Some(Self::Plain);
        }
        let is_moment = arrow.is_temporal() || is_uuid(field) || is_interval(field);
        is_moment.then(|| JsonLayout::new(field).ok()).flatten().map(Self::Unquoted)
    }

    fn nested(field: &Field) -> Option<Self> {
        let layout = if field.data_type().is_nested() { JsonLayout::new(field).ok() } else { None };
        layout.map(Self::Json)
    }

    /// Combines it with an array of the planned type; `None` for another one.
    fn bind<'a>(&'a self, array: &'a ArrayRef) -> Option<Write<'a>> {
        Some(match self {
            Self::Plain => match ByteStrings::bind(array) {
                Some(texts) => Box::new(move |row, out| {
                    out.extend_from_slice(texts.value(row));
                    Ok(())
                }),
                None => {
                    let write = numbers::writer(array)?;
                    Box::new(move |row, out| {
                        write(row, out);
                        Ok(())
                    })
                }
            },
            Self::Json(layout) => {
                let column = layout.bind(array).ok()?;
                Box::new(move |row, out| column.write(row, out))
            }
            Self::Unquoted(layout) | Self::Day(layout) => {
                let column = layout.bind(array).ok()?;
                let is_day = matches!(self, Self::Day(_));
                Box::new(move |row, out| {
                    let mut json = Vec::new();
                    column.write(row, &mut json)?;
                    write_moment(&json, is_day, out);
                    Ok(())
                })
            }
            Self::Shape(shapes) => {
                let values = ByteStrings::bind(array)?;
                let system = shapes.system.as_ref().map(|number| format!("SRID={number};"));
                Box::new(move |row, out| {
                    out.extend_from_slice(system.as_deref().unwrap_or_default().as_bytes());
                    write_hex(values.value(row), out);
                    Ok(())
                })
            }
            Self::Array(item) => {
                let Lists { offsets, items: Items::Values(items), .. } = Lists::bind(array)? else {
                    return None;
                };
                let (write, is_inner) = (item.bind(items)?, matches!(**item, Self::Array(_)));
                Box::new(move |row, out| {
                    out.push(b'{');
                    for (i, place) in offsets.range(row).enumerate() {
                        if i > 0 {
                            out.push(b',');
                        }
                        match (items.is_valid(place), is_inner) {
                            (false, _) => out.extend_from_slice(b"NULL"),
                            (true, true) => write(place, out)?,
                            (true, false) => {
                                let mut text = Vec::new();
                                write(place, &mut text).map_err(|fault| fault.below(&format!("[{i}]")))?;
                                write_quoted(&text, needs_quotes(&text), out);
                            }
                        }
                    }
                    out.push(b'}');
                    Ok(())
                })
            }
            Self::Pairs(key, value) => {
                let map = array.as_map_opt()?;
                let (keys, values) = (key.bind(map.keys())?, value.bind(map.values())?);
                Box::new(move |row, out| {
                    let ends = map.value_offsets();
                    for place in ends[row] as usize..ends[row + 1] as usize {
                        let mut text = Vec::new();
                        keys(place, &mut text)?;
                        write_quoted(&text, true, out);
                        out.extend_from_slice(b"=>");
                        text.clear();
                        match map.values().is_valid(place) {
                            true => values(place, &mut text).map(|()| write_quoted(&text, true, out))?,
                            false => out.extend_from_slice(b"NULL"),
                        }
                        out.extend_from_slice(b", ");
                    }
                    out.truncate(out.len() - if ends[row] < ends[row + 1] { 2 } else { 0 });
                    Ok(())
                })
            }
        })
    }

    /// Returns the values in the wire format of the type that reads their text. Adds to `faults` those that it would
    /// round or exclude.
    pub(super) fn parsed(
        &self,
        array: &ArrayRef,
        form: TextForm,
        faults: &mut Vec<Fault>,
    ) -> Option<ArrayRef> {
        let write = self.bind(array)?;
        let mut text = Vec::new();
        let each = |row, out: &mut Vec<u8>| {
            text.clear();
            write(row, &mut text).map_err(|fault| fault.what)?;
            let refused = |why| format!("the value {} does not fit: {why}", String::from_utf8_lossy(&text));
            form.write(&text, out).map_err(refused)
        };
        Some(to_wire(array, each, faults))
    }

    /// The same of a type that the server reads.
    ///
    /// # Errors
    /// The server did not answer.
    pub(super) fn read_by_server(
        &self,
        array: &ArrayRef,
        of: &ServerType,
        faults: &mut Vec<Fault>,
    ) -> Result<Option<ArrayRef>, String> {
        let Some(write) = self.bind(array) else { return Ok(None) };
        let shapes = match self {
            Self::Shape(shapes) => ByteStrings::bind(array).map(|bytes| (shapes, bytes)),
            _ => None,
        };
        let mut values = Vec::with_capacity(array.len());
        for row in (0..array.len()).filter(|row| array.is_valid(*row)) {
            if let Some(wire) = shapes.as_ref().and_then(|(shapes, bytes)| shapes.wire(bytes.value(row))) {
                values.push(Value::Known(wire));
                continue;
            }
            let mut text = Vec::new();
            let refused = write(row, &mut text).err().map(|fault| fault.what);
            values.push(match (refused, String::from_utf8(text)) {
                (Some(why), _) => Value::Refused(why),
                (None, Ok(text)) if !text.contains('\0') => Value::Text(text),
                (None, _) => Value::Refused("PostgreSQL does not store the character 0x00".to_owned()),
            });
        }
        let texts = values.iter().filter_map(|value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let (mut read, mut values) = (of.0.wire(&texts.collect::<Vec<_>>())?.into_iter(), values.iter());
        let each = |_, out: &mut Vec<u8>| {
            let unread = || "the server did not read it".to_owned();
            let (text, why) = match values.next() {
                Some(Value::Known(wire)) => {
                    out.extend_from_slice(wire);
                    return Ok(());
                }
                Some(Value::Text(text)) => match read.next() {
                    Some(Ok(wire)) => {
                        out.extend_from_slice(&wire);
                        return Ok(());
                    }
                    refused => (text.as_str(), refused.and_then(Result::err).unwrap_or_else(unread)),
                },
                Some(Value::Refused(why)) => ("", why.clone()),
                None => ("", unread()),
            };
            Err(format!("the text {} cannot be read as {of}: {why}", shown(text)))
        };
        Ok(Some(to_wire(array, each, faults)))
    }
}

/// Appends the text of a JSON string as the server writes the value outside of JSON, with times in UTC.
fn write_moment(json: &[u8], is_day: bool, out: &mut Vec<u8>) {
    let text = json.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(json);
    let (text, before) = match text.strip_suffix(b" BC") {
        Some(text) => (text, &b" BC"[..]),
        None => (text, &b""[..]),
    };
    // An interval begins with P.
    let time = text.iter().position(|byte| *byte == b'T').filter(|_| !text.starts_with(b"P"));
    match time.map(|at| (&text[..at], &text[at + 1..])) {
        Some((day, b"00:00:00")) if is_day => out.extend_from_slice(day),
        Some((day, time)) => {
            out.extend_from_slice(day);
            out.push(b' ');
            out.extend_from_slice(
                time.strip_suffix(b":00").filter(|time| time.contains(&b'+')).unwrap_or(time),
            );
        }
        None => out.extend_from_slice(text),
    }
    out.extend_from_slice(before);
}

/// Whether the text of an array quotes this element (`array_out` in src/backend/utils/adt/arrayfuncs.c).
fn needs_quotes(text: &[u8]) -> bool {
    let is_special = |byte: &u8| matches!(byte, b'{' | b'}' | b',' | b'"' | b'\\' | b' ' | b'\t'..=b'\r');
    text.is_empty() || text.eq_ignore_ascii_case(b"null") || text.iter().any(is_special)
}

fn write_quoted(text: &[u8], quoted: bool, out: &mut Vec<u8>) {
    if !quoted {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_the_server_writes_them() {
        let written = |json: &str, is_day| {
            let mut out = Vec::new();
            write_moment(json.as_bytes(), is_day, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written("\"2024-01-02T03:04:05.5+00:00\"", false), "2024-01-02 03:04:05.5+00");
        assert_eq!(written("\"0044-03-15T00:00:00 BC\"", false), "0044-03-15 00:00:00 BC");
        assert_eq!(written("\"0044-03-15T00:00:00 BC\"", true), "0044-03-15 BC");
        assert_eq!(written("\"2024-01-02T00:00:00.5\"", true), "2024-01-02 00:00:00.5");
        assert_eq!(written("\"P1Y2DT3H\"", false), "P1Y2DT3H");
    }

    #[test]
    fn elements_are_quoted_where_they_have_to_be() {
        for (text, quoted) in
            [("a", false), ("", true), ("NULL", true), ("a b", true), ("{", true), ("a\\", true)]
        {
            assert_eq!(needs_quotes(text.as_bytes()), quoted, "{text}");
        }
    }
}
