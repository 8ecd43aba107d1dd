//! What a field's metadata says of its values beyond their Arrow type.

use arrow_schema::{DataType, Field};

/// The extension name of 16-byte binary that holds UUIDs
/// (<https://arrow.apache.org/docs/format/CanonicalExtensions.html>).
pub(crate) const UUID_EXTENSION: &str = "arrow.uuid";
/// The extension name of text that holds JSON.
pub(crate) const JSON_EXTENSION: &str = "arrow.json";
/// The extension name of 12-byte binary that holds Parquet's intervals.
pub(crate) const INTERVAL_EXTENSION: &str = "sawmill.interval";
/// Field metadata of text of which a few values come again and again.
pub(crate) const ENUM_MARK: &str = "sawmill:enum";

/// The bytes of Parquet's INTERVAL.
pub const INTERVAL_BYTES: DataType = DataType::FixedSizeBinary(12);

/// Whether a field, or the dictionary in it, holds Parquet's intervals as their 12 bytes.
pub fn is_interval(field: &Field) -> bool {
    let value = match field.data_type() {
        DataType::Dictionary(_, value) => value,
        other => other,
    };
    *value == INTERVAL_BYTES && field.extension_type_name() == Some(INTERVAL_EXTENSION)
}

/// Whether a field holds UUIDs in 16 bytes.
pub fn is_uuid(field: &Field) -> bool {
    matches!(field.data_type(), DataType::FixedSizeBinary(16))
        && field.extension_type_name() == Some(UUID_EXTENSION)
}

/// Whether a field holds JSON as text. As a column of its own that becomes jsonb; within lists and structs it stays
/// a string.
pub fn is_json(field: &Field) -> bool {
    let value = match field.data_type() {
        DataType::Dictionary(_, value) => value,
        other => other,
    };
    matches!(value, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        && field.extension_type_name() == Some(JSON_EXTENSION)
}

/// Whether a field holds text of which a few values are meant to come again and again: annotated as ENUM in Parquet,
/// or a dictionary in Arrow, which is what categories of data frames are written as.
pub fn is_enum(field: &Field) -> bool {
    let is_text =
        |arrow: &DataType| matches!(arrow, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    match field.data_type() {
        DataType::Dictionary(_, value) => is_text(value) && !is_json(field),
        other => is_text(other) && field.metadata().contains_key(ENUM_MARK),
    }
}
