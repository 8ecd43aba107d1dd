//! How Parquet stores a leaf, where its Arrow type says less.

use arrow_schema::{DataType, Field, TimeUnit};

use crate::arrow::schema::UUID_EXTENSION;

/// The key of a field's metadata with the name of its Parquet type, such as `ENUM`: for what Arrow has no type.
pub const PARQUET_TYPE: &str = "sawmill.parquet_type";

/// The extension type of JSON in strings.
const JSON_EXTENSION: &str = "arrow.json";

/// What a leaf is besides its Arrow type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Plain,
    Uuid,
    Enum,
    Json,
    Int96,
    /// A time of day in UTC.
    UtcTime,
    /// A Parquet type that specs do not have, or that is not learned.
    Other(String),
}

impl Stored {
    /// Of a field whose values are sampled as `kind`, and the type that they are sampled as for it.
    pub(crate) fn new(field: &Field, kind: DataType) -> (Self, DataType) {
        let marked = field.metadata().get(PARQUET_TYPE).map(String::as_str);
        let extension = field.extension_type_name();
        let is_text = matches!(kind, DataType::Utf8 | DataType::Binary);
        match (marked, extension) {
            (Some("UUID"), _) | (_, Some(UUID_EXTENSION)) if kind == DataType::FixedSizeBinary(16) => {
                (Stored::Uuid, kind)
            }
            (Some("ENUM"), _) if is_text => (Stored::Enum, DataType::Utf8),
            (Some("JSON"), _) | (_, Some(JSON_EXTENSION)) if is_text => (Stored::Json, DataType::Utf8),
            (Some("INT96"), _) if matches!(kind, DataType::Timestamp(..)) => {
                (Stored::Int96, DataType::Timestamp(TimeUnit::Nanosecond, None))
            }
            (Some("TIME UTC"), _) if matches!(kind, DataType::Time32(_) | DataType::Time64(_)) => {
                (Stored::UtcTime, kind)
            }
            (Some(name), _) => (Stored::Other(name.to_owned()), kind),
            _ => (Stored::Plain, kind),
        }
    }
}
