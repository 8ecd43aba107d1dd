//! Points, vectors, addresses, bits and characters (`io.crate.types`: `GeoPointType`, `FloatVectorType`, `IpType`,
//! `BitStringType`, `CharacterType`).

use std::net::IpAddr;

use super::cast::Refused;
use super::{Type, Value};
use crate::json::Json;

impl Type {
    /// Converts a JSON value that is not NULL to one of these types.
    pub(super) fn native(&self, json: &Json) -> Result<Value, Refused> {
        let refused = || self.refuse(json);
        let rejected = |what: String| Refused::Row(4000, format!("SQLParseException[{what}]"));
        match (self, json) {
            (Type::GeoPoint, Json::Array(items)) => point(items).ok_or_else(refused),
            (Type::GeoPoint, Json::Text(text)) => point_of_text(text.trim()).ok_or_else(refused),
            (Type::FloatVector(length), Json::Array(items)) => {
                let floats: Option<Vec<Value>> =
                    items.iter().map(|item| Some(Value::Real(number(item)?))).collect();
                match floats.ok_or_else(refused)? {
                    floats if floats.len() == *length => Ok(Value::Array(floats)),
                    _ => {
                        let what = "The number of vector dimensions does not match the field type";
                        Err(rejected(what.to_owned()))
                    }
                }
            }
            (Type::Ip, Json::Text(text)) => {
                let address: IpAddr = text.parse().map_err(|_| refused())?;
                Ok(Value::Text(address.to_canonical().to_string()))
            }
            (Type::Bit(length), Json::Text(bits)) if bits.chars().all(|bit| matches!(bit, '0' | '1')) => {
                match bits.len() {
                    found if found == *length => Ok(Value::Text(format!("B'{bits}'"))),
                    found => {
                        Err(rejected(format!("bit string length {found} does not match type bit({length})")))
                    }
                }
            }
            (Type::Character(length), Json::Text(text)) => {
                let (kept, units) = (text.trim_end_matches(' '), text.encode_utf16().count());
                match kept.encode_utf16().count() {
                    found if found > *length => Err(rejected(format!(
                        "'{text}' is too long for the character type of length: {length}"
                    ))),
                    found if units > *length => {
                        Ok(Value::Text(kept.to_owned() + &" ".repeat(length - found)))
                    }
                    _ => Ok(Value::Text(text.to_owned() + &" ".repeat(length - units))),
                }
            }
            _ => Err(refused()),
        }
    }
}

fn number<F: std::str::FromStr>(json: &Json) -> Option<F> {
    match json {
        Json::Number(text) => text.parse().ok(),
        _ => None,
    }
}

/// A point with a coordinate that is NULL is NULL.
fn point(items: &[Json]) -> Option<Value> {
    match items {
        [Json::Null, _] | [_, Json::Null] => Some(Value::Null),
        [x, y] => {
            let (x, y): (f64, f64) = (number(x)?, number(y)?);
            let is_place = (-180.0..=180.0).contains(&x) && (-90.0..=90.0).contains(&y);
            is_place.then(|| Value::Array(vec![Value::Double(x), Value::Double(y)]))
        }
        _ => None,
    }
}

/// JSON of an array, or `POINT (x y)`.
fn point_of_text(text: &str) -> Option<Value> {
    if let Ok(Json::Array(items)) = Json::parse(text) {
        return point(&items);
    }
    let inner = text.strip_prefix("POINT")?.trim_start().strip_prefix('(')?.strip_suffix(')')?;
    let numbers: Vec<Json> = inner.split_whitespace().map(|text| Json::Number(text.to_owned())).collect();
    point(&numbers)
}
