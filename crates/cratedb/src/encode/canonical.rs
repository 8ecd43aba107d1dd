//! Converts values that the server returns into the form in which the loader sends them.
//!
//! The content sum covers a row's canonical bytes: its values as the loader writes them in JSON, joined by commas,
//! without the row key. The server writes JSON differently: it spells floats in another way, returns numerics as
//! numbers, and orders fields in another way. Converted to one form, equal rows have equal bytes.

use std::borrow::Cow;
use std::collections::HashMap;

use sawmill_loader::{ContentSum, Sums, Tally};
use serde_json::value::RawValue;

use crate::encode::form::{Form, Member};
use crate::encode::geometry::Geometry;
use crate::encode::json;
use crate::table::native::Native;

/// Writes one row to `row`, replacing its content; calls `field` with each column's value.
pub(crate) fn write_row(
    forms: &[&Form],
    values: &[&RawValue],
    row: &mut Vec<u8>,
    mut field: impl FnMut(usize, &[u8]),
) -> Result<(), String> {
    row.clear();
    for (i, (form, value)) in forms.iter().zip(values).enumerate() {
        if i > 0 {
            row.push(b',');
        }
        let start = row.len();
        write(form, value, row).map_err(|what| format!("column {}: {what}", i + 1))?;
        field(i, &row[start..]);
    }
    Ok(())
}

/// Adds one row that the server gave to sums; `row` is scratch.
pub(crate) fn add_stored(
    sums: &mut Sums,
    forms: &[&Form],
    values: &[&RawValue],
    row: &mut Vec<u8>,
) -> Result<(), String> {
    let Sums { whole, each } = sums;
    write_row(forms, values, row, |i, bytes| {
        whole.non_null[i] += u64::from(bytes != b"null");
        if let Some(sum) = each.get_mut(i) {
            sum.add(bytes);
        }
    })?;
    whole.rows += 1;
    whole.content_sum.add(row);
    Ok(())
}

/// Adds the values of one row that the loader wrote, without its row key, to the sums of its columns.
pub(crate) fn add_written(sums: &mut Sums, values: &[u8]) -> Result<(), String> {
    let array = [b"[", values, b"]"].concat();
    let values: Vec<&RawValue> = serde_json::from_slice(&array).map_err(|error| error.to_string())?;
    for (sum, value) in sums.each.iter_mut().zip(values) {
        sum.add(value.get().as_bytes());
    }
    Ok(())
}

/// The tally of a single sent row; `row` holds its values without the row key.
pub(crate) fn sent_row(row: &[u8], columns: usize) -> Tally {
    let mut tally = Tally::empty(columns);
    tally.rows = 1;
    let mut sum = ContentSum::default();
    sum.add(row);
    tally.content_sum = sum;
    let array = [b"[", row, b"]"].concat();
    let values: Vec<&RawValue> = serde_json::from_slice(&array).unwrap_or_default();
    for (count, value) in tally.non_null.iter_mut().zip(&values) {
        *count = u64::from(value.get() != "null");
    }
    tally
}

/// Appends the value as the loader writes it.
pub(crate) fn write(form: &Form, value: &RawValue, out: &mut Vec<u8>) -> Result<(), String> {
    let raw = value.get();
    if raw == "null" {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    let unexpected = || {
        let shown: String = raw.chars().take(60).collect();
        format!("the server returned {shown}")
    };
    match form {
        Form::Null => return Err(unexpected()),
        Form::Bool => out.extend_from_slice(raw.as_bytes()),
        Form::Int | Form::Millis { .. } => {
            let digits = raw.trim_matches('"');
            match digits.parse::<i64>() {
                Ok(value) => json::write_int(value, out),
                // A double that is whole, as inside of ignored objects.
                Err(_) => match digits.parse::<f64>() {
                    Ok(value) if value.fract() == 0.0 => json::write_int(value as i64, out),
                    _ => return Err(unexpected()),
                },
            }
        }
        Form::Decimal { to, .. } => {
            out.push(b'"');
            decimal(raw.trim_matches('"'), *to, out).ok_or_else(unexpected)?;
            out.push(b'"');
        }
        Form::Real => json::write_float(special::<f32>(raw).ok_or_else(unexpected)?, out),
        Form::Double => json::write_float(special::<f64>(raw).ok_or_else(unexpected)?, out),
        Form::Native { native: Native::GeoPoint, .. } => {
            list(value, out, |item, out| write(&Form::Double, item, out)).map_err(|_| unexpected())?;
        }
        Form::Native { native: Native::GeoShape, .. } => match Geometry::from_json(raw) {
            Some(shape) => shape.write(out),
            // A shape that the loader does not write, such as one with heights.
            None => out.extend_from_slice(raw.as_bytes()),
        },
        Form::Native { native: Native::FloatVector(_), .. } => {
            list(value, out, |item, out| write(&Form::Real, item, out)).map_err(|_| unexpected())?;
        }
        Form::Native { native: Native::Bit(_), .. } => {
            // The server writes B'0101'.
            let bits = raw.trim_matches('"').trim_start_matches('B').trim_matches('\'');
            json::write_text(bits.as_bytes(), out);
        }
        Form::Native { native: Native::Ip | Native::Char(_), .. }
        | Form::Text
        | Form::Varchar(_)
        | Form::Base64
        | Form::Hex
        | Form::Uuid
        | Form::Stamp
        | Form::Day
        | Form::Clock
        | Form::Interval => {
            let text: Cow<'_, str> = match raw.contains('\\') {
                false => Cow::Borrowed(
                    raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).ok_or_else(unexpected)?,
                ),
                true => Cow::Owned(serde_json::from_str(raw).map_err(|_| unexpected())?),
            };
            json::write_text(text.as_bytes(), out);
        }
        Form::Dictionary(inner) => write(inner, value, out)?,
        Form::List(item) => {
            list(value, out, |value, out| write(item, value, out)).map_err(|_| unexpected())?
        }
        Form::Struct(members) => object(members, value, out).map_err(|_| unexpected())?,
        Form::Entries(members) => {
            list(value, out, |value, out| object(members.as_ref(), value, out)).map_err(|_| unexpected())?;
        }
    }
    Ok(())
}

fn list(
    value: &RawValue,
    out: &mut Vec<u8>,
    write: impl Fn(&RawValue, &mut Vec<u8>) -> Result<(), String>,
) -> Result<(), String> {
    let items: Vec<&RawValue> = serde_json::from_str(value.get()).map_err(|error| error.to_string())?;
    out.push(b'[');
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(item, out)?;
    }
    out.push(b']');
    Ok(())
}

fn object(members: &[Member], value: &RawValue, out: &mut Vec<u8>) -> Result<(), String> {
    if value.get() == "null" {
        // An entry of a list may be NULL as a whole.
        out.extend_from_slice(b"null");
        return Ok(());
    }
    let fields: HashMap<Cow<'_, str>, &RawValue> =
        serde_json::from_str(value.get()).map_err(|error| error.to_string())?;
    out.push(b'{');
    let mut first = true;
    for member in members {
        let Some(value) = fields.get(member.name.as_str()).filter(|value| value.get() != "null") else {
            continue;
        };
        if !first {
            out.push(b',');
        }
        first = false;
        out.extend_from_slice(&member.lead);
        write(&member.form, value, out)?;
    }
    out.push(b'}');
    Ok(())
}

/// A float, or one of the strings for NaN and the infinities.
fn special<F: std::str::FromStr>(raw: &str) -> Option<F> {
    // Rust reads "NaN", "Infinity" and "-Infinity" as well as every JSON number.
    raw.trim_matches('"').parse().ok()
}

/// Brings a decimal number in any spelling to `places` places after the point. `None` when it has more
/// digits than that, or is not a number.
fn decimal(text: &str, places: u8, out: &mut Vec<u8>) -> Option<()> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() > 400
        || !(whole.bytes().chain(fraction.bytes())).all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let mut digits = format!("{whole}{fraction}");
    // Digits behind the point, once the exponent is applied.
    let behind = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    let places = i32::from(places);
    if behind <= places {
        digits.extend(std::iter::repeat_n('0', usize::try_from(places - behind).ok().filter(|n| *n < 400)?));
    } else {
        let cut = usize::try_from(behind - places).ok()?;
        let keep = digits.len().saturating_sub(cut);
        if digits.bytes().skip(keep).any(|digit| digit != b'0') {
            return None;
        }
        digits.truncate(keep);
    }
    let digits = digits.trim_start_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    json::write_decimal(&format!("{sign}{digits}"), places as u8, places as u8, out);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(form: &Form, text: &str) -> Result<String, String> {
        let value = RawValue::from_string(text.to_owned()).unwrap();
        let mut out = Vec::new();
        write(form, &value, &mut out).map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn decimals_of_any_spelling_are_one() {
        let form = Form::Decimal { from: 2, to: 2 };
        for text in ["12.5", "12.50", "\"12.50\"", "1.25E1", "125e-1", "\"0012.500\""] {
            assert_eq!(again(&form, text).unwrap_or_default(), "\"12.50\"", "{text}");
        }
        assert_eq!(again(&form, "-0.00").unwrap(), "\"0.00\"");
        assert_eq!(again(&form, "1E+3").unwrap(), "\"1000.00\"");
        assert!(again(&form, "12.505").is_err());
    }

    #[test]
    fn fields_come_in_our_order_and_without_those_that_are_null() {
        let member =
            |name: &str, form| Member { name: name.into(), lead: format!("\"{name}\":").into_bytes(), form };
        let form =
            Form::Struct(vec![member("b", Form::Double), member("a", Form::Int), member("c", Form::Text)]);
        assert_eq!(again(&form, r#"{"a": 1, "c": null, "b": 2e0, "x": 5}"#).unwrap(), r#"{"b":2.0,"a":1}"#);
        let list = Form::List(Box::new(form));
        assert_eq!(again(&list, "[null, {}]").unwrap(), "[null,{}]");
    }

    #[test]
    fn floats_and_texts_are_written_as_the_loader_writes_them() {
        assert_eq!(again(&Form::Double, "17").unwrap(), "17.0");
        assert_eq!(again(&Form::Real, "0.1").unwrap(), "0.1");
        assert_eq!(again(&Form::Double, "\"NaN\"").unwrap(), "\"NaN\"");
        assert_eq!(again(&Form::Text, "\"a\\/\\u00e9\\n\"").unwrap(), "\"a/é\\n\"");
        assert_eq!(again(&Form::Int, "\"9223372036854775807\"").unwrap(), "9223372036854775807");
    }

    #[test]
    fn values_of_the_server_s_own_types_are_written_as_the_loader_writes_them() {
        let again = |native, text| again(&Form::Native { native, text: true }, text).unwrap();
        assert_eq!(again(Native::GeoPoint, "[7, -1.0E-10]"), "[7.0,-1e-10]");
        let stored = r#"{"coordinates": [[7, -1.0E-10], [8, 9]], "type": "LineString"}"#;
        let line = r#"{"type":"LineString","coordinates":[[7.0,-1e-10],[8.0,9.0]]}"#;
        assert_eq!(again(Native::GeoShape, stored), line);
        let high = r#"{"coordinates":[1,2,3],"type":"Point"}"#;
        assert_eq!(again(Native::GeoShape, high), high);
        assert_eq!(again(Native::FloatVector(2), "[0.1, 2]"), "[0.1,2.0]");
        assert_eq!(again(Native::Bit(4), "\"B'0101'\""), "\"0101\"");
        assert_eq!(again(Native::Ip, "\"2001:db8::1\""), "\"2001:db8::1\"");
    }
}
