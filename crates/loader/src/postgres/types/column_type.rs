//! The type of a column: one of the server's own, or an array or a composite of such types.
//!
//! | Arrow / Parquet | `--nested native` |
//! |---|---|
//! | list of T | `T[]`, lists of lists as one array of several dimensions |
//! | struct | a composite type of its own, `TABLE_COLUMN` |
//! | map | an array of a composite type with `key` and `value` |
//!
//! A new column's type is worked out from its field; that of an existing one is read from the catalogue
//! ([`crate::postgres::table::catalogue_type`]), which alone knows the numbers of types that the binary format carries.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields};

use crate::postgres::table::table_name::{TableName, check_name, quote};
use crate::postgres::types::pg_type::PgType;

/// `MAXDIM` in src/include/utils/array.h.
pub(crate) const MOST_DIMENSIONS: usize = 6;

/// What becomes of lists, structs and maps in a new table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nested {
    /// One `jsonb` value a column.
    #[default]
    Jsonb,
    /// Arrays, and composite types that are made with the table.
    Native,
}

/// A column's type.
#[derive(Clone, Debug)]
pub(crate) enum ColumnType {
    Plain(PgType),
    /// A type that consists of labels, by its name; which labels, the server knows.
    Enumeration(TableName),
    /// An array of any number of dimensions; the server does not record how many.
    Array(Arc<Part>),
    Composite(Arc<Composite>),
}

/// A type within another.
#[derive(Debug)]
pub(crate) struct Part {
    pub column_type: ColumnType,
    /// `pg_type.oid`; 0 as long as the type has not been made.
    pub oid: u32,
}

/// A composite type.
#[derive(Debug)]
pub(crate) struct Composite {
    /// Its schema and name; types and tables share their names.
    pub name: TableName,
    pub attributes: Vec<Attribute>,
}

/// One attribute of a composite type.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub name: String,
    pub part: Part,
}

impl ColumnType {
    /// The type of a new column for this field, or why there is none. Composite types that it needs are
    /// called `name` and after the fields below, and are added to `made`, inner ones first.
    pub(crate) fn natural(
        field: &Field,
        nested: Nested,
        name: &TableName,
        made: &mut Vec<Arc<Composite>>,
    ) -> Result<Self, String> {
        if nested == Nested::Jsonb {
            return PgType::natural(field).map(Self::Plain);
        }
        if let Some(item) = item_of(field) {
            let mut item = item.into_owned();
            let mut dimensions = 1;
            while let Some(inner) = item_of(&item) {
                item = inner.into_owned();
                dimensions += 1;
            }
            if dimensions > MOST_DIMENSIONS {
                return Err(format!(
                    "lists are {dimensions} deep, an array of PostgreSQL has {MOST_DIMENSIONS} dimensions at most"
                ));
            }
            let column_type = Self::natural(&item, nested, name, made)?;
            return Ok(Self::Array(Arc::new(Part { column_type, oid: 0 })));
        }
        let DataType::Struct(fields) = field.data_type() else {
            return PgType::natural(field).map(Self::Plain);
        };
        let mut attributes = Vec::with_capacity(fields.len());
        for field in fields {
            check_name(field.name()).map_err(|what| format!("field {:?}: {what}", field.name()))?;
            let column_type = Self::natural(field, nested, &name.below(field.name()), made)
                .map_err(|what| format!("field {:?}: {what}", field.name()))?;
            attributes.push(Attribute { name: field.name().clone(), part: Part { column_type, oid: 0 } });
        }
        let composite = Arc::new(Composite { name: name.clone(), attributes });
        made.push(Arc::clone(&composite));
        Ok(Self::Composite(composite))
    }

    /// The type, where it is not built of others.
    pub(crate) fn plain(&self) -> Option<PgType> {
        match self {
            Self::Plain(pg_type) => Some(*pg_type),
            Self::Enumeration(_) => Some(PgType::Enum),
            Self::Array(_) | Self::Composite(_) => None,
        }
    }

    /// Whether every value of the field fits into this type without change, but for lists that turn out not
    /// to be rectangular.
    pub(crate) fn takes(&self, field: &Field) -> bool {
        match self {
            Self::Plain(pg_type) => pg_type.takes(field),
            Self::Enumeration(_) => *field.data_type() == DataType::Null,
            Self::Array(part) => *field.data_type() == DataType::Null || elements_of(field, part).is_some(),
            Self::Composite(composite) => match field.data_type() {
                DataType::Null => true,
                DataType::Struct(fields) => composite.takes(fields),
                _ => false,
            },
        }
    }

    /// Whether two types are built of the same types, whatever their names are.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Plain(a), Self::Plain(b)) => a == b,
            (Self::Enumeration(_), Self::Enumeration(_)) => true,
            (Self::Array(a), Self::Array(b)) => a.column_type.is_like(&b.column_type),
            (Self::Composite(a), Self::Composite(b)) => {
                let pairs = || a.attributes.iter().zip(&b.attributes);
                a.attributes.len() == b.attributes.len()
                    && pairs()
                        .all(|(a, b)| a.name == b.name && a.part.column_type.is_like(&b.part.column_type))
            }
            _ => false,
        }
    }
}

impl Composite {
    /// Whether the fields are those of the attributes, in whatever order.
    fn takes(&self, fields: &Fields) -> bool {
        fields.len() == self.attributes.len()
            && self.attributes.iter().all(|attribute| {
                let (_, field) = fields.find(&attribute.name).unzip();
                field.is_some_and(|field| attribute.part.column_type.takes(field))
            })
    }

    /// The statements that make it.
    pub(crate) fn create(&self) -> String {
        let attributes: Vec<String> = self
            .attributes
            .iter()
            .map(|attribute| format!("  {} {}", quote(&attribute.name), attribute.part.column_type))
            .collect();
        format!("CREATE TYPE {} AS (\n{}\n)", self.name.quoted(), attributes.join(",\n"))
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(pg_type) => pg_type.fmt(f),
            Self::Enumeration(name) => f.write_str(&name.quoted()),
            Self::Array(part) => write!(f, "{}[]", part.column_type),
            Self::Composite(composite) => f.write_str(&composite.name.quoted()),
        }
    }
}

/// The field of a list's items. A map is a list of structs of `key` and `value`, whatever its writer called them.
pub(crate) fn item_of(field: &Field) -> Option<Cow<'_, Field>> {
    match field.data_type() {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(Cow::Borrowed(item))
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(fields) = entries.data_type() else { return None };
            let [key, value] = fields.as_ref() else { return None };
            let named = |field: &Field, name: &str| field.clone().with_name(name);
            let pair = DataType::Struct(Fields::from(vec![named(key, "key"), named(value, "value")]));
            Some(Cow::Owned(entries.as_ref().clone().with_data_type(pair)))
        }
        _ => None,
    }
}

/// The field of an array's elements and the number of dimensions, where the array takes the field: as many
/// levels of lists become dimensions as are needed until the element type takes what is left.
pub(crate) fn elements_of<'f>(field: &'f Field, part: &Part) -> Option<(Cow<'f, Field>, usize)> {
    let mut item = item_of(field)?;
    for dimensions in 1..=MOST_DIMENSIONS {
        if part.column_type.takes(&item) {
            return Some((item, dimensions));
        }
        item = Cow::Owned(item_of(&item)?.into_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(item: DataType) -> DataType {
        DataType::List(Arc::new(Field::new("item", item, true)))
    }

    fn natural(data_type: DataType) -> (String, Vec<String>) {
        let table = TableName::new(Some("s"), "t").unwrap();
        let mut made = Vec::new();
        let field = Field::new("c", data_type, true);
        let column_type = ColumnType::natural(&field, Nested::Native, &table.below("c"), &mut made).unwrap();
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

    #[test]
    fn an_array_takes_as_many_dimensions_as_its_elements_leave() {
        let array =
            |pg_type| ColumnType::Array(Arc::new(Part { column_type: ColumnType::Plain(pg_type), oid: 0 }));
        let field = Field::new("c", list(list(DataType::Int32)), true);
        assert!(array(PgType::Int8).takes(&field));
        assert!(!array(PgType::Int2).takes(&field));
        let ColumnType::Array(part) = array(PgType::Jsonb) else { unreachable!() };
        assert_eq!(elements_of(&field, &part).map(|(_, dimensions)| dimensions), Some(1));
    }
}
