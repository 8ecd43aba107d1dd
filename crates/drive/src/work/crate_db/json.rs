//! Encoded rows as the JSON that CrateDB takes and returns.

use std::fmt::Write as _;

use sawmill_pgcopy::PgType;
use serde_json::Value;

use crate::mix::block::fields;

/// Milliseconds from 1970 to 2000, where PostgreSQL counts from.
const EPOCH: i64 = 946_684_800_000;

/// The type of a column. Times of the day, decimals, bytes and nested values are text.
pub(super) fn type_of(pg_type: PgType) -> String {
    match pg_type {
        // Longer than an indexed text may be.
        PgType::Json | PgType::Jsonb => "TEXT INDEX OFF STORAGE WITH (columnstore = false)".to_owned(),
        _ => scalar(pg_type).to_owned(),
    }
}

/// The type of a column's values.
pub(super) fn scalar(pg_type: PgType) -> &'static str {
    match pg_type {
        PgType::Bool => "BOOLEAN",
        PgType::Int2 => "SMALLINT",
        PgType::Int4 => "INTEGER",
        PgType::Int8 => "BIGINT",
        PgType::Float4 => "REAL",
        PgType::Float8 => "DOUBLE PRECISION",
        PgType::Date | PgType::Timestamp | PgType::TimestampTz => "TIMESTAMP WITH TIME ZONE",
        _ => "TEXT",
    }
}

/// A field as CrateDB takes it.
pub(super) fn value(field: Option<&[u8]>, pg_type: PgType) -> Value {
    let Some(field) = field else { return Value::Null };
    let integer = || match *field {
        [a, b] => i64::from(i16::from_be_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_be_bytes([a, b, c, d])),
        _ => field.try_into().map_or(0, i64::from_be_bytes),
    };
    match pg_type {
        PgType::Bool => Value::Bool(field == [1]),
        PgType::Int2 | PgType::Int4 | PgType::Int8 => integer().into(),
        // The shortest digits of the narrow number, not of its wide form.
        PgType::Float4 => {
            let number = field.try_into().map_or(0.0, f32::from_be_bytes);
            number.to_string().parse::<f64>().map_or(Value::Null, Value::from)
        }
        PgType::Float8 => field.try_into().map_or(0.0, f64::from_be_bytes).into(),
        PgType::Date => (integer() * 86_400_000 + EPOCH).into(),
        PgType::Timestamp | PgType::TimestampTz => (integer().div_euclid(1000) + EPOCH).into(),
        PgType::Jsonb => String::from_utf8_lossy(field.get(1..).unwrap_or_default()).into(),
        PgType::Text | PgType::Enum | PgType::Json | PgType::Name => String::from_utf8_lossy(field).into(),
        // Their bytes, in hexadecimal digits: decimals, identifiers, times of the day, bytes.
        _ => {
            let mut text = String::with_capacity(field.len() * 2);
            field.iter().for_each(|byte| {
                // Writing to a String does not fail.
                let _ = write!(text, "{byte:02x}");
            });
            text.into()
        }
    }
}

/// The values of a row.
pub(super) fn values<'a>(row: &'a [u8], types: &'a [PgType]) -> impl Iterator<Item = Value> + 'a {
    fields(row).zip(types).map(|(field, pg_type)| value(field, *pg_type))
}

/// Appends a row as a list.
pub(super) fn write_row(row: &[u8], types: &[PgType], out: &mut String) {
    let before = out.len();
    for value in values(row, types) {
        out.push(if out.len() == before { '[' } else { ',' });
        // Writing to a String does not fail.
        let _ = write!(out, "{value}");
    }
    out.push(']');
}

/// Whether CrateDB returned this row.
pub(super) fn is_equal(expected: &[u8], types: &[PgType], row: &[Value]) -> bool {
    row.len() == types.len()
        && values(expected, types).zip(row).zip(types).all(|((expected, found), pg_type)| match pg_type {
            PgType::Float4 => match (expected.as_f64(), found.as_f64()) {
                (Some(expected), Some(found)) => expected as f32 == found as f32,
                _ => expected == *found,
            },
            PgType::Float8 => expected.as_f64() == found.as_f64() && expected.is_null() == found.is_null(),
            _ => expected == *found,
        })
}

/// Whether a value that was read is of this type.
pub(super) fn is_of(value: &Value, pg_type: PgType) -> bool {
    match pg_type {
        PgType::Bool => value.is_boolean(),
        PgType::Int2 | PgType::Int4 | PgType::Int8 => value.is_i64(),
        PgType::Date | PgType::Timestamp | PgType::TimestampTz => value.is_i64(),
        PgType::Float4 | PgType::Float8 => value.is_number(),
        _ => value.is_string(),
    }
}

/// The rows of an answer.
pub(super) fn rows(body: &[u8]) -> Option<Vec<Vec<Value>>> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let rows = answer.get("rows")?.as_array()?;
    Some(rows.iter().map(|row| row.as_array().cloned().unwrap_or_default()).collect())
}

/// The number of rows that a statement changed.
pub(super) fn count(body: &[u8]) -> Option<u64> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    answer.get("rowcount")?.as_u64()
}

/// Why rows of a batch were not all inserted, if that is so.
pub(super) fn bulk_failure(body: &[u8], rows: u64) -> Option<String> {
    let answer: Option<Value> = serde_json::from_slice(body).ok();
    let results = answer.as_ref().and_then(|answer| answer.get("results")?.as_array());
    let Some(results) = results.filter(|results| results.len() as u64 == rows) else {
        return Some(format!("the answer has no result for each of the {rows} rows"));
    };
    let failed: Vec<&Value> = results.iter().filter(|result| result["rowcount"] != 1).collect();
    let first = failed.first()?;
    let message = first.get("error_message").or_else(|| first.pointer("/error/message"));
    let message = message.and_then(Value::as_str).unwrap_or("no message");
    Some(format!("{} of {} rows were refused: {message}", failed.len(), results.len()))
}
