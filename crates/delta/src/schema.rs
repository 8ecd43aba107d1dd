//! Delta schemas, which are JSON, as Arrow schemas, and the other way round.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A column, or a field of a struct.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeltaField {
    pub name: String,
    #[serde(rename = "type")]
    pub data_type: DeltaType,
    pub nullable: bool,
    #[serde(default)]
    pub metadata: BTreeMap<String, Value>,
}

/// A type: the name of a simple one, or a nested one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum DeltaType {
    Simple(String),
    Nested(Nested),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub(crate) enum Nested {
    Struct { fields: Vec<DeltaField> },
    Array { element_type: Box<DeltaType>, contains_null: bool },
    Map { key_type: Box<DeltaType>, value_type: Box<DeltaType>, value_contains_null: bool },
}

/// Returns the columns of a table's schema.
pub(crate) fn fields_of(text: &str) -> Result<Vec<DeltaField>, String> {
    let failed = |error: serde_json::Error| format!("the table's schema is not one of Delta: {error}");
    match serde_json::from_str(text).map_err(failed)? {
        DeltaType::Nested(Nested::Struct { fields }) => Ok(fields),
        _ => Err("the table's schema is not a struct".to_owned()),
    }
}

/// Returns the text of a table's schema.
pub(crate) fn schema_string(fields: Vec<DeltaField>) -> Result<String, String> {
    let schema = DeltaType::Nested(Nested::Struct { fields });
    serde_json::to_string(&schema).map_err(|error| error.to_string())
}

/// Metadata of a field: its name in the files of a table that maps its columns.
pub(crate) const PHYSICAL_NAME: &str = "delta.columnMapping.physicalName";
/// Metadata of a field: its number in the files of a table that maps its columns.
const FIELD_ID: &str = "delta.columnMapping.id";

/// How the files of a table name its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mapping {
    /// As the table does.
    None,
    /// By names that stay when a column is renamed.
    Name,
    /// By numbers.
    Id,
}

/// Returns the Arrow schema whose types are those that the columns are read as. Of a table that maps its columns,
/// fields have the metadata by which they are found in files.
pub(crate) fn to_arrow(fields: &[DeltaField], mapping: Mapping) -> Result<Schema, String> {
    Ok(Schema::new(fields.iter().map(|field| arrow_field(field, mapping)).collect::<Result<Vec<_>, _>>()?))
}

fn arrow_field(field: &DeltaField, mapping: Mapping) -> Result<Field, String> {
    let named = |what: String| format!("column {:?}: {what}", field.name);
    let data_type = arrow_type(&field.data_type, mapping).map_err(named)?;
    let arrow = Field::new(&field.name, data_type, field.nullable);
    let key = match mapping {
        Mapping::None => return Ok(arrow),
        Mapping::Name => PHYSICAL_NAME,
        Mapping::Id => FIELD_ID,
    };
    let found = match field.metadata.get(key) {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Number(id)) => id.to_string(),
        _ => return Err(named(format!("the table maps its columns, and this one has no {key}"))),
    };
    Ok(arrow.with_metadata([(key.to_owned(), found)].into()))
}

fn arrow_type(data_type: &DeltaType, mapping: Mapping) -> Result<DataType, String> {
    let name = match data_type {
        DeltaType::Simple(name) => name,
        DeltaType::Nested(nested) => return arrow_nested(nested, mapping),
    };
    Ok(match name.as_str() {
        "string" => DataType::Utf8View,
        "long" => DataType::Int64,
        "integer" => DataType::Int32,
        "short" => DataType::Int16,
        "byte" => DataType::Int8,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "boolean" => DataType::Boolean,
        "binary" => DataType::BinaryView,
        "date" => DataType::Date32,
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "timestamp_ntz" => DataType::Timestamp(TimeUnit::Microsecond, None),
        name => {
            let (digits, scale) = decimal(name).ok_or_else(|| format!("the type {name} is not supported"))?;
            DataType::Decimal128(digits, scale)
        }
    })
}

fn arrow_nested(nested: &Nested, mapping: Mapping) -> Result<DataType, String> {
    Ok(match nested {
        Nested::Struct { fields } => {
            let fields = fields.iter().map(|field| arrow_field(field, mapping));
            DataType::Struct(fields.collect::<Result<Vec<_>, _>>()?.into())
        }
        Nested::Array { element_type, contains_null } => DataType::List(Arc::new(Field::new(
            "element",
            arrow_type(element_type, mapping)?,
            *contains_null,
        ))),
        Nested::Map { key_type, value_type, value_contains_null } => {
            let key = Field::new("key", arrow_type(key_type, mapping)?, false);
            let value = Field::new("value", arrow_type(value_type, mapping)?, *value_contains_null);
            let entries = DataType::Struct(vec![key, value].into());
            DataType::Map(Arc::new(Field::new("key_value", entries, false)), false)
        }
    })
}

fn decimal(name: &str) -> Option<(u8, i8)> {
    let (digits, scale) = name.strip_prefix("decimal(")?.strip_suffix(')')?.split_once(',')?;
    let (digits, scale): (u8, i8) = (digits.trim().parse().ok()?, scale.trim().parse().ok()?);
    ((1..=38).contains(&digits) && scale >= 0 && scale as u8 <= digits).then_some((digits, scale))
}

/// Returns the column for an Arrow field.
///
/// # Errors
/// A type that Delta does not have.
pub(crate) fn from_arrow(field: &Field) -> Result<DeltaField, String> {
    let data_type = delta_type(field).map_err(|what| format!("column {:?}: {what}", field.name()))?;
    let (name, nullable) = (field.name().clone(), field.is_nullable());
    Ok(DeltaField { name, data_type, nullable, metadata: BTreeMap::new() })
}

fn delta_type(field: &Field) -> Result<DeltaType, String> {
    use DataType::{
        Binary, BinaryView, Boolean, Date32, Decimal128, Float32, Float64, Int8, Int16, Int32, Int64,
        LargeBinary, LargeList, LargeUtf8, List, Map, Struct, Timestamp, Utf8, Utf8View,
    };
    let simple = |name: &str| Ok(DeltaType::Simple(name.to_owned()));
    match field.data_type() {
        Utf8 | LargeUtf8 | Utf8View => simple("string"),
        Int64 => simple("long"),
        Int32 => simple("integer"),
        Int16 => simple("short"),
        Int8 => simple("byte"),
        Float32 => simple("float"),
        Float64 => simple("double"),
        Boolean => simple("boolean"),
        Binary | LargeBinary | BinaryView => simple("binary"),
        Date32 => simple("date"),
        Timestamp(TimeUnit::Microsecond, Some(_)) => simple("timestamp"),
        Timestamp(TimeUnit::Microsecond, None) => simple("timestamp_ntz"),
        Timestamp(..) => Err("Delta has timestamps in microseconds only".to_owned()),
        Decimal128(digits, scale) if *scale >= 0 => simple(&format!("decimal({digits},{scale})")),
        List(item) | LargeList(item) => {
            let (element_type, contains_null) = (Box::new(delta_type(item)?), item.is_nullable());
            Ok(DeltaType::Nested(Nested::Array { element_type, contains_null }))
        }
        Struct(fields) => {
            let fields = fields.iter().map(|field| from_arrow(field)).collect::<Result<_, _>>()?;
            Ok(DeltaType::Nested(Nested::Struct { fields }))
        }
        Map(entries, _) => match entries.data_type() {
            Struct(pair) if pair.len() == 2 => Ok(DeltaType::Nested(Nested::Map {
                key_type: Box::new(delta_type(&pair[0])?),
                value_type: Box::new(delta_type(&pair[1])?),
                value_contains_null: pair[1].is_nullable(),
            })),
            other => Err(format!("{other} is not the type of a map's entries")),
        },
        other => Err(format!("Delta has no type for {other}")),
    }
}

/// Whether a type, or a part of it, is a timestamp without a time zone.
pub(crate) fn has_timestamp_ntz(data_type: &DeltaType) -> bool {
    match data_type {
        DeltaType::Simple(name) => name == "timestamp_ntz",
        DeltaType::Nested(nested) => nested.types().into_iter().any(has_timestamp_ntz),
    }
}

impl Nested {
    /// The types directly in this one.
    fn types(&self) -> Vec<&DeltaType> {
        match self {
            Nested::Struct { fields } => fields.iter().map(|field| &field.data_type).collect(),
            Nested::Array { element_type, .. } => vec![element_type],
            Nested::Map { key_type, value_type, .. } => vec![key_type, value_type],
        }
    }
}

/// Whether rows of one type fit into columns of another: the same, but for nulls that `into` may have.
pub(crate) fn fits(rows: &DeltaType, into: &DeltaType) -> bool {
    use DeltaType::{Nested as N, Simple};
    match (rows, into) {
        (Simple(a), Simple(b)) => a == b,
        (N(Nested::Struct { fields: a }), N(Nested::Struct { fields: b })) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| field_fits(a, b))
        }
        (
            N(Nested::Array { element_type: a, contains_null: a_null }),
            N(Nested::Array { element_type: b, contains_null: b_null }),
        ) => fits(a, b) && (!a_null || *b_null),
        (
            N(Nested::Map { key_type: a, value_type: a_value, value_contains_null: a_null }),
            N(Nested::Map { key_type: b, value_type: b_value, value_contains_null: b_null }),
        ) => fits(a, b) && fits(a_value, b_value) && (!a_null || *b_null),
        _ => false,
    }
}

/// The same of columns, which must have the same name.
pub(crate) fn field_fits(rows: &DeltaField, into: &DeltaField) -> bool {
    rows.name == into.name && (!rows.nullable || into.nullable) && fits(&rows.data_type, &into.data_type)
}

/// Visits the columns and the fields within them.
pub(crate) fn each_field(fields: &[DeltaField], visit: &mut dyn FnMut(&DeltaField)) {
    fn of_type(data_type: &DeltaType, visit: &mut dyn FnMut(&DeltaField)) {
        match data_type {
            DeltaType::Simple(_) => {}
            DeltaType::Nested(Nested::Struct { fields }) => each_field(fields, visit),
            DeltaType::Nested(nested) => nested.types().into_iter().for_each(|part| of_type(part, visit)),
        }
    }
    for field in fields {
        visit(field);
        of_type(&field.data_type, visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_pass_through_json_and_arrow() {
        let text = r#"{"type":"struct","fields":[
            {"name":"id","type":"long","nullable":false,"metadata":{}},
            {"name":"d","type":"decimal(10,2)","nullable":true,"metadata":{}},
            {"name":"at","type":"timestamp","nullable":true,"metadata":{"comment":"x"}},
            {"name":"l","type":{"type":"array","elementType":"string","containsNull":true},"nullable":true,"metadata":{}},
            {"name":"s","type":{"type":"struct","fields":[{"name":"x","type":"timestamp_ntz","nullable":true,"metadata":{}}]},"nullable":true,"metadata":{}},
            {"name":"m","type":{"type":"map","keyType":"string","valueType":"integer","valueContainsNull":true},"nullable":true,"metadata":{}}]}"#;
        let fields = fields_of(text).unwrap();
        let arrow = to_arrow(&fields, Mapping::None).unwrap();
        assert_eq!(*arrow.field(1).data_type(), DataType::Decimal128(10, 2));
        let again: Vec<DeltaField> = arrow.fields().iter().map(|field| from_arrow(field).unwrap()).collect();
        assert!(again.iter().zip(&fields).all(|(again, field)| field_fits(again, field)));
        assert_eq!(fields_of(&schema_string(again.clone()).unwrap()).unwrap(), again);
        assert!(has_timestamp_ntz(&fields[4].data_type) && !has_timestamp_ntz(&fields[2].data_type));
    }

    #[test]
    fn types_that_one_side_lacks_are_refused() {
        let field = |name: &str| DeltaField {
            name: "x".to_owned(),
            data_type: DeltaType::Simple(name.to_owned()),
            nullable: true,
            metadata: BTreeMap::new(),
        };
        for name in ["variant", "decimal(39,2)", "decimal(5,6)", "void"] {
            assert!(to_arrow(&[field(name)], Mapping::None).unwrap_err().contains("not supported"), "{name}");
        }
        for data_type in
            [DataType::UInt32, DataType::Timestamp(TimeUnit::Nanosecond, None), DataType::FixedSizeBinary(16)]
        {
            assert!(from_arrow(&Field::new("x", data_type, true)).is_err());
        }
    }
}
