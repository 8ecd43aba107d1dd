//! Encoders for NDJSON where ours differs from the `arrow-json` crate:
//!
//! - The crate silently drops floats that are not finite, for which JSON has no numbers, and map entries whose value
//!   is null.
//! - It writes UUIDs and intervals as hexadecimal digits, and text that is JSON as strings.
//! - It encodes the elements of a list by the list's field and misses the mark of JSON on their own field. So lists
//!   are here as well.

use std::sync::LazyLock;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, ListLikeArray};
use arrow_json::writer::{NullableEncoder, make_encoder};
use arrow_json::{Encoder, EncoderFactory, EncoderOptions};
use arrow_schema::{ArrowError, DataType, FieldRef};
use serde::de::IgnoredAny;

use super::map_keys::{Keys, key_texts};
use super::text_form::text_of_bytes;

/// The extension type of text that is JSON.
const JSON: &str = "arrow.json";

/// Options that produce the crate's own encoders.
static PLAIN: LazyLock<EncoderOptions> = LazyLock::new(EncoderOptions::default);

/// Makes the encoders of these values; all others get the crate's.
#[derive(Debug)]
pub(crate) struct Encoders;

impl EncoderFactory for Encoders {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        if let Some(text) = reader_of_text(array.data_type()).filter(|_| is_json(field)) {
            let json = Json { array, text, strings: make_encoder(field, array, &PLAIN)? };
            return Ok(Some(NullableEncoder::new(Box::new(json), array.nulls().cloned())));
        }
        let encoder: Box<dyn Encoder + 'a> = match array.data_type() {
            DataType::FixedSizeBinary(_) => match text_of_bytes(field) {
                Some(text) => Box::new(Bytes { bytes: array.as_fixed_size_binary(), text }),
                None => return Ok(None),
            },
            DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                Box::new(Floats { array, finite: make_encoder(field, array, &PLAIN)? })
            }
            DataType::Map(..) => {
                let (maps, fields) = (array.as_map(), array.as_map().entries().fields());
                Box::new(Map {
                    offsets: maps.offsets(),
                    keys: keys(&fields[0], maps.keys(), options)?,
                    values: make_encoder(&fields[1], maps.values(), options)?,
                })
            }
            DataType::List(item) => elements(item, array.as_list::<i32>(), options)?,
            DataType::LargeList(item) => elements(item, array.as_list::<i64>(), options)?,
            DataType::ListView(item) => elements(item, array.as_list_view::<i32>(), options)?,
            DataType::LargeListView(item) => elements(item, array.as_list_view::<i64>(), options)?,
            DataType::FixedSizeList(item, _) => elements(item, array.as_fixed_size_list(), options)?,
            _ => return Ok(None),
        };
        Ok(Some(NullableEncoder::new(encoder, array.nulls().cloned())))
    }
}

/// Reads a value of an array of text.
pub(crate) type ReadText = fn(&dyn Array, usize) -> &str;

/// How arrays of this type are read as text, if they are text.
pub(crate) fn reader_of_text(data_type: &DataType) -> Option<ReadText> {
    let read: ReadText = match data_type {
        DataType::Utf8 => |array, i| array.as_string::<i32>().value(i),
        DataType::LargeUtf8 => |array, i| array.as_string::<i64>().value(i),
        DataType::Utf8View => |array, i| array.as_string_view().value(i),
        _ => return None,
    };
    Some(read)
}

/// Whether the text of a field is JSON.
pub(crate) fn is_json(field: &FieldRef) -> bool {
    field.extension_type_name() == Some(JSON)
}

/// Writes text that is JSON unchanged, but on one line. Returns whether it is.
pub(crate) fn write_json(text: &str, out: &mut Vec<u8>) -> bool {
    let is_valid = serde_json::from_str::<IgnoredAny>(text).is_ok();
    if is_valid {
        // Between values alone: within strings they are escaped.
        out.extend(text.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
    }
    is_valid
}

/// Bytes that are text without quotes.
struct Bytes<'a> {
    bytes: &'a FixedSizeBinaryArray,
    text: fn(&[u8]) -> String,
}

impl Encoder for Bytes<'_> {
    fn encode(&mut self, i: usize, out: &mut Vec<u8>) {
        out.push(b'"');
        out.extend_from_slice((self.text)(self.bytes.value(i)).as_bytes());
        out.push(b'"');
    }
}

/// Writes JSON text unchanged, but on one line, and any other text as a JSON string.
struct Json<'a> {
    array: &'a dyn Array,
    text: ReadText,
    strings: NullableEncoder<'a>,
}

impl Encoder for Json<'_> {
    fn encode(&mut self, i: usize, out: &mut Vec<u8>) {
        if !write_json((self.text)(self.array, i), out) {
            self.strings.encode(i, out);
        }
    }
}

/// Floats. Those that are not finite become the strings that PostgreSQL's `to_jsonb` writes.
struct Floats<'a> {
    array: &'a dyn Array,
    finite: NullableEncoder<'a>,
}

impl Encoder for Floats<'_> {
    fn encode(&mut self, i: usize, out: &mut Vec<u8>) {
        let value = match self.array.data_type() {
            DataType::Float16 => self.array.as_primitive::<Float16Type>().value(i).to_f64(),
            DataType::Float32 => self.array.as_primitive::<Float32Type>().value(i).into(),
            _ => self.array.as_primitive::<Float64Type>().value(i),
        };
        if value.is_finite() {
            return self.finite.encode(i, out);
        }
        out.extend_from_slice(match value {
            _ if value.is_nan() => b"\"NaN\"",
            _ if value > 0.0 => b"\"Infinity\"",
            _ => b"\"-Infinity\"",
        });
    }
}

/// Maps, with all entries.
struct Map<'a> {
    offsets: &'a [i32],
    keys: NullableEncoder<'a>,
    values: NullableEncoder<'a>,
}

impl Encoder for Map<'_> {
    fn encode(&mut self, i: usize, out: &mut Vec<u8>) {
        out.push(b'{');
        for entry in self.offsets[i] as usize..self.offsets[i + 1] as usize {
            if entry > self.offsets[i] as usize {
                out.push(b',');
            }
            self.keys.encode(entry, out);
            out.push(b':');
            encode_or_null(&mut self.values, entry, out);
        }
        out.push(b'}');
    }
}

/// The encoder of keys, which JSON has as strings alone.
pub(crate) fn keys<'a>(
    field: &'a FieldRef,
    keys: &'a ArrayRef,
    options: &'a EncoderOptions,
) -> Result<NullableEncoder<'a>, ArrowError> {
    Ok(match reader_of_text(keys.data_type()) {
        Some(_) if !is_json(field) => make_encoder(field, keys, options)?,
        _ => NullableEncoder::new(Box::new(Keys(key_texts(field, keys)?)), None),
    })
}

struct List<'a, L> {
    lists: &'a L,
    elements: NullableEncoder<'a>,
}

/// The encoder of lists, whose elements are encoded by their own field.
fn elements<'a, L: ListLikeArray>(
    item: &'a FieldRef,
    lists: &'a L,
    options: &'a EncoderOptions,
) -> Result<Box<dyn Encoder + 'a>, ArrowError> {
    Ok(Box::new(List { lists, elements: make_encoder(item, lists.values().as_ref(), options)? }))
}

impl<L: ListLikeArray> Encoder for List<'_, L> {
    fn encode(&mut self, i: usize, out: &mut Vec<u8>) {
        let range = self.lists.element_range(i);
        let first = range.start;
        out.push(b'[');
        for element in range {
            if element > first {
                out.push(b',');
            }
            encode_or_null(&mut self.elements, element, out);
        }
        out.push(b']');
    }
}

fn encode_or_null(values: &mut NullableEncoder<'_>, i: usize, out: &mut Vec<u8>) {
    match values.is_null(i) {
        true => out.extend_from_slice(b"null"),
        false => values.encode(i, out),
    }
}
