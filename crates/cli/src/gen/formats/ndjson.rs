//! Values as JSON where ours differs from the `arrow-json` crate, which
//!
//! - silently drops floats that are not finite, for which JSON has no numbers, and map entries whose value is null;
//! - writes UUIDs and intervals as hexadecimal digits, and text that is JSON as strings;
//! - encodes the elements of a list by the list's field and misses the mark of JSON on their own field.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, ListLikeArray, RecordBatch, StringArray};
use arrow_json::writer::{NullableEncoder, make_encoder};
use arrow_json::{Encoder, EncoderFactory, EncoderOptions};
use arrow_schema::{ArrowError, DataType, FieldRef, Fields};
use serde::de::IgnoredAny;

use super::map_keys::key_texts;
use super::text_form::text_of_bytes;

/// The extension type of text that is JSON.
const JSON: &str = "arrow.json";

/// How many bytes of JSON are gathered before they are written, and how long a part of a text is.
const PART: usize = 16 * 1024;

/// Options that produce the crate's own encoders.
static PLAIN: LazyLock<EncoderOptions> = LazyLock::new(EncoderOptions::default);

/// Objects with all members.
pub(super) static WHOLE: LazyLock<EncoderOptions> = LazyLock::new(|| {
    EncoderOptions::default().with_explicit_nulls(true).with_encoder_factory(Arc::new(Encoders))
});

/// Writes the rows of a batch with all members, one on each line, while they are made: with its escapes a text may take
/// six times its bytes, which are never in memory together.
///
/// # Errors
/// A column has a type without a form in JSON, or the output fails.
pub(crate) fn write_rows(batch: &RecordBatch, out: &mut dyn Write) -> Result<(), ArrowError> {
    let mut rows = Members::new(batch.schema_ref().fields(), batch.columns())?;
    let mut parts = Parts { out, gathered: Vec::new(), most: PART };
    for row in 0..batch.num_rows() {
        rows.write(row, &mut parts)?;
        parts.gathered.push(b'\n');
    }
    parts.most = 0;
    Ok(parts.pass_on()?)
}

/// Makes the encoders of the values that are written here; all others get the crate's.
#[derive(Debug)]
pub(super) struct Encoders;

impl EncoderFactory for Encoders {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let form = Form::new(field, array, options)?;
        Ok(form.map(|form| NullableEncoder::new(Box::new(form), array.nulls().cloned())))
    }
}

/// An output that takes JSON in parts.
struct Parts<'w> {
    out: &'w mut dyn Write,
    gathered: Vec<u8>,
    /// How many bytes are gathered before they are written.
    most: usize,
}

impl Parts<'_> {
    /// Writes the gathered bytes if they are too many.
    fn pass_on(&mut self) -> io::Result<()> {
        if self.gathered.len() > self.most {
            self.out.write_all(&self.gathered)?;
            self.gathered.clear();
            self.gathered.shrink_to(8 * PART);
        }
        Ok(())
    }

    fn push(&mut self, bytes: &[u8]) {
        self.gathered.extend_from_slice(bytes);
    }

    /// Adds a string.
    fn string(&mut self, mut text: &str) -> io::Result<()> {
        if text.len() <= PART {
            return Ok(serde_json::to_writer(&mut self.gathered, text)?);
        }
        self.push(b"\"");
        let mut quoted = Vec::new();
        while !text.is_empty() {
            let (part, rest) = text.split_at(text.floor_char_boundary(PART));
            text = rest;
            quoted.clear();
            serde_json::to_writer(&mut quoted, part)?;
            self.push(quoted.get(1..quoted.len() - 1).unwrap_or_default());
            self.pass_on()?;
        }
        self.push(b"\"");
        Ok(())
    }

    /// Adds the brackets, and between them the values of a range, which `write` adds one by one.
    fn sequence(
        &mut self,
        [open, close]: [u8; 2],
        range: Range<usize>,
        mut write: impl FnMut(usize, &mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        self.gathered.push(open);
        for place in range.clone() {
            if place > range.start {
                self.gathered.push(b',');
            }
            write(place, self)?;
        }
        self.gathered.push(close);
        Ok(())
    }
}

/// The fields of a struct.
struct Members<'a>(Vec<(&'a str, Values<'a>)>);

impl<'a> Members<'a> {
    fn new(fields: &'a Fields, columns: &'a [ArrayRef]) -> Result<Self, ArrowError> {
        let member = |(field, column): (&'a FieldRef, &'a ArrayRef)| {
            Ok((field.name().as_str(), Values::new(field, column, &WHOLE)?))
        };
        fields.iter().zip(columns).map(member).collect::<Result<_, _>>().map(Self)
    }

    fn write(&mut self, i: usize, out: &mut Parts<'_>) -> io::Result<()> {
        let members = &mut self.0;
        out.sequence(*b"{}", 0..members.len(), |member, out| {
            let (name, values) = &mut members[member];
            out.string(name)?;
            out.gathered.push(b':');
            values.write(i, out)
        })
    }
}

/// The values of an array.
enum Values<'a> {
    Own(&'a dyn Array, Form<'a>),
    /// They take no more than about twice their bytes.
    OfCrate(NullableEncoder<'a>),
}

impl<'a> Values<'a> {
    fn new(
        field: &'a FieldRef,
        array: &'a ArrayRef,
        options: &'a EncoderOptions,
    ) -> Result<Self, ArrowError> {
        Ok(match Form::new(field, array, options)? {
            Some(form) => Self::Own(array, form),
            None => Self::OfCrate(make_encoder(field, array, options)?),
        })
    }

    fn is_null(&self, i: usize) -> bool {
        match self {
            Self::Own(array, _) => array.is_null(i),
            Self::OfCrate(encoder) => encoder.is_null(i),
        }
    }

    fn write(&mut self, i: usize, out: &mut Parts<'_>) -> io::Result<()> {
        match self {
            _ if self.is_null(i) => out.push(b"null"),
            Self::Own(_, form) => form.write(i, out)?,
            Self::OfCrate(encoder) => encoder.encode(i, &mut out.gathered),
        }
        out.pass_on()
    }
}

/// How the values of an array are written that are not null.
enum Form<'a> {
    /// Text, and whether it may be JSON.
    Text(&'a dyn Array, ReadText, bool),
    /// Bytes that are text without quotes.
    Bytes(&'a FixedSizeBinaryArray, fn(&[u8]) -> String),
    /// Floats. Those that are not finite become the strings that PostgreSQL's `to_jsonb` writes.
    Float(Box<dyn Fn(usize) -> f64 + 'a>, NullableEncoder<'a>),
    List(Box<dyn Fn(usize) -> Range<usize> + 'a>, Box<Values<'a>>),
    /// Maps, with all entries.
    Map(&'a [i32], StringArray, Box<Values<'a>>),
    Struct(Members<'a>),
}

/// Reads a value of an array of text.
type ReadText = fn(&dyn Array, usize) -> &str;

impl<'a> Form<'a> {
    fn new(
        field: &'a FieldRef,
        array: &'a dyn Array,
        options: &'a EncoderOptions,
    ) -> Result<Option<Self>, ArrowError> {
        let is_json = field.extension_type_name() == Some(JSON);
        let in_parts = options.explicit_nulls();
        if let Some(read) = reader_of_text(array.data_type()) {
            return Ok((in_parts || is_json).then_some(Self::Text(array, read, is_json)));
        }
        let float = |value: Box<dyn Fn(usize) -> f64 + 'a>| {
            Ok::<_, ArrowError>(Self::Float(value, make_encoder(field, array, &PLAIN)?))
        };
        Ok(Some(match array.data_type() {
            DataType::FixedSizeBinary(_) => match text_of_bytes(field) {
                Some(text) => Self::Bytes(array.as_fixed_size_binary(), text),
                None => return Ok(None),
            },
            DataType::Float16 => float(Box::new(|i| array.as_primitive::<Float16Type>().value(i).to_f64()))?,
            DataType::Float32 => float(Box::new(|i| array.as_primitive::<Float32Type>().value(i).into()))?,
            DataType::Float64 => float(Box::new(|i| array.as_primitive::<Float64Type>().value(i)))?,
            DataType::Map(..) => {
                let (maps, fields) = (array.as_map(), array.as_map().entries().fields());
                let keys = key_texts(&fields[0], maps.keys())?;
                let values = Values::new(&fields[1], maps.values(), options)?;
                Self::Map(maps.offsets(), keys, Box::new(values))
            }
            DataType::Struct(fields) if in_parts => {
                Self::Struct(Members::new(fields, array.as_struct().columns())?)
            }
            DataType::List(item) => Self::list(item, array.as_list::<i32>(), options)?,
            DataType::LargeList(item) => Self::list(item, array.as_list::<i64>(), options)?,
            DataType::ListView(item) => Self::list(item, array.as_list_view::<i32>(), options)?,
            DataType::LargeListView(item) => Self::list(item, array.as_list_view::<i64>(), options)?,
            DataType::FixedSizeList(item, _) => Self::list(item, array.as_fixed_size_list(), options)?,
            _ => return Ok(None),
        }))
    }

    /// Lists, whose elements are written by their own field.
    fn list<L: ListLikeArray>(
        item: &'a FieldRef,
        lists: &'a L,
        options: &'a EncoderOptions,
    ) -> Result<Self, ArrowError> {
        let values = Values::new(item, lists.values(), options)?;
        Ok(Self::List(Box::new(|i| lists.element_range(i)), Box::new(values)))
    }

    fn write(&mut self, i: usize, out: &mut Parts<'_>) -> io::Result<()> {
        match self {
            Self::Text(array, read, may_be_json) => {
                let text = read(*array, i);
                if !(*may_be_json && write_json(text, &mut out.gathered)) {
                    out.string(text)?;
                }
            }
            Self::Bytes(bytes, text) => out.string(&text(bytes.value(i)))?,
            Self::Float(value, finite) => match value(i) {
                value if value.is_finite() => finite.encode(i, &mut out.gathered),
                value if value.is_nan() => out.push(b"\"NaN\""),
                value if value > 0.0 => out.push(b"\"Infinity\""),
                _ => out.push(b"\"-Infinity\""),
            },
            Self::List(range, values) => out.sequence(*b"[]", range(i), |i, out| values.write(i, out))?,
            Self::Map(offsets, keys, values) => {
                let range = offsets[i] as usize..offsets[i + 1] as usize;
                out.sequence(*b"{}", range, |i, out| {
                    out.string(keys.value(i))?;
                    out.gathered.push(b':');
                    values.write(i, out)
                })?;
            }
            Self::Struct(members) => members.write(i, out)?,
        }
        Ok(())
    }
}

impl Encoder for Form<'_> {
    fn encode(&mut self, i: usize, out: &mut Vec<u8>) {
        let (gathered, most) = (std::mem::take(out), usize::MAX);
        let mut parts = Parts { out: &mut io::sink(), gathered, most };
        // Writing text to memory cannot fail.
        let _ = self.write(i, &mut parts);
        *out = parts.gathered;
    }
}

/// How arrays of this type are read as text, if they are text.
fn reader_of_text(data_type: &DataType) -> Option<ReadText> {
    let read: ReadText = match data_type {
        DataType::Utf8 => |array, i| array.as_string::<i32>().value(i),
        DataType::LargeUtf8 => |array, i| array.as_string::<i64>().value(i),
        DataType::Utf8View => |array, i| array.as_string_view().value(i),
        _ => return None,
    };
    Some(read)
}

/// Writes text that is JSON unchanged, but on one line. Returns whether it is.
fn write_json(text: &str, out: &mut Vec<u8>) -> bool {
    let is_valid = serde_json::from_str::<IgnoredAny>(text).is_ok();
    if is_valid {
        // Between values alone: within strings they are escaped.
        out.extend(text.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
    }
    is_valid
}
