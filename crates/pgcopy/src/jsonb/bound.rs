//! A jsonb layout bound to the arrays of one batch, and the writing of values.

use std::cell::RefCell;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, NullBuffer, i256};
use arrow_schema::{DataType, TimeUnit};
use half::f16;

use super::moment::{self, put};
use super::number::write_float;
use super::text::{write_hex, write_string};
use super::{Member, Node};
use crate::arrays::byte_strings::ByteStrings;
use crate::arrays::dictionary::Keys;
use crate::arrays::fault::{Fault, shown};
use crate::arrays::lists::{Items, Lists, Offsets};
use crate::values::interval::Interval;
use crate::values::numeric;
use std::io::Write;

/// A node and the array whose values it writes.
pub(crate) struct BoundNode<'a> {
    nulls: Option<&'a NullBuffer>,
    values: Values<'a>,
}

enum Values<'a> {
    Null,
    Bool(&'a BooleanBuffer),
    Int8(&'a [i8]),
    Int16(&'a [i16]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    UInt8(&'a [u8]),
    UInt16(&'a [u16]),
    UInt32(&'a [u32]),
    UInt64(&'a [u64]),
    Float16(&'a [f16]),
    Float32(&'a [f32]),
    Float64(&'a [f64]),
    Decimal32(&'a [i32], u16),
    Decimal64(&'a [i64], u16),
    Decimal128(&'a [i128], u16),
    Decimal256(&'a [i256], u16),
    Text(ByteStrings<'a>),
    Bytes(ByteStrings<'a>),
    Uuid(ByteStrings<'a>),
    Date32(&'a [i32]),
    Date64(&'a [i64]),
    Time32(&'a [i32], TimeUnit),
    Time64(&'a [i64], TimeUnit),
    Stamp(&'a [i64], TimeUnit, bool),
    Interval(&'a ArrayRef),
    Dictionary(Keys<'a>, Box<BoundNode<'a>>),
    List(Offsets<'a>, Box<BoundNode<'a>>),
    Struct(Vec<(&'a Member, BoundNode<'a>)>),
    Object {
        offsets: &'a [i32],
        keys: ByteStrings<'a>,
        values: Box<BoundNode<'a>>,
        order: RefCell<Vec<usize>>,
    },
    Pairs {
        offsets: &'a [i32],
        keys: Box<BoundNode<'a>>,
        values: Box<BoundNode<'a>>,
    },
}

/// Types without parts that have a form in jsonb.
pub(super) fn is_leaf(arrow: &DataType) -> bool {
    use DataType::*;
    arrow.is_integer()
        || arrow.is_floating()
        || ByteStrings::holds(arrow)
        || matches!(arrow, Null | Boolean | Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..))
        || matches!(arrow, Interval(_) | Duration(_))
}

impl Node {
    /// Binds an array of the planned type; an error names the type that came instead.
    pub(crate) fn bind<'a>(&'a self, array: &'a ArrayRef) -> Result<BoundNode<'a>, String> {
        let values = self.values(array)?;
        let values = values.ok_or_else(|| format!("an array of {} came unexpectedly", array.data_type()))?;
        Ok(BoundNode { nulls: array.nulls().filter(|nulls| nulls.null_count() > 0), values })
    }

    fn values<'a>(&'a self, array: &'a ArrayRef) -> Result<Option<Values<'a>>, String> {
        macro_rules! some {
            ($value:expr) => {
                match $value {
                    Some(value) => value,
                    None => return Ok(None),
                }
            };
        }
        macro_rules! primitive {
            ($t:ty) => {
                some!(array.as_primitive_opt::<$t>()).values()
            };
        }
        Ok(Some(match self {
            Self::Leaf => some!(leaf(array)),
            Self::Uuid => Values::Uuid(some!(ByteStrings::bind(array))),
            Self::Interval => Values::Interval(array),
            Self::Decimal(scale) => match array.data_type() {
                DataType::Decimal32(..) => Values::Decimal32(primitive!(Decimal32Type), *scale),
                DataType::Decimal64(..) => Values::Decimal64(primitive!(Decimal64Type), *scale),
                DataType::Decimal128(..) => Values::Decimal128(primitive!(Decimal128Type), *scale),
                _ => Values::Decimal256(primitive!(Decimal256Type), *scale),
            },
            Self::Dictionary(node) => {
                let (keys, entries) = some!(Keys::bind(array));
                Values::Dictionary(keys, Box::new(node.bind(entries)?))
            }
            Self::List(node) => match some!(Lists::bind(array)) {
                Lists { offsets, items: Items::Values(items), .. } => {
                    Values::List(offsets, Box::new(node.bind(items)?))
                }
                _ => return Ok(None),
            },
            Self::Struct(members) => {
                let parts = some!(array.as_struct_opt()).columns();
                let mut bound = Vec::with_capacity(members.len());
                for member in members {
                    bound.push((member, member.node.bind(some!(parts.get(member.field)))?));
                }
                Values::Struct(bound)
            }
            Self::Object(node) => {
                let map = some!(array.as_map_opt());
                let keys = some!(ByteStrings::bind(map.keys()));
                let values = Box::new(node.bind(map.values())?);
                Values::Object { offsets: map.value_offsets(), keys, values, order: RefCell::default() }
            }
            Self::Pairs(key, value) => {
                let map = some!(array.as_map_opt());
                let keys = Box::new(key.bind(map.keys())?);
                Values::Pairs {
                    offsets: map.value_offsets(),
                    keys,
                    values: Box::new(value.bind(map.values())?),
                }
            }
        }))
    }
}

fn leaf(array: &ArrayRef) -> Option<Values<'_>> {
    macro_rules! values {
        ($t:ty) => {
            array.as_primitive_opt::<$t>()?.values()
        };
    }
    Some(match array.data_type() {
        DataType::Null => Values::Null,
        DataType::Boolean => Values::Bool(array.as_boolean_opt()?.values()),
        DataType::Int8 => Values::Int8(values!(Int8Type)),
        DataType::Int16 => Values::Int16(values!(Int16Type)),
        DataType::Int32 => Values::Int32(values!(Int32Type)),
        DataType::Int64 => Values::Int64(values!(Int64Type)),
        DataType::UInt8 => Values::UInt8(values!(UInt8Type)),
        DataType::UInt16 => Values::UInt16(values!(UInt16Type)),
        DataType::UInt32 => Values::UInt32(values!(UInt32Type)),
        DataType::UInt64 => Values::UInt64(values!(UInt64Type)),
        DataType::Float16 => Values::Float16(values!(Float16Type)),
        DataType::Float32 => Values::Float32(values!(Float32Type)),
        DataType::Float64 => Values::Float64(values!(Float64Type)),
        DataType::Date32 => Values::Date32(values!(Date32Type)),
        DataType::Date64 => Values::Date64(values!(Date64Type)),
        DataType::Time32(TimeUnit::Second) => Values::Time32(values!(Time32SecondType), TimeUnit::Second),
        DataType::Time32(unit) => Values::Time32(values!(Time32MillisecondType), *unit),
        DataType::Time64(TimeUnit::Microsecond) => {
            Values::Time64(values!(Time64MicrosecondType), TimeUnit::Microsecond)
        }
        DataType::Time64(unit) => Values::Time64(values!(Time64NanosecondType), *unit),
        DataType::Timestamp(unit, zone) => {
            let values = match unit {
                TimeUnit::Second => values!(TimestampSecondType),
                TimeUnit::Millisecond => values!(TimestampMillisecondType),
                TimeUnit::Microsecond => values!(TimestampMicrosecondType),
                TimeUnit::Nanosecond => values!(TimestampNanosecondType),
            };
            Values::Stamp(values, *unit, zone.is_some())
        }
        DataType::Interval(_) | DataType::Duration(_) => Values::Interval(array),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Values::Text(ByteStrings::bind(array)?),
        _ => Values::Bytes(ByteStrings::bind(array)?),
    })
}

impl BoundNode<'_> {
    /// Appends a value's text, `null` where it is NULL.
    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
        if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        match &self.values {
            Values::Null => out.extend_from_slice(b"null"),
            Values::Bool(values) => {
                let text: &[u8] = if values.value(row) { b"true" } else { b"false" };
                out.extend_from_slice(text);
            }
            Values::Int8(values) => put!(out, "{}", values[row]),
            Values::Int16(values) => put!(out, "{}", values[row]),
            Values::Int32(values) => put!(out, "{}", values[row]),
            Values::Int64(values) => put!(out, "{}", values[row]),
            Values::UInt8(values) => put!(out, "{}", values[row]),
            Values::UInt16(values) => put!(out, "{}", values[row]),
            Values::UInt32(values) => put!(out, "{}", values[row]),
            Values::UInt64(values) => put!(out, "{}", values[row]),
            Values::Float16(values) => write_float(values[row].to_f32(), out),
            Values::Float32(values) => write_float(values[row], out),
            Values::Float64(values) => write_float(values[row], out),
            Values::Decimal32(values, scale) => numeric::write_text(&values[row].to_string(), *scale, out),
            Values::Decimal64(values, scale) => numeric::write_text(&values[row].to_string(), *scale, out),
            Values::Decimal128(values, scale) => numeric::write_text(&values[row].to_string(), *scale, out),
            Values::Decimal256(values, scale) => numeric::write_text(&values[row].to_string(), *scale, out),
            Values::Text(values) => write_string(values.value(row), out)?,
            Values::Bytes(values) => {
                out.extend_from_slice(b"\"\\\\x");
                write_hex(values.value(row), out);
                out.push(b'"');
            }
            Values::Uuid(values) => {
                out.push(b'"');
                for (i, part) in values.value(row).chunks(2).enumerate() {
                    if (2..=5).contains(&i) {
                        out.push(b'-');
                    }
                    write_hex(part, out);
                }
                out.push(b'"');
            }
            Values::Date32(values) => moment::write_date(i64::from(values[row]), out),
            Values::Date64(values) => {
                let value = values[row];
                if value.rem_euclid(86_400_000) != 0 {
                    return Err(Fault::new(0, format!("the date {value} (Date64) is not a whole day")));
                }
                moment::write_date(value.div_euclid(86_400_000), out);
            }
            Values::Time32(values, unit) => moment::write_time(i64::from(values[row]), *unit, out),
            Values::Time64(values, unit) => moment::write_time(values[row], *unit, out),
            Values::Stamp(values, unit, zone) => moment::write_timestamp(values[row], *unit, *zone, out),
            Values::Interval(array) => moment::write_interval(Interval::read(array, row)?, out),
            Values::Dictionary(keys, entries) => entries.write(keys.key(row), out)?,
            Values::List(offsets, items) => {
                write_array(offsets.range(row), out, |item, out| items.write(item, out))?
            }
            Values::Struct(members) => {
                out.push(b'{');
                for (member, node) in members {
                    out.extend_from_slice(&member.lead);
                    node.write(row, out).map_err(|fault| fault.below(&format!(".{}", member.name)))?;
                }
                out.push(b'}');
            }
            Values::Object { offsets, keys, values, order } => {
                let entries = offsets[row] as usize..offsets[row + 1] as usize;
                let mut order = order.borrow_mut();
                write_object(entries, keys, values, &mut order, out)?;
            }
            Values::Pairs { offsets, keys, values } => {
                let entries = offsets[row] as usize..offsets[row + 1] as usize;
                write_array(entries, out, |entry, out| {
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

fn write_array(
    items: std::ops::Range<usize>,
    out: &mut Vec<u8>,
    write: impl Fn(usize, &mut Vec<u8>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    out.push(b'[');
    let first = items.start;
    for item in items {
        if item > first {
            out.extend_from_slice(b", ");
        }
        write(item, out).map_err(|fault| fault.below(&format!("[{}]", item - first)))?;
    }
    out.push(b']');
    Ok(())
}

fn write_object(
    entries: std::ops::Range<usize>,
    keys: &ByteStrings<'_>,
    values: &BoundNode<'_>,
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
                    format!("the map has the key {} twice, a jsonb object cannot", name()),
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
