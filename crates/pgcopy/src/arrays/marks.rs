//! Field metadata that describes values beyond their Arrow type.

use arrow_schema::{DataType, Field};

/// Extension name of 16-byte binary that contains UUIDs
/// (<https://arrow.apache.org/docs/format/CanonicalExtensions.html>).
pub(crate) const UUID_EXTENSION: &str = "arrow.uuid";
/// Extension name of text that contains JSON.
pub(crate) const JSON_EXTENSION: &str = "arrow.json";
/// Extension name of 8-bit integers that are booleans.
const BOOL8_EXTENSION: &str = "arrow.bool8";
/// Extension name of 12-byte binary that contains Parquet's intervals.
pub(crate) const INTERVAL_EXTENSION: &str = "sawmill.interval";
/// Field metadata of text with few distinct values.
pub(crate) const ENUM_MARK: &str = "sawmill:enum";
/// Field metadata of bytes that are shapes: the number of their reference system.
pub(crate) const SRID_MARK: &str = "sawmill:srid";

/// The Arrow type of the bytes of Parquet's INTERVAL.
pub const INTERVAL_BYTES: DataType = DataType::FixedSizeBinary(12);

/// Returns the type of a field's values, which may be in a dictionary.
pub fn value_type(field: &Field) -> &DataType {
    match field.data_type() {
        DataType::Dictionary(_, value) => value,
        other => other,
    }
}

/// Whether a field, or its dictionary, contains Parquet's intervals of 12 bytes.
pub fn is_interval(field: &Field) -> bool {
    *value_type(field) == INTERVAL_BYTES && field.extension_type_name() == Some(INTERVAL_EXTENSION)
}

/// Whether a field contains UUIDs of 16 bytes.
pub fn is_uuid(field: &Field) -> bool {
    matches!(field.data_type(), DataType::FixedSizeBinary(16))
        && field.extension_type_name() == Some(UUID_EXTENSION)
}

/// Whether a field contains booleans as 8-bit integers.
pub(crate) fn is_bool8(field: &Field) -> bool {
    *field.data_type() == DataType::Int8 && field.extension_type_name() == Some(BOOL8_EXTENSION)
}

/// Whether a field contains JSON as text.
pub fn is_json(field: &Field) -> bool {
    value_type(field).is_string() && field.extension_type_name() == Some(JSON_EXTENSION)
}

/// Whether a field is meant to contain text with few distinct values: annotated as ENUM in Parquet, or a
/// dictionary in Arrow, as data frames write their categories.
pub fn is_enum(field: &Field) -> bool {
    match field.data_type() {
        DataType::Dictionary(_, value) => value.is_string() && !is_json(field),
        other => other.is_string() && field.metadata().contains_key(ENUM_MARK),
    }
}
