//! Columns of one batch, each an array bound to its form, that write their values as JSON.
//!
//! Binding happens once per batch; after that each value goes straight from the array's buffer into the
//! request body.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, NullBuffer, i256};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use base64::Engine as _;
use sawmill_pgcopy::{
    ByteStrings, Fault, INTERVAL_BYTES, Integers, Items, Keys, Lists, Offsets, ParquetInterval, shown, utf8,
    write_array, write_clock, write_hex, write_uuid,
};

use crate::encode::form::{Form, Member};
use crate::encode::json;
use crate::encode::native_column::NativeColumn;
use crate::encode::numbers::{self, Floats, Scale, scale_of};

/// A form and the array whose values it writes.
pub(crate) struct JsonColumn<'a> {
    pub nulls: Option<&'a NullBuffer>,
    pub values: Values<'a>,
}

pub(crate) enum Values<'a> {
    Null,
    Bool(&'a BooleanBuffer),
    Int(Integers<'a>),
    Decimal(Integers<'a>, u8, u8),
    Real(Floats<'a>),
    Double(Floats<'a>),
    Text(ByteStrings<'a>),
    Varchar(ByteStrings<'a>, u32),
    Base64(ByteStrings<'a>),
    Hex(ByteStrings<'a>),
    Uuid(ByteStrings<'a>),
    Millis(Integers<'a>, Scale, &'a DataType),
    Stamp(Integers<'a>, TimeUnit, bool),
    Day(Integers<'a>, bool),
    Clock(Integers<'a>, TimeUnit),
    Interval(&'a ArrayRef),
    Native(NativeColumn<'a>),
    Dictionary(Keys<'a>, Box<JsonColumn<'a>>),
    List(Offsets<'a>, Box<JsonColumn<'a>>),
    Struct(Vec<(&'a Member, JsonColumn<'a>)>),
    Entries(&'a [i32], Box<[(&'a Member, JsonColumn<'a>); 2]>),
}

impl Form {
    /// Binds an array; an error names the unexpected type.
    pub(crate) fn bind<'a>(&'a self, array: &'a ArrayRef) -> Result<JsonColumn<'a>, String> {
        let wrong = || format!("unexpected array of {}", array.data_type());
        let values = self.values(array)?.ok_or_else(wrong)?;
        Ok(JsonColumn { nulls: array.nulls().filter(|nulls| nulls.null_count() > 0), values })
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
        Ok(Some(match (self, array.data_type()) {
            (Self::Null, _) => Values::Null,
            (Self::Bool, _) => Values::Bool(some!(array.as_boolean_opt()).values()),
            (Self::Int, _) => Values::Int(some!(Integers::bind(array))),
            (Self::Decimal { from, to }, _) => Values::Decimal(some!(Integers::bind(array)), *from, *to),
            (Self::Real, DataType::Float16 | DataType::Float32) => Values::Real(some!(Floats::bind(array))),
            (Self::Double, _) => Values::Double(some!(Floats::bind(array))),
            (Self::Text, _) => Values::Text(some!(ByteStrings::bind(array))),
            (Self::Varchar(most), _) => Values::Varchar(some!(ByteStrings::bind(array)), *most),
            (Self::Base64, _) => Values::Base64(some!(ByteStrings::bind(array))),
            (Self::Hex, _) => Values::Hex(some!(ByteStrings::bind(array))),
            (Self::Uuid, _) => Values::Uuid(some!(ByteStrings::bind(array))),
            (Self::Millis { truncate }, data_type) => {
                let scale = some!(scale_of(data_type, *truncate));
                Values::Millis(some!(Integers::bind(array)), scale, data_type)
            }
            (Self::Stamp, DataType::Timestamp(unit, zone)) => {
                Values::Stamp(some!(Integers::bind(array)), *unit, zone.is_some())
            }
            (Self::Day, data_type) => {
                Values::Day(some!(Integers::bind(array)), matches!(data_type, DataType::Date64))
            }
            (Self::Clock, DataType::Time32(unit) | DataType::Time64(unit)) => {
                Values::Clock(some!(Integers::bind(array)), *unit)
            }
            (Self::Interval, _) => Values::Interval(array),
            (Self::Native { native, text }, _) => {
                Values::Native(some!(NativeColumn::bind(*native, *text, array)))
            }
            (Self::Dictionary(form), DataType::BinaryView) => return form.values(array),
            (Self::Dictionary(form), _) => {
                let (keys, entries) = some!(Keys::bind(array));
                Values::Dictionary(keys, Box::new(form.bind(entries)?))
            }
            (Self::List(form), _) => match some!(Lists::bind(array)) {
                Lists { offsets, items: Items::Values(items), .. } => {
                    Values::List(offsets, Box::new(form.bind(items)?))
                }
                _ => return Ok(None),
            },
            (Self::Struct(members), _) => {
                let columns = some!(array.as_struct_opt()).columns();
                let bind = |(member, column): (&'a Member, &'a ArrayRef)| {
                    member.form.bind(column).map(|bound| (member, bound))
                };
                Values::Struct(members.iter().zip(columns).map(bind).collect::<Result<_, _>>()?)
            }
            (Self::Entries(members), _) => {
                let map = some!(array.as_map_opt());
                let [key, value] = members.as_ref();
                let bound = [(key, key.form.bind(map.keys())?), (value, value.form.bind(map.values())?)];
                Values::Entries(map.value_offsets(), Box::new(bound))
            }
            _ => return Ok(None),
        }))
    }
}

impl JsonColumn<'_> {
    /// Whether the value is NULL.
    #[inline]
    pub(crate) fn is_null(&self, row: usize) -> bool {
        match &self.values {
            Values::Null => true,
            Values::Dictionary(keys, entries) => {
                self.nulls.is_some_and(|nulls| nulls.is_null(row)) || entries.is_null(keys.key(row))
            }
            _ => self.nulls.is_some_and(|nulls| nulls.is_null(row)),
        }
    }

    /// How many of the array's `rows` values are not NULL.
    pub(crate) fn non_null(&self, rows: usize) -> u64 {
        match &self.values {
            Values::Null => 0,
            Values::Dictionary(..) => (0..rows).filter(|row| !self.is_null(*row)).count() as u64,
            _ => (rows - self.nulls.map_or(0, NullBuffer::null_count)) as u64,
        }
    }

    /// Appends a value, `null` where it is NULL.
    #[inline]
    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
        if self.is_null(row) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        let quoted = |out: &mut Vec<u8>, write: &dyn Fn(&mut Vec<u8>)| {
            out.push(b'"');
            write(out);
            out.push(b'"');
        };
        match &self.values {
            Values::Null => out.extend_from_slice(b"null"),
            Values::Bool(values) => {
                let text: &[u8] = if values.value(row) { b"true" } else { b"false" };
                out.extend_from_slice(text);
            }
            Values::Int(values) => numbers::write(values, row, out),
            Values::Decimal(values, from, to) => {
                quoted(out, &|out| numbers::write_decimal(values, row, *from, *to, out));
            }
            Values::Real(values) => json::write_float(values.get(row) as f32, out),
            Values::Double(values) => json::write_float(values.get(row), out),
            Values::Text(values) | Values::Varchar(values, _) => {
                // Text arrives as bytes if some of it is not UTF-8.
                if let ByteStrings::BinaryView(_) = values {
                    utf8(values.value(row), row)?;
                }
                if let Values::Varchar(_, most) = self.values {
                    refuse_cut(values.value(row), most)?;
                }
                json::write_text(values.value(row), out);
            }
            Values::Base64(_) | Values::Hex(_) | Values::Uuid(_) => quoted(out, &|out| {
                // All three write only characters that JSON does not escape.
                let _ = self.write_plain(row, out);
            }),
            Values::Millis(values, scale, data_type) => {
                json::write_int(scale.millis(values.get(row), data_type)?, out);
            }
            Values::Stamp(..) | Values::Day(..) | Values::Clock(..) | Values::Interval(_) => {
                out.push(b'"');
                self.write_plain(row, out)?;
                out.push(b'"');
            }
            Values::Native(values) => values.write_json(row, out)?,
            Values::Dictionary(keys, entries) => entries.write(keys.key(row), out)?,
            Values::List(offsets, items) => {
                write_array(offsets.range(row), b",", out, |item, out| items.write(item, out))?;
            }
            Values::Struct(members) => write_object(members, row, out)?,
            Values::Entries(offsets, members) => {
                let entries = offsets[row] as usize..offsets[row + 1] as usize;
                write_array(entries, b",", out, |entry, out| write_object(members.as_ref(), entry, out))?;
            }
        }
        Ok(())
    }

    /// Appends the text of a value that is text in the column, without quotation marks and escapes, and
    /// of one with parts its JSON. The value must not be NULL.
    pub(crate) fn write_plain(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
        match &self.values {
            Values::Text(values) => out.extend_from_slice(values.value(row)),
            Values::Varchar(values, most) => {
                refuse_cut(values.value(row), *most)?;
                out.extend_from_slice(values.value(row));
            }
            Values::Base64(values) => {
                let bytes = values.value(row);
                let start = out.len();
                out.resize(start + bytes.len().div_ceil(3) * 4, 0);
                // The room is exactly what padded base64 takes (RFC 4648, 4).
                let written =
                    base64::engine::general_purpose::STANDARD.encode_slice(bytes, &mut out[start..]);
                debug_assert!(written.is_ok());
            }
            Values::Hex(values) => write_hex(values.value(row), out),
            Values::Uuid(values) => write_uuid(values.value(row), out),
            Values::Stamp(values, unit, zone) => json::write_stamp(values.get(row), *unit, *zone, out),
            Values::Day(values, false) => json::write_day(values.get(row), out),
            Values::Day(values, true) => {
                let value = values.get(row);
                if value.rem_euclid(86_400_000) != 0 {
                    return Err(Fault::new(0, format!("the date {value} (Date64) is not a whole day")));
                }
                json::write_day(value.div_euclid(86_400_000), out);
            }
            Values::Clock(values, unit) => write_clock(values.get(row), *unit, out),
            Values::Interval(array) => {
                let (months, days, nanos) = interval(array, row)
                    .ok_or_else(|| Fault::new(0, format!("{} is not an interval", array.data_type())))?;
                json::write_interval(months, days, nanos, out);
            }
            Values::Native(values) => values.write_plain(row, out)?,
            Values::Dictionary(keys, entries) => return entries.write_plain(keys.key(row), out),
            _ => return self.write(row, out),
        }
        Ok(())
    }

    /// The value as an integer, of a column of integers or milliseconds. The value must not be NULL.
    #[inline]
    pub(crate) fn integer(&self, row: usize) -> Result<i64, Fault> {
        match &self.values {
            Values::Int(values) => Ok(values.get(row)),
            Values::Millis(values, scale, data_type) => scale.millis(values.get(row), data_type),
            Values::Bool(values) => Ok(values.value(row).into()),
            Values::Dictionary(keys, entries) => entries.integer(keys.key(row)),
            _ => Err(Fault::new(row, "a column of integers has another form")),
        }
    }

    /// The value as a double. The value must not be NULL.
    #[inline]
    pub(crate) fn double(&self, row: usize) -> Result<f64, Fault> {
        match &self.values {
            Values::Real(values) | Values::Double(values) => Ok(values.get(row)),
            Values::Dictionary(keys, entries) => entries.double(keys.key(row)),
            _ => Err(Fault::new(row, "a column of floats has another form")),
        }
    }

    /// The value as an integer and the places that it and its column have. The value must not be NULL.
    pub(crate) fn decimal(&self, row: usize) -> Result<(Result<i128, i256>, u8, u8), Fault> {
        match &self.values {
            Values::Decimal(values, from, to) => Ok((values.wide(row), *from, *to)),
            Values::Dictionary(keys, entries) => entries.decimal(keys.key(row)),
            _ => Err(Fault::new(row, "a column of decimals has another form")),
        }
    }

    /// Refuses text that is too long for the index and the column store, at any depth.
    pub(crate) fn check_text(&self, row: usize, most: usize) -> Result<(), Fault> {
        if self.is_null(row) {
            return Ok(());
        }
        let refuse = |length: usize, value: &[u8]| match length > most {
            false => Ok(()),
            true => Err(Fault::new(
                0,
                format!(
                    "the text {} has {length} bytes; CrateDB indexes at most {most}; choose --long-text noindex",
                    shown(&String::from_utf8_lossy(&value[..value.len().min(240)]))
                ),
            )),
        };
        match &self.values {
            Values::Text(values) | Values::Varchar(values, _) => {
                refuse(values.value(row).len(), values.value(row))
            }
            Values::Base64(values) => refuse(values.value(row).len().div_ceil(3) * 4, b"(base64)"),
            Values::Hex(values) => refuse(values.value(row).len() * 2, b"(hexadecimal)"),
            Values::Dictionary(keys, entries) => entries.check_text(keys.key(row), most),
            Values::List(offsets, items) => {
                offsets.range(row).try_for_each(|item| items.check_text(item, most))
            }
            Values::Struct(members) => members.iter().try_for_each(|(member, bound)| {
                bound.check_text(row, most).map_err(|fault| fault.below(&format!(".{}", member.name)))
            }),
            Values::Entries(offsets, members) => (offsets[row] as usize..offsets[row + 1] as usize)
                .try_for_each(|entry| {
                    members.iter().try_for_each(|(_, bound)| bound.check_text(entry, most))
                }),
            _ => Ok(()),
        }
    }

    /// Whether [`check_text`](Self::check_text) can refuse anything.
    pub(crate) fn has_text(&self) -> bool {
        match &self.values {
            Values::Text(_) | Values::Varchar(..) | Values::Base64(_) | Values::Hex(_) => true,
            Values::Dictionary(_, inner) | Values::List(_, inner) => inner.has_text(),
            Values::Struct(members) => members.iter().any(|(_, bound)| bound.has_text()),
            Values::Entries(_, members) => members.iter().any(|(_, bound)| bound.has_text()),
            _ => false,
        }
    }
}

/// Refuses text whose end CrateDB would cut silently: beyond the column's length, in UTF-16, it has nothing but blanks
/// (`StringType.valueForInsert`). The server refuses other text that is too long.
fn refuse_cut(value: &[u8], most: u32) -> Result<(), Fault> {
    let most = most as usize;
    let is_blank = |c: char| {
        matches!(c, ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}')
            || matches!(c, '\u{202f}' | '\u{205f}' | '\u{3000}')
    };
    if value.len() <= most {
        return Ok(());
    }
    let text = String::from_utf8_lossy(value);
    let units = text.encode_utf16().count();
    let kept = text.trim_end_matches(is_blank).encode_utf16().count();
    match units > most && kept <= most {
        true => Err(Fault::new(
            0,
            format!(
                "the text {} has {units} characters; the column allows {most}, and CrateDB would cut the blanks at its end",
                shown(&text)
            ),
        )),
        false => Ok(()),
    }
}

/// Months, days and nanoseconds.
fn interval(array: &ArrayRef, row: usize) -> Option<(i64, i64, i64)> {
    Some(match array.data_type() {
        DataType::Interval(IntervalUnit::YearMonth) => {
            (array.as_primitive_opt::<IntervalYearMonthType>()?.value(row).into(), 0, 0)
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let value = array.as_primitive_opt::<IntervalDayTimeType>()?.value(row);
            (0, value.days.into(), i64::from(value.milliseconds) * 1_000_000)
        }
        bytes if *bytes == INTERVAL_BYTES => {
            let value = ParquetInterval::read(array, row)?;
            (value.months.into(), value.days.into(), i64::from(value.millis) * 1_000_000)
        }
        _ => {
            let value = array.as_primitive_opt::<IntervalMonthDayNanoType>()?.value(row);
            (value.months.into(), value.days.into(), value.nanoseconds)
        }
    })
}

/// Omits NULL fields: CrateDB does not distinguish NULL from missing.
fn write_object(members: &[(&Member, JsonColumn<'_>)], row: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
    out.push(b'{');
    let mut first = true;
    for (member, bound) in members {
        if bound.is_null(row) {
            continue;
        }
        if !first {
            out.push(b',');
        }
        first = false;
        out.extend_from_slice(&member.lead);
        bound.write(row, out).map_err(|fault| fault.below(&format!(".{}", member.name)))?;
    }
    out.push(b'}');
    Ok(())
}
