//! The type of a column that exists, with the types inside of it.

use std::fmt::{Display, Formatter, Result};

use crate::table::names::quote;
use crate::table::native::Native;

/// The type of a column, of a field of an object, or of the items of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoredType {
    /// By its name in `information_schema.columns.data_type`.
    Scalar(String),
    /// Text of at most this many UTF-16 code units.
    Varchar(u32),
    Numeric {
        precision: Option<u8>,
        scale: Option<u8>,
    },
    Native(Native),
    Object(Policy, Vec<(String, StoredType)>),
    Array(Box<StoredType>),
}

/// How an object treats a field that it does not declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Refuses the row.
    Strict,
    /// Adds the field, with a type guessed from its first value.
    Dynamic,
    /// Stores the value as it is.
    Ignored,
}

impl StoredType {
    /// The type of this name in the catalogue.
    pub(crate) fn named(name: &str, length: Option<u32>) -> Self {
        Native::new(name, length).map_or_else(|| Self::Scalar(name.to_owned()), Self::Native)
    }

    /// Whether no value has given the type yet: a dynamic object had the field, but only with NULL or empty
    /// arrays.
    pub(crate) fn is_undefined(&self) -> bool {
        match self {
            Self::Scalar(name) => name == "undefined",
            Self::Array(item) => item.is_undefined(),
            _ => false,
        }
    }
}

impl Display for StoredType {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Scalar(name) => f.write_str(&name.to_uppercase()),
            Self::Native(native) => write!(f, "{native}"),
            Self::Varchar(most) => write!(f, "VARCHAR({most})"),
            Self::Numeric { precision: Some(precision), scale: Some(scale) } => {
                write!(f, "NUMERIC({precision},{scale})")
            }
            Self::Numeric { precision: Some(precision), scale: None } => write!(f, "NUMERIC({precision})"),
            Self::Numeric { .. } => f.write_str("NUMERIC"),
            Self::Object(policy, fields) => {
                write!(f, "OBJECT({})", format!("{policy:?}").to_uppercase())?;
                for (i, (name, field)) in fields.iter().enumerate() {
                    let before = if i == 0 { " AS (" } else { ", " };
                    write!(f, "{before}{} {field}", quote(name))?;
                }
                if fields.is_empty() { Ok(()) } else { f.write_str(")") }
            }
            Self::Array(item) => write!(f, "ARRAY({item})"),
        }
    }
}
