//! How each Arrow type is stored in CrateDB and written in JSON; what cannot be stored is refused.
//!
//! | Arrow / Parquet | column | in JSON |
//! |---|---|---|
//! | boolean | BOOLEAN | `true` |
//! | int8, uint8, int16 | SMALLINT | number |
//! | uint16, int32 | INTEGER | number |
//! | uint32, int64 | BIGINT | number |
//! | uint64 | NUMERIC(20,0) | string: a number above 2^63-1 would wrap silently |
//! | float16, float32 | REAL | number of the shortest digits, `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | float64 | DOUBLE PRECISION | the same |
//! | decimal(p<=38, s) | NUMERIC(p,s) | string: a number would go through a double |
//! | text, enum, JSON | TEXT | string |
//! | binary | TEXT | string of base64 or hexadecimal digits |
//! | UUID | TEXT | string |
//! | timestamp s, ms | TIMESTAMP with or without time zone | milliseconds since 1970 |
//! | timestamp us, ns | the same, TEXT or BIGINT | see [`Timestamps`] |
//! | date | TIMESTAMP or TEXT | milliseconds or ISO 8601 |
//! | time | TEXT or BIGINT | ISO 8601 or units since midnight |
//! | duration | BIGINT | the file's units |
//! | interval, INTERVAL | TEXT | ISO 8601 |
//! | list | ARRAY(...) | array |
//! | struct | OBJECT(...) AS (...) | object; NULL fields are left out |
//! | map | ARRAY(OBJECT AS (key, value)) | array of objects |
//! | null | TEXT | `null` |
//!
//! On request, a column has one of the [`Native`] types instead.

use arrow_schema::{DataType, Field, Fields, TimeUnit};
use sawmill_pgcopy::{is_interval, is_uuid};

use crate::options::{Binary, CrateOptions, Dates, Times, Timestamps};
use crate::table::crate_type::CrateType;
use crate::table::names::refused_name;
use crate::table::native::Native;

/// How a value is written; the array's type says how it is read.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    Null,
    Bool,
    /// Digits without quotation marks.
    Int,
    /// Integers and decimals as a string with this many places after the point.
    Decimal {
        from: u8,
        to: u8,
    },
    Real,
    Double,
    Text,
    /// Text of at most this many UTF-16 code units.
    Varchar(u32),
    Base64,
    Hex,
    Uuid,
    /// Milliseconds since 1970; finer values are cut or refused.
    Millis {
        truncate: bool,
    },
    Stamp,
    Day,
    Clock,
    Interval,
    /// A value of a type of CrateDB's own, from text or not.
    Native {
        native: Native,
        text: bool,
    },
    Dictionary(Box<Form>),
    List(Box<Form>),
    Struct(Vec<Member>),
    Entries(Box<[Member; 2]>),
}

/// A field of an object.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub name: String,
    /// Name and colon as they are written.
    pub lead: Vec<u8>,
    pub form: Form,
}

impl Member {
    fn new(name: &str, form: Form) -> Self {
        let mut lead = Vec::new();
        crate::encode::json::write_text(name.as_bytes(), &mut lead);
        lead.push(b':');
        Self { name: name.to_owned(), lead, form }
    }
}

/// Digits that NUMERIC holds in a column.
pub(crate) const MAX_DIGITS: u8 = 38;

/// The type of a new column and how its values are written, or why there is none.
pub(crate) fn natural(field: &Field, options: &CrateOptions) -> Result<(CrateType, Form), String> {
    use CrateType as T;
    Ok(match field.data_type() {
        DataType::Null => (T::Text, Form::Null),
        DataType::Boolean => (T::Boolean, Form::Bool),
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => (T::SmallInt, Form::Int),
        DataType::UInt16 | DataType::Int32 => (T::Integer, Form::Int),
        DataType::UInt32 | DataType::Int64 => (T::BigInt, Form::Int),
        DataType::UInt64 => (T::Numeric(20, 0), Form::Decimal { from: 0, to: 0 }),
        DataType::Float16 | DataType::Float32 => (T::Real, Form::Real),
        DataType::Float64 => (T::Double, Form::Double),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => decimal(*precision, *scale)?,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => (T::Text, Form::Text),
        DataType::FixedSizeBinary(16) if is_uuid(field) => (T::Text, Form::Uuid),
        DataType::FixedSizeBinary(_) if is_interval(field) => (T::Text, Form::Interval),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            match options.binary {
                Binary::Base64 => (T::Text, Form::Base64),
                Binary::Hex => (T::Text, Form::Hex),
            }
        }
        DataType::Timestamp(unit, zone) => timestamp(*unit, zone.is_some(), options),
        DataType::Date32 | DataType::Date64 => match options.dates {
            Dates::Timestamp => (T::Timestamp, Form::Millis { truncate: false }),
            Dates::Text => (T::Text, Form::Day),
        },
        DataType::Time32(_) | DataType::Time64(_) => match options.times {
            Times::Text => (T::Text, Form::Clock),
            Times::Bigint => (T::BigInt, Form::Int),
        },
        DataType::Duration(_) => (T::BigInt, Form::Int),
        DataType::Interval(_) => (T::Text, Form::Interval),
        DataType::Dictionary(_, value) => {
            let (data_type, form) = natural(&field.clone().with_data_type(value.as_ref().clone()), options)?;
            (data_type, Form::Dictionary(Box::new(form)))
        }
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            let (data_type, form) = natural(item, options)?;
            (T::Array(Box::new(data_type)), Form::List(Box::new(form)))
        }
        DataType::Struct(fields) => object(fields, options)?,
        DataType::Map(entries, _) => map(entries, options)?,
        other => return Err(format!("Arrow type {other} is not supported")),
    })
}

fn timestamp(unit: TimeUnit, zone: bool, options: &CrateOptions) -> (CrateType, Form) {
    let stamp = if zone { CrateType::TimestampTz } else { CrateType::Timestamp };
    let fine = matches!(unit, TimeUnit::Microsecond | TimeUnit::Nanosecond);
    match options.timestamps {
        Timestamps::Text if fine => (CrateType::Text, Form::Stamp),
        Timestamps::Bigint if fine => (CrateType::BigInt, Form::Int),
        Timestamps::Truncate => (stamp, Form::Millis { truncate: true }),
        _ => (stamp, Form::Millis { truncate: false }),
    }
}

/// A struct, if CrateDB accepts its field names and none occurs twice.
fn object(fields: &Fields, options: &CrateOptions) -> Result<(CrateType, Form), String> {
    let mut types = Vec::with_capacity(fields.len());
    let mut members: Vec<Member> = Vec::with_capacity(fields.len());
    for inner in fields {
        let name = inner.name();
        if let Some((why, proposal)) = refused_name(name, false) {
            return Err(format!("the name of its field {name:?} {why}; call it {proposal:?} in the source"));
        }
        if members.iter().any(|member| member.name == *name) {
            return Err(format!("two of its fields are called {name:?}"));
        }
        let (data_type, form) = natural(inner, options).map_err(|what| format!("field {name:?}: {what}"))?;
        types.push((name.clone(), data_type));
        members.push(Member::new(name, form));
    }
    Ok((CrateType::Object(types), Form::Struct(members)))
}

/// A map, as an array of objects with `key` and `value`.
fn map(entries: &Field, options: &CrateOptions) -> Result<(CrateType, Form), String> {
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(format!("a map of {} is not supported", entries.data_type()));
    };
    let [key, value] = fields.as_ref() else {
        return Err("a map without key and value is not supported".to_owned());
    };
    let (key_type, key) = natural(key, options)?;
    let (value_type, value) = natural(value, options)?;
    let types = vec![("key".to_owned(), key_type), ("value".to_owned(), value_type)];
    let members = [Member::new("key", key), Member::new("value", value)];
    Ok((CrateType::Array(Box::new(CrateType::Object(types))), Form::Entries(Box::new(members))))
}

fn decimal(precision: u8, scale: i8) -> Result<(CrateType, Form), String> {
    let Ok(places) = u8::try_from(scale) else {
        return Err(format!("a decimal of negative scale {scale} has no exact type"));
    };
    // A scale beyond the precision needs that many digits.
    let digits = precision.max(places);
    if digits > MAX_DIGITS {
        return Err(format!("NUMERIC of CrateDB has {MAX_DIGITS} digits, the column has {digits}"));
    }
    Ok((CrateType::Numeric(digits, places), Form::Decimal { from: places, to: places }))
}
