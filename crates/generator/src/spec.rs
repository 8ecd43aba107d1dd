//! The dataset spec as it stands in its TOML file: names and shapes, nothing checked beyond them.
//!
//! [`crate::Dataset::from_toml`] parses this and turns it into a validated dataset.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatasetSpec {
    /// The dataset's name, the stem of its files' names.
    pub name: String,
    /// The fields of a record.
    pub fields: Vec<FieldSpec>,
}

/// One field, or the element of a list (which has no name of its own).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FieldSpec {
    pub name: Option<String>,
    #[serde(rename = "type")]
    pub kind: TypeSpec,
    /// Probability of null. A field without it is required; `nulls = 0` makes it optional all the
    /// same.
    pub nulls: Option<f64>,
    /// How the values of a leaf are drawn.
    pub values: Option<ValuesSpec>,
    /// How many elements a list that is not null has.
    pub length: Option<LengthSpec>,
    /// The element of a list.
    pub element: Option<Box<FieldSpec>>,
    /// The fields of a struct.
    pub fields: Option<Vec<FieldSpec>>,
    /// Which optional fields of a struct are there together.
    pub present: Option<Vec<PresentSpec>>,
}

/// The types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TypeSpec {
    Boolean,
    Int32,
    Int64,
    Float,
    Double,
    /// Days since 1970-01-01.
    Date,
    /// Microseconds since 1970-01-01, without a zone.
    Timestamp,
    String,
    Struct,
    List,
}

impl TypeSpec {
    /// The name that a spec uses for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TypeSpec::Boolean => "boolean",
            TypeSpec::Int32 => "int32",
            TypeSpec::Int64 => "int64",
            TypeSpec::Float => "float",
            TypeSpec::Double => "double",
            TypeSpec::Date => "date",
            TypeSpec::Timestamp => "timestamp",
            TypeSpec::String => "string",
            TypeSpec::Struct => "struct",
            TypeSpec::List => "list",
        }
    }
}

/// How the values of a leaf are drawn.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ValuesSpec {
    /// "First Last".
    PersonName,
    /// Never the same twice in the dataset: a template with one `{id}` or `{id:0WIDTH}`.
    Unique(String),
    /// Each of the values with a probability proportional to its weight.
    Weights(BTreeMap<String, f64>),
    /// Every value from `min` to `max` (integers inclusive) alike.
    Uniform { min: toml::Value, max: toml::Value },
    /// The ranks 1 to `n`, rank `k` with a probability proportional to `k^-s`.
    Zipf { n: u32, s: f64 },
    /// Always the same.
    Constant(toml::Value),
}

/// How many elements a list has.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum LengthSpec {
    /// Each length with a probability proportional to its weight.
    Weights(BTreeMap<String, f64>),
    /// Every length from `min` to `max` inclusive alike.
    Uniform { min: u32, max: u32 },
    /// The lengths 1 to `n`, length `k` with a probability proportional to `k^-s`.
    Zipf { n: u32, s: f64 },
    /// Always the same.
    Constant(u32),
}

/// One combination of optional fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PresentSpec {
    /// The fields that are there; the others that any combination names are null.
    pub fields: Vec<String>,
    /// How often, relative to the other combinations.
    pub weight: f64,
}
