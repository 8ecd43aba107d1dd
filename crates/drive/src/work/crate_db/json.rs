//! Encoded rows as the JSON that CrateDB takes and returns.

use std::fmt::Write as _;
use std::marker::PhantomData;

use sawmill_pgcopy::PgType;
use serde::Deserialize;
use serde::de::{Deserializer as _, Error as _, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::mix::block::fields;

/// Milliseconds from 1970 to 2000, where PostgreSQL counts from.
const EPOCH: i64 = 946_684_800_000;
/// The most values of a row: CrateDB's tables have at most 1,000 columns by default.
const MAX_COLUMNS: usize = 10_000;

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

/// The parts of an answer that are read.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    rows: Option<&'a RawValue>,
    #[serde(borrow)]
    results: Option<&'a RawValue>,
    rowcount: Option<i64>,
}

/// What became of a row of a batch.
#[derive(Deserialize)]
struct BulkResult {
    #[serde(default)]
    rowcount: i64,
    error_message: Option<String>,
    error: Option<BulkError>,
}

#[derive(Deserialize)]
struct BulkError {
    message: Option<String>,
}

/// Takes the values of a list one after the other, so that a long list takes no memory of its own.
struct Each<T, F>(F, PhantomData<T>);

impl<'de, T: Deserialize<'de>, F: FnMut(T) -> Option<()>> Visitor<'de> for Each<T, F> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(value) = list.next_element()? {
            self.0(value).ok_or_else(|| A::Error::custom("it is too long"))?;
        }
        Ok(())
    }
}

fn each<'a, T: Deserialize<'a>>(list: &'a RawValue, take: impl FnMut(T) -> Option<()>) -> Option<()> {
    serde_json::Deserializer::from_str(list.get()).deserialize_seq(Each(take, PhantomData)).ok()
}

/// The values of a row, at most `most`. Lists and objects, which no column of a plan has, are their text in a list.
fn row_of(row: &RawValue, most: usize) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    each(row, |value: &RawValue| {
        values.push(match value.get().as_bytes() {
            [b'[' | b'{', ..] => Value::Array(vec![value.get().into()]),
            _ => serde_json::from_str(value.get()).ok()?,
        });
        (values.len() <= most).then_some(())
    })?;
    Some(values)
}

/// The rows of an answer, if they have at most `most` values.
pub(super) fn rows(body: &[u8], most: usize) -> Option<Vec<Vec<Value>>> {
    let (mut rows, mut left) = (Vec::new(), most);
    each(serde_json::from_slice::<Answer<'_>>(body).ok()?.rows?, |row: &RawValue| {
        let values = row_of(row, left)?;
        left = left.checked_sub(values.len().max(1))?;
        rows.push(values);
        Some(())
    })?;
    Some(rows)
}

/// The number of rows of an answer, and the first of them.
pub(super) fn first_row(body: &[u8]) -> Option<(u64, Vec<Value>)> {
    let (mut count, mut first) = (0, Vec::new());
    each(serde_json::from_slice::<Answer<'_>>(body).ok()?.rows?, |row: &RawValue| {
        if count == 0 {
            first = row_of(row, MAX_COLUMNS)?;
        }
        count += 1;
        Some(())
    })?;
    Some((count, first))
}

/// The number of rows that a statement changed.
pub(super) fn count(body: &[u8]) -> Option<u64> {
    u64::try_from(serde_json::from_slice::<Answer<'_>>(body).ok()?.rowcount?).ok()
}

/// Why rows of a batch were not all inserted, if that is so.
pub(super) fn bulk_failure(body: &[u8], rows: u64) -> Option<String> {
    let (mut seen, mut failed, mut first) = (0, 0, None);
    let answer: Option<Answer<'_>> = serde_json::from_slice(body).ok();
    let read = answer.and_then(|answer| answer.results).and_then(|results| {
        each(results, |result: BulkResult| {
            seen += 1;
            if result.rowcount != 1 {
                failed += 1;
                first.get_or_insert_with(|| {
                    result.error_message.or(result.error.and_then(|error| error.message))
                });
            }
            Some(())
        })
    });
    if read.is_none() || seen != rows {
        return Some(format!("the answer has no result for each of the {rows} rows"));
    }
    let message = first?.unwrap_or_else(|| "no message".to_owned());
    Some(format!("{failed} of {seen} rows were refused: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_answer_only_what_a_plan_needs_takes_memory() {
        let body = |rows: &str| format!(r#"{{"cols":["a"],"rows":[{rows}],"rowcount":2}}"#).into_bytes();
        let two = body(r#"[1,"a"],[[2],null]"#);
        assert_eq!(first_row(&two), Some((2, vec![1.into(), "a".into()])));
        assert_eq!((rows(&two, 4).unwrap().len(), rows(&two, 3), count(&two)), (2, None, Some(2)));
        assert_eq!(rows(&two, 4).unwrap()[1], [Value::Array(vec!["[2]".into()]), Value::Null]);
        assert_eq!(
            (rows(&body("[],[],[]"), 2), rows(b"[]", 9), count(b"{\"rowcount\":-1}")),
            (None, None, None)
        );
        let wide = body(&format!("[{}1]", "1,".repeat(MAX_COLUMNS)));
        assert_eq!(first_row(&wide), None);
    }

    #[test]
    fn refused_rows_of_a_batch_are_counted_and_the_first_is_named() {
        let body = br#"{"results":[{"rowcount":1},{"rowcount":-2,"error_message":"no"},{"rowcount":-2}]}"#;
        assert_eq!(bulk_failure(body, 3).unwrap(), "2 of 3 rows were refused: no");
        let nested = br#"{"results":[{"rowcount":-2,"error":{"code":4000,"message":"why"}}]}"#;
        assert_eq!(bulk_failure(nested, 1).unwrap(), "1 of 1 rows were refused: why");
        assert_eq!(bulk_failure(br#"{"results":[{"rowcount":1}]}"#, 1), None);
        assert!(bulk_failure(body, 2).unwrap().contains("no result for each"));
    }
}
