//! Whether the files of a table agree on the types of its columns.
//!
//! DataFusion converts a file's values to the table's type even if they change: 1.5 becomes 1, and a date loses its
//! time of day. Here only types are accepted whose values all stay the same.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};
use datafusion::error::Result;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use datafusion::parquet::basic::LogicalType;
use datafusion::parquet::file::metadata::ParquetMetaData;

use sawmill_footer::enums_as_text_59;

use crate::error::refused;

/// Field metadata that names an Arrow extension type
/// (<https://arrow.apache.org/docs/format/CanonicalExtensions.html>).
const EXTENSION_NAME: &str = "ARROW:extension:name";

/// Refuses a file whose values would change in the table's columns.
///
/// # Errors
/// A column of the file has a type that the table's cannot hold.
pub(crate) fn check(file: &str, metadata: &Arc<ParquetMetaData>, table: &Schema) -> Result<()> {
    let arrow = ArrowReaderMetadata::try_new(Arc::clone(metadata), ArrowReaderOptions::new())?;
    let text = enums_as_text_59(arrow.schema(), arrow.parquet_schema());
    let arrow = text.as_ref().unwrap_or(arrow.schema());
    for field in table.fields() {
        let Ok(theirs) = arrow.field_with_name(field.name()) else { continue };
        let (here, first) = (theirs.data_type(), field.data_type());
        if !keeps_values(here, first) {
            let what =
                format!("column {:?} is {here}, but {first} in the first file of the table", field.name());
            let advice = "query such files apart, and combine them with CAST and UNION ALL";
            return Err(refused(what, file, advice));
        }
    }
    Ok(())
}

/// The schema with the Arrow extension names of columns that hold UUIDs and JSON, which the `parquet` crate reads as
/// bytes and text. So a table of PostgreSQL gets `uuid` and `jsonb`. ENUM columns, which the crate reads as bytes, are
/// text: the reader decodes to the types of the table.
pub(crate) fn with_extensions(schema: &SchemaRef, metadata: &ParquetMetaData) -> SchemaRef {
    let text = enums_as_text_59(schema, metadata.file_metadata().schema_descr());
    let schema = text.as_ref().unwrap_or(schema);
    let columns = metadata.file_metadata().schema_descr().root_schema().get_fields();
    let extension = |field: &FieldRef| {
        let column = columns.iter().find(|column| column.name() == field.name())?;
        match column.get_basic_info().logical_type_ref()? {
            LogicalType::Uuid => Some("arrow.uuid"),
            LogicalType::Json => Some("arrow.json"),
            _ => None,
        }
    };
    let marked = schema.fields().iter().map(|field| match extension(field) {
        Some(name) => {
            let mut metadata = field.metadata().clone();
            metadata.insert(EXTENSION_NAME.to_owned(), name.to_owned());
            Arc::new(field.as_ref().clone().with_metadata(metadata))
        }
        None => Arc::clone(field),
    });
    Arc::new(Schema::new_with_metadata(marked.collect::<Fields>(), schema.metadata().clone()))
}

/// Whether each value of a type is the same in another.
fn keeps_values(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    match (from, to) {
        (from, to) if from == to => true,
        (Null, _) => true,
        (Dictionary(_, from), to) => keeps_values(from, to),
        (from, Dictionary(_, to)) => keeps_values(from, to),
        (Utf8 | LargeUtf8 | Utf8View, Utf8 | LargeUtf8 | Utf8View) => true,
        (Binary | LargeBinary | BinaryView | FixedSizeBinary(_), Binary | LargeBinary | BinaryView) => true,
        (Int8, Int16 | Int32 | Int64 | Float32 | Float64) => true,
        (Int16, Int32 | Int64 | Float32 | Float64) => true,
        (Int32, Int64 | Float64) => true,
        (UInt8, UInt16 | UInt32 | UInt64 | Int16 | Int32 | Int64 | Float32 | Float64) => true,
        (UInt16, UInt32 | UInt64 | Int32 | Int64 | Float32 | Float64) => true,
        (UInt32, UInt64 | Int64 | Float64) => true,
        (Float16, Float32 | Float64) | (Float32, Float64) => true,
        (List(from) | LargeList(from), List(to) | LargeList(to)) | (Map(from, _), Map(to, _)) => {
            keeps_values(from.data_type(), to.data_type())
        }
        (Struct(from), Struct(to)) => from.iter().all(|field| {
            let same = to.find(field.name());
            same.is_some_and(|(_, to)| keeps_values(field.data_type(), to.data_type()))
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::TimeUnit;

    #[test]
    fn a_type_is_taken_if_no_value_changes() {
        use DataType::*;
        let list = |of: DataType| DataType::new_list(of, true);
        for (from, to, taken) in [
            (Int32, Int64, true),
            (Int64, Int32, false),
            (Int64, Float64, false),
            (Float64, Int64, false),
            (Float32, Float64, true),
            (Float64, Float32, false),
            (Timestamp(TimeUnit::Microsecond, None), Date32, false),
            (Utf8, LargeUtf8, true),
            (Utf8, Int64, false),
            (Int64, Utf8, false),
            (list(Int32), list(Int64), true),
            (list(Int64), list(Int32), false),
        ] {
            assert_eq!(keeps_values(&from, &to), taken, "{from} in {to}");
        }
    }
}
