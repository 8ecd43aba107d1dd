//! Types and values as the server shows them: in its catalogue, in `SHOW CREATE TABLE` and in responses.

use super::{Type, Value};
use crate::json::quoted;

impl Type {
    /// The name in the catalogue.
    pub(crate) fn catalogue_name(&self) -> String {
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
            Type::GeoPoint => "geo_point".into(),
            Type::GeoShape => "geo_shape".into(),
            Type::FloatVector(_) => "float_vector".into(),
            Type::Ip => "ip".into(),
            Type::Bit(_) => "bit".into(),
            Type::Character(_) => "character".into(),
            Type::Object(..) => "object".into(),
            Type::Array(item) => format!("{}_array", item.catalogue_name()),
        }
    }

    /// The type as `SHOW CREATE TABLE` writes it, indented by `depth` steps of three blanks.
    pub(crate) fn shown(&self, depth: usize) -> String {
        match self {
            Type::Numeric(Some((precision, scale))) => format!("NUMERIC({precision}, {scale})"),
            Type::FloatVector(length) | Type::Bit(length) | Type::Character(length) => {
                format!("{}({length})", self.catalogue_name().to_uppercase())
            }
            Type::Text(Some(length)) => format!("VARCHAR({length})"),
            Type::Array(item) => format!("ARRAY({})", item.shown(depth)),
            Type::Object(policy, fields) => {
                let policy = format!("OBJECT({})", format!("{policy:?}").to_uppercase());
                if fields.is_empty() {
                    return policy;
                }
                let blanks = |depth: usize| "   ".repeat(depth);
                let fields = fields.iter().map(|(name, field)| {
                    format!("{}{} {}", blanks(depth + 1), name_quoted(name), field.shown_column(depth + 1))
                });
                let fields = fields.collect::<Vec<_>>().join(",\n");
                format!("{policy} AS (\n{fields}\n{})", blanks(depth))
            }
            other => other.catalogue_name().to_uppercase(),
        }
    }

    /// The same for a column or a field, with its index where that is named.
    pub(crate) fn shown_column(&self, depth: usize) -> String {
        let mut inner = self;
        while let Type::Array(item) = inner {
            inner = item;
        }
        let index = if *inner == Type::GeoShape { " INDEX USING GEOHASH" } else { "" };
        format!("{}{index}", self.shown(depth))
    }
}

/// A name as quoted in DDL.
pub(crate) fn name_quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A value in a response.
pub(crate) fn to_json(value: &Value) -> String {
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
pub(crate) fn to_text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        other => to_json(other),
    }
}
