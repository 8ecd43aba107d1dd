//! The type of a column: a built-in type, an enumeration, an array or a composite type.
//!
//! Type names are SQL text; the caller that creates types or reads them from the catalogue supplies them. The
//! type OIDs that the binary format contains are known only to the catalogue.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields};

use crate::types::pg_type::PgType;
use crate::types::server_type::ServerType;

/// `MAXDIM` in src/include/utils/array.h.
pub const MAX_DIMENSIONS: usize = 6;

/// A column's type.
#[derive(Clone, Debug)]
pub enum ColumnType {
    /// A built-in type.
    Plain(PgType),
    /// An enumeration, by its name in SQL; the server knows its labels.
    Enumeration(String),
    /// An array of any number of dimensions, which the server does not record.
    Array(Arc<Part>),
    /// A composite type.
    Composite(Arc<Composite>),
    /// Another type, which the server reads from text.
    OfServer(ServerType),
}

/// The type of an element or an attribute.
#[derive(Debug)]
pub struct Part {
    /// The type.
    pub column_type: ColumnType,
    /// `pg_type.oid`; 0 until the type has been created.
    pub oid: u32,
}

/// A composite type.
#[derive(Debug)]
pub struct Composite {
    /// Its name in SQL.
    pub name: String,
    /// Its attributes, in order.
    pub attributes: Vec<Attribute>,
}

/// One attribute of a composite type.
#[derive(Debug)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its type.
    pub part: Part,
}

impl ColumnType {
    /// Returns the type, unless it is an array or a composite type.
    pub fn plain(&self) -> Option<PgType> {
        match self {
            Self::Plain(pg_type) => Some(*pg_type),
            Self::Enumeration(_) => Some(PgType::Enum),
            Self::Array(_) | Self::Composite(_) | Self::OfServer(_) => None,
        }
    }

    /// Whether every value of the field fits into this type unchanged, except lists that are not rectangular.
    pub fn takes(&self, field: &Field) -> bool {
        match self {
            Self::Plain(pg_type) => pg_type.takes(field),
            Self::Enumeration(_) | Self::OfServer(_) => *field.data_type() == DataType::Null,
            Self::Array(part) => {
                let is_element = |item: &Field| part.column_type.takes(item);
                *field.data_type() == DataType::Null || elements_of(field, is_element).is_some()
            }
            Self::Composite(composite) => match field.data_type() {
                DataType::Null => true,
                DataType::Struct(fields) => composite.takes(fields),
                _ => false,
            },
        }
    }

    /// Whether two types have the same structure, regardless of their names.
    pub fn is_like(&self, other: &Self) -> bool {
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
    /// Whether the fields match the attributes, in any order.
    fn takes(&self, fields: &Fields) -> bool {
        fields.len() == self.attributes.len()
            && self.attributes.iter().all(|attribute| {
                let (_, field) = fields.find(&attribute.name).unzip();
                field.is_some_and(|field| attribute.part.column_type.takes(field))
            })
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(pg_type) => pg_type.fmt(f),
            Self::Enumeration(name) => f.write_str(name),
            Self::Array(part) => write!(f, "{}[]", part.column_type),
            Self::Composite(composite) => f.write_str(&composite.name),
            Self::OfServer(of) => of.fmt(f),
        }
    }
}

/// Returns the field of a list's items. A map is a list of structs of `key` and `value`, whatever names its
/// writer used.
pub fn item_of(field: &Field) -> Option<Cow<'_, Field>> {
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

/// Returns the field of an array's elements and the number of dimensions, if the array accepts the field:
/// levels of lists become dimensions until the rest is an element.
pub(crate) fn elements_of(
    field: &Field,
    is_element: impl Fn(&Field) -> bool,
) -> Option<(Cow<'_, Field>, usize)> {
    let mut item = item_of(field)?;
    for dimensions in 1..=MAX_DIMENSIONS {
        if is_element(&item) {
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

    #[test]
    fn levels_of_lists_become_dimensions_until_the_element_type_fits() {
        let array =
            |pg_type| ColumnType::Array(Arc::new(Part { column_type: ColumnType::Plain(pg_type), oid: 0 }));
        let field = Field::new("c", list(list(DataType::Int32)), true);
        assert!(array(PgType::Int8).takes(&field));
        assert!(!array(PgType::Int2).takes(&field));
        let ColumnType::Array(part) = array(PgType::Jsonb) else { unreachable!() };
        let is_element = |item: &Field| part.column_type.takes(item);
        assert_eq!(elements_of(&field, is_element).map(|(_, dimensions)| dimensions), Some(1));
    }
}
