//! The type that a field gets in a new table, and the types created for it.
//!
//! | Arrow / Parquet | `--nested native` |
//! |---|---|
//! | list of T | `T[]`, lists of lists as one array of several dimensions |
//! | struct | a new composite type, `TABLE_COLUMN` |
//! | map | an array of a composite type with `key` and `value` |

use std::sync::Arc;

use arrow_schema::{DataType, Field};
use sawmill_loader::{TableName, check_name, quote};
use sawmill_pgcopy::{Attribute, ColumnType, Composite, MAX_DIMENSIONS, Part, PgType, item_of};

/// The form of lists, structs and maps in a new table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nested {
    /// One `jsonb` value a column.
    #[default]
    Jsonb,
    /// Arrays, and composite types that are created with the table.
    Native,
}

/// A composite type that is created with a table.
pub(crate) struct MadeComposite {
    /// Its schema and name; types and tables share their names.
    pub name: TableName,
    pub composite: Arc<Composite>,
}

impl MadeComposite {
    /// The statement that creates it.
    pub(crate) fn create(&self) -> String {
        let attributes: Vec<String> = self
            .composite
            .attributes
            .iter()
            .map(|attribute| format!("  {} {}", quote(&attribute.name), attribute.part.column_type))
            .collect();
        format!("CREATE TYPE {} AS (\n{}\n)", self.name.quoted(), attributes.join(",\n"))
    }
}

/// The type of a new column for this field, or why it has none. Composite types that it needs are named after
/// `name` and the fields below, and are added to `made`, inner ones first.
pub(crate) fn natural_type(
    field: &Field,
    nested: Nested,
    name: &TableName,
    made: &mut Vec<MadeComposite>,
) -> Result<ColumnType, String> {
    if nested == Nested::Jsonb {
        return PgType::natural(field).map(ColumnType::Plain);
    }
    if let Some(item) = item_of(field) {
        let mut item = item.into_owned();
        let mut dimensions = 1;
        while let Some(inner) = item_of(&item) {
            item = inner.into_owned();
            dimensions += 1;
        }
        if dimensions > MAX_DIMENSIONS {
            return Err(format!(
                "lists are nested {dimensions} deep, an array of PostgreSQL has at most {MAX_DIMENSIONS} dimensions"
            ));
        }
        let column_type = natural_type(&item, nested, name, made)?;
        return Ok(ColumnType::Array(Arc::new(Part { column_type, oid: 0 })));
    }
    let DataType::Struct(fields) = field.data_type() else {
        return PgType::natural(field).map(ColumnType::Plain);
    };
    let mut attributes = Vec::with_capacity(fields.len());
    for field in fields {
        check_name(field.name()).map_err(|what| format!("field {:?}: {what}", field.name()))?;
        let column_type = natural_type(field, nested, &name.below(field.name()), made)
            .map_err(|what| format!("field {:?}: {what}", field.name()))?;
        attributes.push(Attribute { name: field.name().clone(), part: Part { column_type, oid: 0 } });
    }
    let composite = Arc::new(Composite { name: name.quoted(), attributes });
    made.push(MadeComposite { name: name.clone(), composite: Arc::clone(&composite) });
    Ok(ColumnType::Composite(composite))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::Fields;

    fn list(item: DataType) -> DataType {
        DataType::List(Arc::new(Field::new("item", item, true)))
    }

    fn natural(data_type: DataType) -> (String, Vec<String>) {
        let table = TableName::new(Some("s"), "t").unwrap();
        let mut made = Vec::new();
        let field = Field::new("c", data_type, true);
        let column_type = natural_type(&field, Nested::Native, &table.below("c"), &mut made).unwrap();
        assert!(column_type.takes(&field));
        (column_type.to_string(), made.iter().map(|composite| composite.create().replace('\n', "")).collect())
    }

    #[test]
    fn lists_become_arrays_and_structs_types_of_their_own() {
        assert_eq!(natural(list(list(DataType::Int32))), ("integer[]".to_owned(), vec![]));
        let inner = Fields::from(vec![Field::new("x", list(DataType::UInt64), true)]);
        let outer = Fields::from(vec![
            Field::new("a b", DataType::Utf8, true),
            Field::new("inner", DataType::Struct(inner), true),
        ]);
        let (column, types) = natural(list(DataType::Struct(outer)));
        assert_eq!(column, "\"s\".\"t_c\"[]");
        assert_eq!(
            types,
            [
                "CREATE TYPE \"s\".\"t_c_inner\" AS (  \"x\" numeric(20,0)[])",
                "CREATE TYPE \"s\".\"t_c\" AS (  \"a b\" text,  \"inner\" \"s\".\"t_c_inner\")",
            ]
        );
    }
}
