//! The Arrow schema of a dataset, as in its Parquet files.

use std::sync::Arc;

use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field as ArrowField, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit};

use crate::draw::nulls::Nulls;
use crate::spec::dataset::{Dataset, Field, Kind, ListStyle};
use crate::types::logical_type::{LogicalType, Unit};

/// The extension type of UUIDs in 16 bytes.
pub(crate) const UUID_EXTENSION: &str = "arrow.uuid";

/// The most digits of Arrow's 128-bit decimals.
const DIGITS_128: u8 = 38;

impl Dataset {
    /// The Arrow schema of the dataset.
    pub fn arrow_schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.fields.iter().map(arrow_field).collect::<Fields>()))
    }
}

/// A field with its children. Arrow's canonical extension types mark UUIDs and JSON, whose values otherwise
/// are plain bytes and text.
pub(crate) fn arrow_field(field: &Field) -> ArrowField {
    let arrow = ArrowField::new(&field.name, data_type(field), field.nulls != Nulls::Never);
    let extension = match &field.kind {
        Kind::Leaf(leaf) => match leaf.kind {
            LogicalType::Uuid => UUID_EXTENSION,
            LogicalType::Json => "arrow.json",
            _ => return arrow,
        },
        _ => return arrow,
    };
    let mark = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    arrow.with_metadata(
        [mark(EXTENSION_TYPE_NAME_KEY, extension), mark(EXTENSION_TYPE_METADATA_KEY, "")].into(),
    )
}

pub(crate) fn data_type(field: &Field) -> DataType {
    match &field.kind {
        Kind::Leaf(leaf) => leaf_type(&leaf.kind),
        Kind::Struct { fields, .. } => DataType::Struct(fields.iter().map(arrow_field).collect()),
        Kind::List { style: ListStyle::Map, children, .. } => {
            let entries = DataType::Struct(children.iter().map(arrow_field).collect());
            DataType::Map(Arc::new(ArrowField::new("key_value", entries, false)), false)
        }
        Kind::List { style: ListStyle::Fixed(size), children, .. } => {
            DataType::FixedSizeList(Arc::new(arrow_field(&children[0])), *size as i32)
        }
        Kind::List { children, .. } => DataType::List(Arc::new(arrow_field(&children[0]))),
    }
}

pub(crate) fn time_unit(unit: Unit) -> TimeUnit {
    match unit {
        Unit::Milliseconds => TimeUnit::Millisecond,
        Unit::Microseconds => TimeUnit::Microsecond,
        Unit::Nanoseconds => TimeUnit::Nanosecond,
    }
}

fn leaf_type(kind: &LogicalType) -> DataType {
    match kind {
        LogicalType::Boolean => DataType::Boolean,
        LogicalType::Integer { bits: 8, signed: true } => DataType::Int8,
        LogicalType::Integer { bits: 16, signed: true } => DataType::Int16,
        LogicalType::Integer { bits: 32, signed: true } => DataType::Int32,
        LogicalType::Integer { signed: true, .. } => DataType::Int64,
        LogicalType::Integer { bits: 8, .. } => DataType::UInt8,
        LogicalType::Integer { bits: 16, .. } => DataType::UInt16,
        LogicalType::Integer { bits: 32, .. } => DataType::UInt32,
        LogicalType::Integer { .. } => DataType::UInt64,
        LogicalType::Float16 => DataType::Float16,
        LogicalType::Float => DataType::Float32,
        LogicalType::Double => DataType::Float64,
        LogicalType::Decimal { precision, scale, .. } if *precision <= DIGITS_128 => {
            DataType::Decimal128(*precision, *scale as i8)
        }
        LogicalType::Decimal { precision, scale, .. } => DataType::Decimal256(*precision, *scale as i8),
        LogicalType::Date => DataType::Date32,
        LogicalType::Time { unit: Unit::Milliseconds, .. } => DataType::Time32(TimeUnit::Millisecond),
        LogicalType::Time { unit, .. } => DataType::Time64(time_unit(*unit)),
        LogicalType::Timestamp { unit, zone } => {
            DataType::Timestamp(time_unit(*unit), zone.as_deref().map(Arc::from))
        }
        LogicalType::Duration { unit } => DataType::Duration(time_unit(*unit)),
        LogicalType::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
        LogicalType::Int96 => DataType::Timestamp(TimeUnit::Nanosecond, None),
        LogicalType::String | LogicalType::Enum | LogicalType::Json => DataType::Utf8,
        LogicalType::Binary | LogicalType::Geometry { .. } => DataType::Binary,
        LogicalType::FixedBinary(width) => DataType::FixedSizeBinary(*width as i32),
        LogicalType::Uuid => DataType::FixedSizeBinary(16),
    }
}
