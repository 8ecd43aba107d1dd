//! Column types, the values they store, and how JSON is converted to them, with the silent losses of the real
//! server.

use crate::json::{Json, quoted};

/// A column's type.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// BOOLEAN
    Boolean,
    /// SMALLINT, INTEGER or BIGINT, by their number of bits.
    Integer(u32),
    /// REAL
    Real,
    /// DOUBLE PRECISION
    Double,
    /// NUMERIC, with precision and scale if given.
    Numeric(Option<(u32, u32)>),
    /// TEXT, or VARCHAR with its maximum length.
    Text(Option<usize>),
    /// TIMESTAMP, with or without time zone.
    Timestamp(bool),
    /// OBJECT with its policy and its fields.
    Object(Policy, Vec<(String, Type)>),
    /// ARRAY
    Array(Box<Type>),
}

/// How an object treats undeclared fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Rejects them.
    Strict,
    /// Adds them.
    Dynamic,
    /// Stores them unchanged.
    Ignored,
}

/// A stored value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer, or a timestamp in milliseconds.
    Int(i64),
    /// A float.
    Real(f32),
    /// A double.
    Double(f64),
    /// A decimal as plain text.
    Numeric(String),
    /// Text.
    Text(String),
    /// An array.
    Array(Vec<Value>),
    /// An object.
    Object(Vec<(String, Value)>),
}

/// Why a value is rejected.
#[derive(Clone, Debug, PartialEq)]
pub enum Refused {
    /// Rejects the whole request.
    Request(String),
    /// Rejects only the row, with code and message.
    Row(u32, String),
}

impl Type {
    /// The name in the catalogue.
    pub fn catalogue_name(&self) -> String {
        match self {
            Type::Boolean => "boolean".into(),
            Type::Integer(16) => "smallint".into(),
            Type::Integer(32) => "integer".into(),
            Type::Integer(_) => "bigint".into(),
            Type::Real => "real".into(),
            Type::Double => "double precision".into(),
            Type::Numeric(_) => "numeric".into(),
            Type::Text(_) => "text".into(),
            Type::Timestamp(true) => "timestamp with time zone".into(),
            Type::Timestamp(false) => "timestamp without time zone".into(),
            Type::Object(..) => "object".into(),
            Type::Array(item) => format!("{}_array", item.catalogue_name()),
        }
    }

    /// The type as `SHOW CREATE TABLE` writes it, indented by `depth` steps of three blanks.
    pub fn shown(&self, depth: usize) -> String {
        match self {
            Type::Numeric(Some((precision, scale))) => format!("NUMERIC({precision}, {scale})"),
            Type::Text(Some(length)) => format!("VARCHAR({length})"),
            Type::Array(item) => format!("ARRAY({})", item.shown(depth)),
            Type::Object(policy, fields) => {
                let policy = format!("OBJECT({})", format!("{policy:?}").to_uppercase());
                if fields.is_empty() {
                    return policy;
                }
                let blanks = |depth: usize| "   ".repeat(depth);
                let fields = fields.iter().map(|(name, field)| {
                    format!("{}{} {}", blanks(depth + 1), name_quoted(name), field.shown(depth + 1))
                });
                let fields = fields.collect::<Vec<_>>().join(",\n");
                format!("{policy} AS (\n{fields}\n{})", blanks(depth))
            }
            other => other.catalogue_name().to_uppercase(),
        }
    }

    fn refuse(&self, json: &Json) -> Refused {
        let shown: String = to_text(&untyped(json)).chars().take(80).collect();
        Refused::Request(format!(
            "SQLParseException[Cannot cast value `{shown}` to type `{}`]",
            self.catalogue_name()
        ))
    }

    /// Converts a JSON value to this column type.
    pub fn cast(&self, json: &Json) -> Result<Value, Refused> {
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
            (Type::Text(most), Json::Text(_) | Json::Number(_) | Json::Bool(_)) => {
                let text = match json {
                    Json::Text(text) | Json::Number(text) => text.clone(),
                    other => to_text(&untyped(other)),
                };
                match most {
                    Some(most) if text.chars().count() > *most => {
                        Err(Refused::Row(4000, format!("'{text}' is too long for the type `text({most})`")))
                    }
                    _ => Ok(Value::Text(text)),
                }
            }
            (Type::Timestamp(_), Json::Number(text)) => match text.parse::<f64>() {
                Ok(_) => sentinels_apart(
                    text.parse::<i64>().unwrap_or_else(|_| text.parse::<f64>().unwrap_or(0.0) as i64),
                ),
                Err(_) => Err(self.refuse(json)),
            },
            (Type::Timestamp(_), Json::Text(text)) => {
                moment(text).map(Value::Int).ok_or_else(|| self.refuse(json))
            }
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

    /// Adds the fields that a dynamic object lacks, with types guessed from this value. NULL and empty arrays
    /// add none.
    pub fn learn(&mut self, json: &Json) {
        match (self, json) {
            (Type::Object(policy, fields), Json::Object(members)) => {
                for (name, json) in members {
                    match fields.iter_mut().find(|(field, _)| field == name) {
                        Some((_, field)) => field.learn(json),
                        None if *policy == Policy::Dynamic => {
                            fields.extend(guessed(json).map(|field| (name.clone(), field)));
                        }
                        None => {}
                    }
                }
            }
            (Type::Array(item), Json::Array(items)) => items.iter().for_each(|json| item.learn(json)),
            _ => {}
        }
    }

    /// Whether the type contains an object that accepts undeclared fields.
    pub fn has_dynamic(&self) -> bool {
        match self {
            Type::Object(Policy::Dynamic, _) => true,
            Type::Object(_, fields) => fields.iter().any(|(_, field)| field.has_dynamic()),
            Type::Array(item) => item.has_dynamic(),
            _ => false,
        }
    }

    /// The number of columns that this type counts as: itself and all its fields.
    pub fn columns(&self) -> usize {
        match self {
            Type::Object(_, fields) => 1 + fields.iter().map(|(_, field)| field.columns()).sum::<usize>(),
            Type::Array(item) => item.columns(),
            _ => 1,
        }
    }

    /// Whether a value contains text that is too long for an index.
    pub fn too_long(value: &Value) -> bool {
        match value {
            Value::Text(text) => text.len() > 32_766,
            Value::Array(items) => items.iter().any(Type::too_long),
            Value::Object(members) => members.iter().any(|(_, value)| Type::too_long(value)),
            _ => false,
        }
    }
}

/// A name as quoted in DDL.
pub fn name_quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The type that a dynamic object guesses for a field with this value.
fn guessed(json: &Json) -> Option<Type> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(_) => Type::Boolean,
        Json::Number(text) if text.contains(['.', 'e', 'E']) => Type::Double,
        Json::Number(_) => Type::Integer(64),
        Json::Text(_) => Type::Text(None),
        Json::Array(items) => {
            let types: Vec<Type> = items.iter().filter_map(guessed).collect();
            let double = types.iter().find(|item| **item == Type::Double);
            Type::Array(Box::new(double.or(types.first())?.clone()))
        }
        Json::Object(_) => {
            let mut object = Type::Object(Policy::Dynamic, Vec::new());
            object.learn(json);
            object
        }
    })
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

/// Wraps a number above 2^63-1 silently and truncates fractions, but takes a string exactly.
fn integer(bits: u32, json: &Json) -> Option<i64> {
    let value = match json {
        Json::Text(text) => text.parse::<i64>().ok()?,
        Json::Number(text) => match text.parse::<i128>() {
            Ok(value) => value as i64,
            Err(_) => text.parse::<f64>().ok()?.trunc() as i64,
        },
        _ => return None,
    };
    if bits == 64 {
        return Some(value);
    }
    let most = 1i64 << (bits - 1);
    (-most..most).contains(&value).then_some(value)
}

/// A decimal as plain text, rounded to its scale; `None` if it has too many digits.
fn numeric(text: &str, bounds: Option<(u32, u32)>) -> Option<Value> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    if !(whole.bytes().chain(fraction.bytes())).all(|b| b.is_ascii_digit())
        || whole.len() + fraction.len() == 0
    {
        return None;
    }
    let Some((precision, scale)) = bounds else { return Some(Value::Numeric(text.to_owned())) };
    let scale = scale as usize;
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    if fraction.len() > scale {
        let cut = whole.len() + scale;
        let up = digits[cut] >= b'5';
        digits.truncate(cut);
        if up {
            let mut carry = true;
            for digit in digits.iter_mut().rev() {
                if !carry {
                    break;
                }
                carry = *digit == b'9';
                *digit = if carry { b'0' } else { *digit + 1 };
            }
            if carry {
                digits.insert(0, b'1');
            }
        }
    } else {
        digits.resize(whole.len() + scale, b'0');
    }
    let significant = digits.iter().skip_while(|digit| **digit == b'0').count();
    if significant > precision as usize {
        return None;
    }
    while digits.len() < scale + 1 {
        digits.insert(0, b'0');
    }
    let digits = String::from_utf8(digits).ok()?;
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let sign = if significant == 0 { "" } else { sign };
    Some(Value::Numeric(if scale == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }))
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
pub fn untyped(json: &Json) -> Value {
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

/// Milliseconds of `YYYY-MM-DD[THH:MM:SS[.f]][Z]`; truncates finer fractions.
fn moment(text: &str) -> Option<i64> {
    let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, ""));
    let mut parts = date.splitn(3, '-');
    let mut number = || parts.next()?.parse::<i64>().ok();
    let (year, month, day) = (number()?, number()?, number()?);
    let clock = clock.trim_end_matches('Z');
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut millis = days(year, month, day) * 86_400_000;
    for (part, unit) in clock.split(':').zip([3_600_000, 60_000, 1000]) {
        millis += if part.is_empty() { 0 } else { part.parse::<i64>().ok()? * unit };
    }
    let fraction: String = fraction.chars().chain("000".chars()).take(3).collect();
    Some(millis + fraction.parse::<i64>().ok()?)
}

/// Days since 1970 of a date (H. Hinnant, days_from_civil).
pub fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// `date_trunc(part, moment)`.
pub fn date_trunc(part: &str, millis: i64) -> i64 {
    let day = millis.div_euclid(86_400_000);
    let unit = |n: i64| millis.div_euclid(n) * n;
    // Search for the year and month of the day.
    let mut year = 1970 + day.div_euclid(366) - 1;
    while days(year + 1, 1, 1) <= day {
        year += 1;
    }
    let mut month = 1;
    while month < 12 && days(year, month + 1, 1) <= day {
        month += 1;
    }
    match part {
        "second" => unit(1000),
        "minute" => unit(60_000),
        "hour" => unit(3_600_000),
        "day" => unit(86_400_000),
        // Monday; 1970-01-01 was a Thursday.
        "week" => ((day + 3).div_euclid(7) * 7 - 3) * 86_400_000,
        "month" => days(year, month, 1) * 86_400_000,
        "quarter" => days(year, (month - 1) / 3 * 3 + 1, 1) * 86_400_000,
        _ => days(year, 1, 1) * 86_400_000,
    }
}

/// A value in a response.
pub fn to_json(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Real(value) => float(value.is_finite(), format!("{value:?}")),
        Value::Double(value) => float(value.is_finite(), format!("{value:?}")),
        Value::Numeric(text) => text.clone(),
        Value::Text(text) => quoted(text),
        Value::Array(items) => format!("[{}]", items.iter().map(to_json).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            // In another order than received.
            let members =
                members.iter().rev().map(|(name, value)| format!("{}:{}", quoted(name), to_json(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

fn float(finite: bool, text: String) -> String {
    match (finite, text.as_str()) {
        (true, _) => text,
        (_, "inf") => "\"Infinity\"".into(),
        (_, "-inf") => "\"-Infinity\"".into(),
        _ => "\"NaN\"".into(),
    }
}

/// A value as text, for messages and keys.
pub fn to_text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        other => to_json(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast(data_type: &Type, json: &str) -> Result<Value, Refused> {
        data_type.cast(&Json::parse(json).unwrap())
    }

    #[test]
    fn numbers_beyond_64_bits_wrap_and_fractions_are_truncated_unlike_strings() {
        let bigint = Type::Integer(64);
        assert_eq!(cast(&bigint, "18446744073709551615"), Ok(Value::Int(-1)));
        assert_eq!(cast(&bigint, "1.5"), Ok(Value::Int(1)));
        assert!(matches!(cast(&bigint, "\"9223372036854775808\""), Err(Refused::Request(_))));
        assert!(matches!(cast(&Type::Integer(16), "40000"), Err(Refused::Request(_))));
    }

    #[test]
    fn both_ends_of_64_bits_reject_the_row_unless_the_field_is_untyped() {
        for end in [i64::MIN, i64::MAX] {
            for (data_type, json) in [
                (Type::Integer(64), end.to_string()),
                (Type::Integer(64), format!("\"{end}\"")),
                (Type::Timestamp(true), end.to_string()),
                (Type::Array(Box::new(Type::Integer(64))), format!("[1,{end}]")),
            ] {
                assert!(matches!(cast(&data_type, &json), Err(Refused::Row(4000, _))), "{json}");
            }
            let ignored = Type::Object(Policy::Ignored, Vec::new());
            assert!(cast(&ignored, &format!("{{\"a\":{end}}}")).is_ok());
        }
        let ignored = Type::Object(Policy::Ignored, Vec::new());
        assert!(matches!(cast(&ignored, "{\"a\":9223372036854775808}"), Err(Refused::Row(5000, _))));
    }

    #[test]
    fn a_dynamic_object_guesses_types_from_first_values_and_keeps_them() {
        let mut object = Type::Object(Policy::Dynamic, Vec::new());
        let first = Json::parse("{\"i\":1,\"f\":1.0,\"t\":\"NaN\",\"n\":null,\"e\":[],\"l\":[{\"q\":1}]}");
        object.learn(&first.unwrap());
        assert_eq!(
            object.shown(0),
            "OBJECT(DYNAMIC) AS (\n   \"i\" BIGINT,\n   \"f\" DOUBLE PRECISION,\n   \"t\" TEXT,\n   \
             \"l\" ARRAY(OBJECT(DYNAMIC) AS (\n      \"q\" BIGINT\n   ))\n)"
        );
        let Ok(Value::Object(stored)) = cast(&object, "{\"i\":1.5,\"t\":1.5}") else {
            panic!("an object type converts to an object")
        };
        assert_eq!(stored[0].1, Value::Int(1));
        assert_eq!(stored[1].1, Value::Text("1.5".into()));
    }

    #[test]
    fn numerics_go_through_a_double_as_numbers_but_not_as_strings() {
        let numeric = Type::Numeric(Some((38, 2)));
        assert_eq!(
            cast(&numeric, "\"12345678901234567890.12\""),
            Ok(Value::Numeric("12345678901234567890.12".into()))
        );
        assert_ne!(cast(&numeric, "12345678901234567890.12"), cast(&numeric, "\"12345678901234567890.12\""));
        assert_eq!(cast(&numeric, "\"9.995\""), Ok(Value::Numeric("10.00".into())));
        assert_eq!(cast(&numeric, "\"-0.001\""), Ok(Value::Numeric("0.00".into())));
    }

    #[test]
    fn timestamps_are_truncated_to_milliseconds() {
        assert_eq!(
            cast(&Type::Timestamp(false), "\"1970-01-02T00:00:00.123456Z\""),
            Ok(Value::Int(86_400_123))
        );
        assert_eq!(date_trunc("month", 1_709_251_199_999), days(2024, 2, 1) * 86_400_000);
        assert_eq!(date_trunc("week", 0), -3 * 86_400_000);
    }

    #[test]
    fn objects_and_arrays_are_as_strict_as_declared() {
        let fields = vec![("a".to_owned(), Type::Integer(64))];
        assert!(matches!(
            cast(&Type::Object(Policy::Strict, fields.clone()), "{\"b\":1}"),
            Err(Refused::Row(..))
        ));
        assert!(cast(&Type::Object(Policy::Dynamic, fields), "{\"b\":1}").is_ok());
        let array = Type::Array(Box::new(Type::Text(None)));
        let texts = ["1", "a"].map(|text| Value::Text(text.into()));
        assert_eq!(cast(&array, "[1,\"a\"]"), Ok(Value::Array(texts.to_vec())));
        let integers = Type::Array(Box::new(Type::Integer(64)));
        assert!(matches!(cast(&integers, "[1,\"a\"]"), Err(Refused::Request(_))));
        assert!(matches!(cast(&Type::Text(Some(2)), "\"abc\""), Err(Refused::Row(..))));
    }
}
