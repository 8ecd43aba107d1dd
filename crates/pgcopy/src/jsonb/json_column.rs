//! Writes the values of one Arrow array as jsonb: a layout, and the arrays of one batch.

use std::cell::RefCell;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, TimeUnit};
use half::f16;

use super::number::write_float;
use super::text::{write_hex, write_string, write_uuid};
use super::{JsonLayout, ObjectMember, moment};
use crate::arrays::byte_strings::ByteStrings;
use crate::arrays::dictionary::Keys;
use crate::arrays::fault::{Fault, shown};
use crate::arrays::integers::Integers;
use crate::arrays::lists::{Items, Lists, Offsets};
use crate::from_text::write_canonical;
use crate::values::interval::Interval;
use crate::values::numeric;

/// The array of one batch with the layout of its values.
pub(crate) struct JsonColumn<'a> {
    nulls: Option<&'a NullBuffer>,
    values: JsonValues<'a>,
}

enum JsonValues<'a> {
    Null,
    Bool(&'a BooleanBuffer),
    Integer(Integers<'a>),
    Float16(&'a [f16]),
    Float32(&'a [f32]),
    Float64(&'a [f64]),
    /// With the scale.
    Decimal(Integers<'a>, u16),
    Text(ByteStrings<'a>),
    Json(ByteStrings<'a>),
    Bytes(ByteStrings<'a>),
    Uuid(ByteStrings<'a>),
    /// Days.
    Date32(Integers<'a>),
    /// Milliseconds of whole days.
    Date64(Integers<'a>),
    Time(Integers<'a>, TimeUnit),
    /// With whether it has a time zone.
    Timestamp(Integers<'a>, TimeUnit, bool),
    Interval(&'a ArrayRef),
    Dictionary(Keys<'a>, Box<JsonColumn<'a>>),
    List(Offsets<'a>, Box<JsonColumn<'a>>),
    Struct(Vec<(&'a ObjectMember, JsonColumn<'a>)>),
    Object {
        offsets: &'a [i32],
        keys: ByteStrings<'a>,
        values: Box<JsonColumn<'a>>,
        order: RefCell<Vec<usize>>,
    },
    Pairs {
        offsets: &'a [i32],
        keys: Box<JsonColumn<'a>>,
        values: Box<JsonColumn<'a>>,
    },
}

/// Whether values of a type are written as a single jsonb number, string, boolean or null.
pub(super) fn is_leaf(arrow: &DataType) -> bool {
    use DataType::*;
    arrow.is_integer()
        || arrow.is_floating()
        || ByteStrings::holds(arrow)
        || matches!(arrow, Null | Boolean | Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..))
        || matches!(arrow, Interval(_) | Duration(_))
}

impl JsonLayout {
    /// Combines the layout with an array of the planned type. The error names the type of an unexpected
    /// array.
    pub(crate) fn bind<'a>(&'a self, array: &'a ArrayRef) -> Result<JsonColumn<'a>, String> {
        let values = self.values(array)?;
        let values = values.ok_or_else(|| format!("unexpected array of type {}", array.data_type()))?;
        Ok(JsonColumn { nulls: array.nulls().filter(|nulls| nulls.null_count() > 0), values })
    }

    fn values<'a>(&'a self, array: &'a ArrayRef) -> Result<Option<JsonValues<'a>>, String> {
        macro_rules! some {
            ($value:expr) => {
                match $value {
                    Some(value) => value,
                    None => return Ok(None),
                }
            };
        }
        Ok(Some(match self {
            Self::Leaf => some!(leaf(array)),
            Self::Json => JsonValues::Json(some!(ByteStrings::bind(array))),
            Self::Uuid => JsonValues::Uuid(some!(ByteStrings::bind(array))),
            Self::Interval => JsonValues::Interval(array),
            Self::Decimal(scale) => JsonValues::Decimal(some!(Integers::bind(array)), *scale),
            Self::Dictionary(layout) => {
                let (keys, entries) = some!(Keys::bind(array));
                JsonValues::Dictionary(keys, Box::new(layout.bind(entries)?))
            }
            Self::List(layout) => match some!(Lists::bind(array)) {
                Lists { offsets, items: Items::Values(items), .. } => {
                    JsonValues::List(offsets, Box::new(layout.bind(items)?))
                }
                _ => return Ok(None),
            },
            Self::Struct(members) => {
                let parts = some!(array.as_struct_opt()).columns();
                let mut bound = Vec::with_capacity(members.len());
                for member in members {
                    bound.push((member, member.layout.bind(some!(parts.get(member.field)))?));
                }
                JsonValues::Struct(bound)
            }
            Self::Object(layout) => {
                let map = some!(array.as_map_opt());
                let keys = some!(ByteStrings::bind(map.keys()));
                let values = Box::new(layout.bind(map.values())?);
                JsonValues::Object { offsets: map.value_offsets(), keys, values, order: RefCell::default() }
            }
            Self::Pairs(key, value) => {
                let map = some!(array.as_map_opt());
                let keys = Box::new(key.bind(map.keys())?);
                JsonValues::Pairs {
                    offsets: map.value_offsets(),
                    keys,
                    values: Box::new(value.bind(map.values())?),
                }
            }
        }))
    }
}

fn leaf(array: &ArrayRef) -> Option<JsonValues<'_>> {
    macro_rules! floats {
        ($t:ty) => {
            array.as_primitive_opt::<$t>()?.values()
        };
    }
    let integers = || Integers::bind(array);
    Some(match array.data_type() {
        DataType::Null => JsonValues::Null,
        DataType::Boolean => JsonValues::Bool(array.as_boolean_opt()?.values()),
        arrow if arrow.is_integer() => JsonValues::Integer(integers()?),
        DataType::Float16 => JsonValues::Float16(floats!(Float16Type)),
        DataType::Float32 => JsonValues::Float32(floats!(Float32Type)),
        DataType::Float64 => JsonValues::Float64(floats!(Float64Type)),
        DataType::Date32 => JsonValues::Date32(integers()?),
        DataType::Date64 => JsonValues::Date64(integers()?),
        DataType::Time32(unit) | DataType::Time64(unit) => JsonValues::Time(integers()?, *unit),
        DataType::Timestamp(unit, zone) => JsonValues::Timestamp(integers()?, *unit, zone.is_some()),
        DataType::Interval(_) | DataType::Duration(_) => JsonValues::Interval(array),
        arrow if arrow.is_string() => JsonValues::Text(ByteStrings::bind(array)?),
        _ => JsonValues::Bytes(ByteStrings::bind(array)?),
    })
}

impl JsonColumn<'_> {
    /// Appends the text of a value, `null` if it is NULL.
    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
        if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        match &self.values {
            JsonValues::Null => out.extend_from_slice(b"null"),
            JsonValues::Bool(values) => {
                let text: &[u8] = if values.value(row) { b"true" } else { b"false" };
                out.extend_from_slice(text);
            }
            JsonValues::Integer(values) => values.write(row, out),
            JsonValues::Float16(values) => write_float(values[row].to_f32(), out),
            JsonValues::Float32(values) => write_float(values[row], out),
            JsonValues::Float64(values) => write_float(values[row], out),
            JsonValues::Decimal(values, scale) => numeric::write_text(&values.digits(row), *scale, out),
            JsonValues::Text(values) => write_string(values.value(row), out)?,
            JsonValues::Json(values) => {
                let text = values.value(row);
                write_canonical(text, false, out).map_err(|what| {
                    Fault::new(0, format!("{} is not JSON: {what}", shown(&String::from_utf8_lossy(text))))
                })?;
            }
            JsonValues::Bytes(values) => {
                out.extend_from_slice(b"\"\\\\x");
                write_hex(values.value(row), out);
                out.push(b'"');
            }
            JsonValues::Uuid(values) => {
                out.push(b'"');
                write_uuid(values.value(row), out);
                out.push(b'"');
            }
            JsonValues::Date32(values) => moment::write_date(values.get(row), out),
            JsonValues::Date64(values) => {
                let value = values.get(row);
                if value.rem_euclid(86_400_000) != 0 {
                    return Err(Fault::new(0, format!("the date {value} (Date64) is not a whole day")));
                }
                moment::write_date(value.div_euclid(86_400_000), out);
            }
            JsonValues::Time(values, unit) => moment::write_time(values.get(row), *unit, out),
            JsonValues::Timestamp(values, unit, zone) => {
                moment::write_timestamp(values.get(row), *unit, *zone, out)
            }
            JsonValues::Interval(array) => moment::write_interval(Interval::read(array, row)?, out),
            JsonValues::Dictionary(keys, entries) => entries.write(keys.key(row), out)?,
            JsonValues::List(offsets, items) => {
                write_array(offsets.range(row), b", ", out, |item, out| items.write(item, out))?
            }
            JsonValues::Struct(members) => {
                out.push(b'{');
                for (member, column) in members {
                    out.extend_from_slice(&member.lead);
                    column.write(row, out).map_err(|fault| fault.below(&format!(".{}", member.name)))?;
                }
                out.push(b'}');
            }
            JsonValues::Object { offsets, keys, values, order } => {
                let entries = offsets[row] as usize..offsets[row + 1] as usize;
                let mut order = order.borrow_mut();
                write_object(entries, keys, values, &mut order, out)?;
            }
            JsonValues::Pairs { offsets, keys, values } => {
                let entries = offsets[row] as usize..offsets[row + 1] as usize;
                write_array(entries, b", ", out, |entry, out| {
                    out.extend_from_slice(b"{\"key\": ");
                    keys.write(entry, out)?;
                    out.extend_from_slice(b", \"value\": ");
                    values.write(entry, out)?;
                    out.push(b'}');
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}

/// Appends items in brackets, with what separates them. A fault names its item.
pub fn write_array(
    items: std::ops::Range<usize>,
    separator: &[u8],
    out: &mut Vec<u8>,
    write: impl Fn(usize, &mut Vec<u8>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    out.push(b'[');
    let first = items.start;
    for item in items {
        if item > first {
            out.extend_from_slice(separator);
        }
        write(item, out).map_err(|fault| fault.below(&format!("[{}]", item - first)))?;
    }
    out.push(b']');
    Ok(())
}

fn write_object(
    entries: std::ops::Range<usize>,
    keys: &ByteStrings<'_>,
    values: &JsonColumn<'_>,
    order: &mut Vec<usize>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    order.clear();
    order.extend(entries);
    order.sort_unstable_by(|a, b| {
        let (a, b) = (keys.value(*a), keys.value(*b));
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    });
    out.push(b'{');
    for (i, entry) in order.iter().enumerate() {
        let key = keys.value(*entry);
        let name = || shown(&String::from_utf8_lossy(key));
        if i > 0 {
            if key == keys.value(order[i - 1]) {
                return Err(Fault::new(
                    0,
                    format!("the map contains the key {} twice; a jsonb object cannot", name()),
                ));
            }
            out.extend_from_slice(b", ");
        }
        write_string(key, out)?;
        out.extend_from_slice(b": ");
        values.write(*entry, out).map_err(|fault| fault.below(&format!("[{}]", name())))?;
    }
    out.push(b'}');
    Ok(())
}
