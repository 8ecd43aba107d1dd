//! Types of columns, the values they store, and how JSON is converted to them, with the silent losses of the
//! real server.

mod calendar;
mod cast;
mod dynamic;
mod native;
mod numeric;
mod shape;
mod show;
#[cfg(test)]
mod tests;

pub(crate) use calendar::date_trunc;
pub(crate) use cast::{Refused, untyped};
pub(crate) use show::{name_quoted, to_json, to_text};

/// A column's type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
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
    /// GEO_POINT
    GeoPoint,
    /// GEO_SHAPE
    GeoShape,
    /// FLOAT_VECTOR with this number of floats.
    FloatVector(usize),
    /// IP
    Ip,
    /// BIT with its length.
    Bit(usize),
    /// CHARACTER with its length.
    Character(usize),
    /// OBJECT with its policy and its fields.
    Object(Policy, Vec<(String, Type)>),
    /// ARRAY
    Array(Box<Type>),
}

/// How an object treats undeclared fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Rejects them.
    Strict,
    /// Adds them.
    Dynamic,
    /// Stores them unchanged.
    Ignored,
}

/// A stored value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
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

impl Type {
    /// Whether the type contains an object that accepts undeclared fields.
    pub(crate) fn has_dynamic(&self) -> bool {
        match self {
            Type::Object(Policy::Dynamic, _) => true,
            Type::Object(_, fields) => fields.iter().any(|(_, field)| field.has_dynamic()),
            Type::Array(item) => item.has_dynamic(),
            _ => false,
        }
    }

    /// The number of columns that this type counts as: itself and all its fields.
    pub(crate) fn columns(&self) -> usize {
        match self {
            Type::Object(_, fields) => 1 + fields.iter().map(|(_, field)| field.columns()).sum::<usize>(),
            Type::Array(item) => item.columns(),
            _ => 1,
        }
    }

    /// Whether a value contains text that is too long for an index.
    pub(crate) fn too_long(value: &Value) -> bool {
        match value {
            Value::Text(text) => text.len() > 32_766,
            Value::Array(items) => items.iter().any(Type::too_long),
            Value::Object(members) => members.iter().any(|(_, value)| Type::too_long(value)),
            _ => false,
        }
    }
}
