//! Rows as JSON, written while they are made: with its escapes a text may take six times its bytes, which are never in
//! memory together.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListLikeArray, MapArray, RecordBatch};
use arrow_json::EncoderOptions;
use arrow_json::writer::{NullableEncoder, make_encoder};
use arrow_schema::{ArrowError, DataType, FieldRef, Fields};

use crate::r#gen::formats::ndjson::{Encoders, ReadText, is_json, keys, reader_of_text, write_json};

/// How many bytes of JSON are gathered before they are written, and how long a part of a text is.
const PART: usize = 16 * 1024;

/// Nulls are written, and other values as in NDJSON.
static OPTIONS: LazyLock<EncoderOptions> = LazyLock::new(|| {
    EncoderOptions::default().with_explicit_nulls(true).with_encoder_factory(Arc::new(Encoders))
});

/// Writes the rows of a batch, one on each line.
///
/// # Errors
/// A column has a type without a form in JSON, or the output fails.
pub(super) fn write_rows(batch: &RecordBatch, out: &mut dyn Write) -> Result<(), Unwritten> {
    let schema = batch.schema_ref();
    let mut rows = Members::new(schema.fields(), batch.columns()).map_err(Unwritten::Type)?;
    Parts { out, gathered: Vec::new() }.lines(&mut rows, batch.num_rows()).map_err(Unwritten::Output)
}

/// Why rows were not written.
#[derive(Debug)]
pub(super) enum Unwritten {
    Type(ArrowError),
    Output(io::Error),
}

/// An output that takes JSON in parts.
struct Parts<'w> {
    out: &'w mut dyn Write,
    gathered: Vec<u8>,
}

impl Parts<'_> {
    fn lines(mut self, rows: &mut Members<'_>, count: usize) -> io::Result<()> {
        for row in 0..count {
            rows.write(row, &mut self)?;
            self.gathered.push(b'\n');
        }
        self.pass_on(0)
    }

    /// Writes the gathered bytes, if they are more than `most` bytes.
    fn pass_on(&mut self, most: usize) -> io::Result<()> {
        if self.gathered.len() > most {
            self.out.write_all(&self.gathered)?;
            self.gathered.clear();
            self.gathered.shrink_to(8 * PART);
        }
        Ok(())
    }

    /// Adds a string.
    fn string(&mut self, mut text: &str) -> io::Result<()> {
        if text.len() <= PART {
            return Ok(serde_json::to_writer(&mut self.gathered, text)?);
        }
        self.gathered.push(b'"');
        let mut quoted = Vec::new();
        while !text.is_empty() {
            let mut end = text.len().min(PART);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            let (part, rest) = text.split_at(end);
            text = rest;
            quoted.clear();
            serde_json::to_writer(&mut quoted, part)?;
            let escaped = quoted.get(1..quoted.len() - 1).unwrap_or_default();
            self.gathered.extend_from_slice(escaped);
            self.pass_on(PART)?;
        }
        self.gathered.push(b'"');
        Ok(())
    }
}

/// The fields of a struct.
struct Members<'a>(Vec<(&'a str, Values<'a>)>);

impl<'a> Members<'a> {
    fn new(fields: &'a Fields, columns: &'a [ArrayRef]) -> Result<Self, ArrowError> {
        let member = |(field, column): (&'a FieldRef, &'a ArrayRef)| {
            Ok::<_, ArrowError>((field.name().as_str(), Values::new(field, column.as_ref())?))
        };
        fields.iter().zip(columns).map(member).collect::<Result<_, _>>().map(Self)
    }

    fn write(&mut self, i: usize, out: &mut Parts<'_>) -> io::Result<()> {
        out.gathered.push(b'{');
        for (place, (name, values)) in self.0.iter_mut().enumerate() {
            if place > 0 {
                out.gathered.push(b',');
            }
            out.string(name)?;
            out.gathered.push(b':');
            values.write(i, out)?;
        }
        out.gathered.push(b'}');
        Ok(())
    }
}

/// The values of an array.
enum Values<'a> {
    /// Text, and whether it may be JSON.
    Text(&'a dyn Array, ReadText, bool),
    List(&'a dyn Array, fn(&dyn Array, usize) -> Range<usize>, Box<Self>),
    /// Keys and values.
    Map(&'a MapArray, Box<(Self, Self)>),
    Struct(&'a dyn Array, Members<'a>),
    /// All others take no more than about twice their bytes.
    Other(NullableEncoder<'a>),
}

impl<'a> Values<'a> {
    fn new(field: &'a FieldRef, array: &'a dyn Array) -> Result<Self, ArrowError> {
        if let Some(read) = reader_of_text(array.data_type()) {
            return Ok(Self::Text(array, read, is_json(field)));
        }
        let items = |item: &'a FieldRef, values: &'a ArrayRef| Self::new(item, values.as_ref()).map(Box::new);
        Ok(match array.data_type() {
            DataType::List(item) => {
                let values = items(item, array.as_list::<i32>().values())?;
                Self::List(array, |array, i| array.as_list::<i32>().element_range(i), values)
            }
            DataType::LargeList(item) => {
                let values = items(item, array.as_list::<i64>().values())?;
                Self::List(array, |array, i| array.as_list::<i64>().element_range(i), values)
            }
            DataType::FixedSizeList(item, _) => {
                let values = items(item, array.as_fixed_size_list().values())?;
                Self::List(array, |array, i| array.as_fixed_size_list().element_range(i), values)
            }
            DataType::Struct(fields) => {
                Self::Struct(array, Members::new(fields, array.as_struct().columns())?)
            }
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 => {
                    let maps = array.as_map();
                    let keys = Self::keys(&fields[0], maps.keys())?;
                    Self::Map(maps, Box::new((keys, Self::new(&fields[1], maps.values().as_ref())?)))
                }
                _ => Self::Other(make_encoder(field, array, &OPTIONS)?),
            },
            _ => Self::Other(make_encoder(field, array, &OPTIONS)?),
        })
    }

    /// The keys of a map, which JSON has as strings alone.
    fn keys(field: &'a FieldRef, keys: &'a ArrayRef) -> Result<Self, ArrowError> {
        match reader_of_text(keys.data_type()) {
            Some(read) if !is_json(field) => Ok(Self::Text(keys.as_ref(), read, false)),
            _ => self::keys(field, keys, &OPTIONS).map(Self::Other),
        }
    }

    fn is_null(&self, i: usize) -> bool {
        match self {
            Self::Text(array, ..) | Self::List(array, ..) | Self::Struct(array, _) => array.is_null(i),
            Self::Map(maps, _) => maps.is_null(i),
            Self::Other(encoder) => encoder.is_null(i),
        }
    }

    fn write(&mut self, i: usize, out: &mut Parts<'_>) -> io::Result<()> {
        if self.is_null(i) {
            out.gathered.extend_from_slice(b"null");
            return Ok(());
        }
        match self {
            Self::Text(array, read, may_be_json) => {
                let text = read(*array, i);
                if !(*may_be_json && write_json(text, &mut out.gathered)) {
                    out.string(text)?;
                }
            }
            Self::List(array, range, values) => {
                let range = range(*array, i);
                out.gathered.push(b'[');
                for item in range.clone() {
                    if item > range.start {
                        out.gathered.push(b',');
                    }
                    values.write(item, out)?;
                }
                out.gathered.push(b']');
            }
            Self::Map(maps, entries) => {
                let (keys, values) = &mut **entries;
                let (start, end) = (maps.value_offsets()[i] as usize, maps.value_offsets()[i + 1] as usize);
                out.gathered.push(b'{');
                for entry in start..end {
                    if entry > start {
                        out.gathered.push(b',');
                    }
                    keys.write(entry, out)?;
                    out.gathered.push(b':');
                    values.write(entry, out)?;
                }
                out.gathered.push(b'}');
            }
            Self::Struct(_, members) => members.write(i, out)?,
            Self::Other(encoder) => encoder.encode(i, &mut out.gathered),
        }
        out.pass_on(PART)
    }
}
