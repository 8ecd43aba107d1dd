//! Chooses the Arrow types to read, which lose nothing and decode fastest, and compares the schemas of
//! several files.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type};
use sawmill_profile::{Error, Kind, Result};

use crate::columns::common::{merged, values_of};
use crate::columns::leaves::with_leaves;
use crate::parquet_files::interval::{INTERVAL_BYTES, INTERVAL_EXTENSION, is_marked};
use crate::parquet_files::shapes::{self, SRID_MARK};

/// Field metadata that names an Arrow extension type
/// (<https://arrow.apache.org/docs/format/CanonicalExtensions.html>).
pub(crate) const EXTENSION_NAME: &str = "ARROW:extension:name";
/// Extension name of 16-byte binary that contains UUIDs.
pub(crate) const UUID_EXTENSION: &str = "arrow.uuid";
/// Extension name of text that contains JSON.
pub(crate) const JSON_EXTENSION: &str = "arrow.json";

/// Extension name of structs that store a VARIANT, and of columns that contain one.
const VARIANT_EXTENSION: &str = "arrow.parquet.variant";

/// Field metadata of a top-level column whose text is annotated as ENUM; within lists and structs it is text.
pub(crate) const ENUM_MARK: &str = "sawmill:enum";

/// Field metadata of a time in UTC. The `parquet` crate's writer knows it, too.
const UTC_MARK: &str = "adjusted_to_utc";

/// The schemas for reading a file: `hint` is what the reader must produce, `schema` the same with the marks of
/// top-level columns; `intervals` are the INTERVAL leaf columns that are read as bytes.
pub(crate) struct ReadSchema {
    pub hint: Arc<Schema>,
    pub schema: Arc<Schema>,
    pub intervals: Vec<usize>,
}

impl ReadSchema {
    /// Reads timestamps without a zone as moments in time where a table's column of this name has these: INT96 never
    /// says which of both they are, and some writers leave it out.
    pub(crate) fn with_zones_of(self, table: &Schema) -> Self {
        let zoned = |schema: &Schema| {
            let fields = schema.fields().iter().map(|read| match table.field_with_name(read.name()) {
                Ok(wanted) => with_zones(read, wanted),
                Err(_) => Arc::clone(read),
            });
            Arc::new(Schema::new_with_metadata(fields.collect::<Fields>(), schema.metadata().clone()))
        };
        Self { hint: zoned(&self.hint), schema: zoned(&self.schema), intervals: self.intervals }
    }
}

fn with_zones(read: &FieldRef, wanted: &Field) -> FieldRef {
    use DataType::Timestamp;
    let zoned = |read: &DataType, wanted: &DataType| match (read, wanted) {
        (Timestamp(unit, None), Timestamp(_, zone @ Some(_))) => Timestamp(*unit, zone.clone()),
        _ => read.clone(),
    };
    Arc::new(merged(read, wanted, zoned))
}

/// Chooses the types to read. `arrow` is the schema that the `parquet` crate derives.
///
/// - strings and bytes as views: their values stay in the decoded page and are not copied;
/// - ENUM as text, which the `parquet` crate would read as bytes;
/// - days as days, even where the file's own Arrow schema has them in milliseconds;
/// - INT96 timestamps in microseconds: in nanoseconds, dates outside 1677..2262 would wrap around;
/// - INTERVAL as its bytes, because the reader delivers at most two of the three parts; unless the file's own
///   Arrow schema, `embedded` in its metadata, says which parts are used, which then are signed.
pub(crate) fn read_schema(
    arrow: &Schema,
    parquet: &SchemaDescriptor,
    embedded: bool,
) -> std::result::Result<ReadSchema, String> {
    let mut leaves = Leaves { parquet, next: 0, embedded, intervals: Vec::new() };
    let hint = with_leaves(arrow.fields(), &mut |field| leaves.field(field))?;
    let intervals = leaves.intervals;
    let mut named = hint.clone();
    if parquet.root_schema().get_fields().len() == named.len() {
        let columns = named.iter().zip(parquet.root_schema().get_fields());
        named = columns
            .map(|(field, column)| match column {
                _ if is_enum(column) => marked(field, ENUM_MARK, ""),
                _ if holds_variant(column) => marked(field, EXTENSION_NAME, VARIANT_EXTENSION),
                _ => match shapes::of_column(column) {
                    Some(system) => marked(field, SRID_MARK, &system),
                    None => Arc::clone(field),
                },
            })
            .collect();
    }
    Ok(ReadSchema { hint: Arc::new(Schema::new(hint)), schema: Arc::new(Schema::new(named)), intervals })
}

/// Whether a column is a VARIANT, or contains one.
fn holds_variant(column: &Type) -> bool {
    matches!(column.get_basic_info().logical_type_ref(), Some(LogicalType::Variant(_)))
        || !column.is_primitive() && column.get_fields().iter().any(|field| holds_variant(field))
}

/// Refuses columns of VARIANT: their storage is not their values.
///
/// # Errors
/// The first such column.
pub fn refuse_variants(schema: &Schema) -> Result<()> {
    let variant =
        |field: &&FieldRef| field.metadata().get(EXTENSION_NAME).is_some_and(|of| of == VARIANT_EXTENSION);
    match schema.fields().iter().find(variant) {
        None => Ok(()),
        Some(field) => Err(Error::new(Kind::Schema, "VARIANT cannot be decoded")
            .at(format!("column {:?}", field.name()))
            .advise("name the other columns with --columns, or write it as text of JSON or as a struct")),
    }
}

fn is_enum(column: &Type) -> bool {
    let info = column.get_basic_info();
    column.is_primitive()
        && (info.logical_type_ref() == Some(&LogicalType::Enum)
            || info.converted_type() == ConvertedType::ENUM)
}

/// Returns the field with additional metadata.
pub(crate) fn marked(field: &Field, key: &str, value: &str) -> FieldRef {
    let mut metadata = field.metadata().clone();
    metadata.insert(key.to_owned(), value.to_owned());
    Arc::new(field.clone().with_metadata(metadata))
}

/// Walks the leaves of Arrow fields and the columns of Parquet side by side.
struct Leaves<'a> {
    parquet: &'a SchemaDescriptor,
    next: usize,
    embedded: bool,
    /// The leaves visited so far that are read as [`INTERVAL_BYTES`].
    intervals: Vec<usize>,
}

impl Leaves<'_> {
    fn field(&mut self, field: &FieldRef) -> std::result::Result<FieldRef, String> {
        if self.next >= self.parquet.num_columns() {
            return Err("its Arrow schema has more columns than its Parquet schema".into());
        }
        let column = self.parquet.column(self.next);
        // Sawmill's files of rejected rows have both an Arrow schema and the mark.
        let interval =
            matches!(field.data_type(), DataType::Interval(_)) && (!self.embedded || is_marked(field));
        if interval {
            self.intervals.push(self.next);
        }
        self.next += 1;
        let data_type = if interval { INTERVAL_BYTES } else { leaf(field.data_type(), &column) };
        let read = field.as_ref().clone().with_data_type(data_type);
        let json = column.converted_type() == ConvertedType::JSON;
        let mark = match column.logical_type_ref() {
            _ if interval => Some((EXTENSION_NAME, INTERVAL_EXTENSION)),
            Some(LogicalType::Uuid) => Some((EXTENSION_NAME, UUID_EXTENSION)),
            Some(LogicalType::Json) => Some((EXTENSION_NAME, JSON_EXTENSION)),
            Some(LogicalType::Time(time)) if time.is_adjusted_to_u_t_c => Some((UTC_MARK, "")),
            _ => json.then_some((EXTENSION_NAME, JSON_EXTENSION)),
        };
        match mark {
            Some((key, value)) => Ok(marked(&read, key, value)),
            None => Ok(Arc::new(read)),
        }
    }
}

fn leaf(arrow: &DataType, column: &ColumnDescriptor) -> DataType {
    let text = is_enum(column.self_type());
    let physical = column.physical_type();
    match arrow {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::BinaryView if text && physical == PhysicalType::BYTE_ARRAY => {
            DataType::Utf8View
        }
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        // The column has days; the file's own Arrow schema says that they were milliseconds.
        DataType::Date64 if physical == PhysicalType::INT32 => DataType::Date32,
        DataType::Timestamp(_, zone) if physical == PhysicalType::INT96 => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        other => other.clone(),
    }
}

/// Returns the differences between the columns of two files, one line each; empty if they agree. The order of
/// columns and nullability may differ.
pub(crate) fn differences(first: &Schema, other: &Schema) -> Vec<String> {
    let mut lines = Vec::new();
    for field in first.fields() {
        match other.field_with_name(field.name()) {
            Err(_) => lines.push(format!("column {:?} is missing", field.name())),
            Ok(theirs) if !same(field, theirs) => {
                lines.push(format!(
                    "column {:?} is {} and not {}",
                    field.name(),
                    theirs.data_type(),
                    field.data_type()
                ));
            }
            Ok(_) => {}
        }
    }
    for field in other.fields() {
        if first.field_with_name(field.name()).is_err() {
            lines.push(format!("column {:?} ({}) is only in that file", field.name(), field.data_type()));
        }
    }
    lines
}

/// Whether two fields have the same values. Ignores nullability, the names of list items and map entries, and
/// whether text is marked as JSON. A field without a type has only NULLs, which every type allows, and a
/// dictionary equals its values.
pub(crate) fn same(a: &Field, b: &Field) -> bool {
    use DataType::{FixedSizeList, LargeList, List, Map, Struct};
    let extension =
        |field: &Field| field.metadata().get(EXTENSION_NAME).filter(|name| *name != JSON_EXTENSION).cloned();
    let untyped = *a.data_type() == DataType::Null || *b.data_type() == DataType::Null;
    untyped
        || extension(a) == extension(b)
            && a.metadata().get(SRID_MARK) == b.metadata().get(SRID_MARK)
            && match (a.data_type(), b.data_type()) {
                (List(a), List(b)) | (LargeList(a), LargeList(b)) => same(a, b),
                (FixedSizeList(a, n), FixedSizeList(b, m)) => n == m && same(a, b),
                (Map(a, _), Map(b, _)) => match (a.data_type(), b.data_type()) {
                    (Struct(a), Struct(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
                    _ => false,
                },
                (Struct(a), Struct(b)) => {
                    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name() == b.name() && same(a, b))
                }
                (a, b) => values_of(a) == values_of(b),
            }
}

#[cfg(test)]
mod tests {
    use parquet::schema::parser::parse_message_type;

    use super::*;

    #[test]
    fn int96_is_read_in_microseconds_whatever_unit_the_files_arrow_schema_has() {
        let message = parse_message_type("message m { optional int96 t; }").unwrap();
        let parquet = SchemaDescriptor::new(Arc::new(message));
        for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
            let arrow = Schema::new(vec![Field::new("t", DataType::Timestamp(unit, None), true)]);
            let Ok(read) = read_schema(&arrow, &parquet, true) else { panic!("{unit:?}") };
            let expected = DataType::Timestamp(TimeUnit::Microsecond, None);
            assert_eq!(*read.hint.field(0).data_type(), expected, "{unit:?}");
        }
    }
}
