//! JSON converted to the type of a column.

use super::calendar::moment;
use super::numeric::{integer, numeric};
use super::{Policy, Type, Value, to_text};
use crate::json::Json;

/// Why a value is rejected.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refused {
    /// Rejects the whole request.
    Request(String),
    /// Rejects only the row, with code and message.
    Row(u32, String),
}

impl Type {
    /// Converts a JSON value to this column type.
    pub(crate) fn cast(&self, json: &Json) -> Result<Value, Refused> {
        if *json == Json::Null {
            return Ok(Value::Null);
        }
        if let Json::Text(text) = json
            && text.chars().count() > 20_000_000
        {
            return Err(Refused::Request(
                "String value length exceeds the maximum allowed (20000000)".into(),
            ));
        }
        match (self, json) {
            (Type::Boolean, Json::Bool(value)) => Ok(Value::Bool(*value)),
            (Type::Boolean, Json::Text(text)) if text == "true" || text == "false" => {
                Ok(Value::Bool(text == "true"))
            }
            (Type::Integer(bits), Json::Number(_) | Json::Text(_)) => {
                let value = integer(*bits, json).ok_or_else(|| self.refuse(json))?;
                if *bits == 64 { sentinels_apart(value) } else { Ok(Value::Int(value)) }
            }
            (Type::Real, Json::Number(text) | Json::Text(text)) => match text.parse::<f32>() {
                Ok(value) if value.is_finite() || matches!(json, Json::Text(_)) => Ok(Value::Real(value)),
                _ => Err(self.refuse(json)),
            },
            (Type::Double, Json::Number(text) | Json::Text(text)) => {
                text.parse().map(Value::Double).map_err(|_| self.refuse(json))
            }
            (Type::Numeric(bounds), Json::Number(text)) => {
                // Goes through a double.
                let double = text.parse::<f64>().map_err(|_| self.refuse(json))?;
                numeric(&format!("{double}"), *bounds).ok_or_else(|| self.refuse(json))
            }
            (Type::Numeric(bounds), Json::Text(text)) => {
                numeric(text, *bounds).ok_or_else(|| self.refuse(json))
            }
            (Type::Text(most), Json::Text(_) | Json::Number(_) | Json::Bool(_)) => text_of(json, *most),
            (Type::Timestamp(_), Json::Number(text)) => match text.parse::<f64>() {
                Ok(_) => sentinels_apart(
                    text.parse::<i64>().unwrap_or_else(|_| text.parse::<f64>().unwrap_or(0.0) as i64),
                ),
                Err(_) => Err(self.refuse(json)),
            },
            (Type::Timestamp(_), Json::Text(text)) => {
                moment(text).map(Value::Int).ok_or_else(|| self.refuse(json))
            }
            (Type::GeoPoint | Type::FloatVector(_) | Type::Ip | Type::Bit(_) | Type::Character(_), json) => {
                self.native(json)
            }
            (Type::GeoShape, Json::Object(_)) => self.shape(json),
            (Type::Object(policy, fields), Json::Object(members)) => object(*policy, fields, members),
            (Type::Object(..), Json::Text(text)) => match Json::parse(text) {
                Ok(json @ Json::Object(_)) => self.cast(&json),
                _ => Err(self.refuse(json)),
            },
            (Type::Array(item), Json::Array(items)) => {
                Ok(Value::Array(items.iter().map(|json| item.cast(json)).collect::<Result<_, _>>()?))
            }
            _ => Err(self.refuse(json)),
        }
    }

    pub(super) fn refuse(&self, json: &Json) -> Refused {
        let shown: String = to_text(&untyped(json)).chars().take(80).collect();
        Refused::Request(format!(
            "SQLParseException[Cannot cast value `{shown}` to type `{}`]",
            self.catalogue_name()
        ))
    }
}

/// Text, or the text of a number or a boolean, of at most `most` UTF-16 code units. Blanks beyond them are cut, as by
/// `StringType.valueForInsert`.
fn text_of(json: &Json, most: Option<usize>) -> Result<Value, Refused> {
    let text = match json {
        Json::Text(text) | Json::Number(text) => text.clone(),
        other => to_text(&untyped(other)),
    };
    match most {
        Some(most) if text.encode_utf16().count() > most => {
            let mut kept = text.as_str();
            while let Some(shorter) = kept.strip_suffix([' ', '\u{a0}', '\u{2003}', '\u{3000}'])
                && kept.encode_utf16().count() > most
            {
                kept = shorter;
            }
            match kept.encode_utf16().count() > most {
                true => Err(Refused::Row(
                    4000,
                    format!("'{text}' is too long for the text type of length: {most}"),
                )),
                false => Ok(Value::Text(kept.to_owned())),
            }
        }
        _ => Ok(Value::Text(text)),
    }
}

/// Rejects the two ends of the 64-bit range, which the index uses as sentinels, even for timestamps.
fn sentinels_apart(value: i64) -> Result<Value, Refused> {
    match value {
        i64::MIN | i64::MAX => Err(Refused::Row(
            4000,
            format!("SQLParseException[Value {value} exceeds allowed range for column of type bigint]"),
        )),
        value => Ok(Value::Int(value)),
    }
}

fn object(policy: Policy, fields: &[(String, Type)], members: &[(String, Json)]) -> Result<Value, Refused> {
    let mut values = Vec::with_capacity(members.len());
    for (name, json) in members {
        let value = match fields.iter().find(|(field, _)| field == name) {
            Some((_, data_type)) => data_type.cast(json).map_err(|refused| match (refused, data_type) {
                (refused @ Refused::Request(_), Type::Object(..) | Type::Array(_)) => refused,
                (Refused::Request(_), scalar) => Refused::Request(format!(
                    "SQLParseException[Cannot cast object element `{name}` with value `{}` to type `{}`]",
                    to_text(&untyped(json)),
                    scalar.catalogue_name()
                )),
                (refused, _) => refused,
            })?,
            None if policy == Policy::Strict => {
                return Err(Refused::Row(
                    4000,
                    format!("SQLParseException[Cannot add column `{name}` to strict object]"),
                ));
            }
            None if has_big_integer(json) => {
                return Err(Refused::Row(
                    5000,
                    "UncheckedIOException[java.io.IOException: can not write type [class java.math.BigInteger]]".into(),
                ));
            }
            None => untyped(json),
        };
        values.push((name.clone(), value));
    }
    Ok(Value::Object(values))
}

/// Whether the value contains an integer of more than 64 bits.
fn has_big_integer(json: &Json) -> bool {
    match json {
        Json::Number(text) => !text.contains(['.', 'e', 'E']) && text.parse::<i64>().is_err(),
        Json::Array(items) => items.iter().any(has_big_integer),
        Json::Object(members) => members.iter().any(|(_, json)| has_big_integer(json)),
        _ => false,
    }
}

/// A value that no column declares.
pub(crate) fn untyped(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(text) => match text.parse::<i64>() {
            Ok(value) => Value::Int(value),
            Err(_) => Value::Double(text.parse().unwrap_or(f64::NAN)),
        },
        Json::Text(text) => Value::Text(text.clone()),
        Json::Array(items) => Value::Array(items.iter().map(untyped).collect()),
        Json::Object(members) => {
            Value::Object(members.iter().map(|(name, json)| (name.clone(), untyped(json))).collect())
        }
    }
}
