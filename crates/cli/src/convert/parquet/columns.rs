//! The columns of a Parquet file, and the names by which options call them.

use arrow_schema::{DataType, Schema};
use parquet::schema::types::ColumnPath;
use sawmill_profile::known_columns;

use crate::r#gen::formats::text_form::NoText;

/// The columns of a file, without structs, lists and maps around them.
pub(super) struct Columns(Vec<Column>);

/// A column of a file.
pub(super) struct Column {
    pub path: ColumnPath,
    pub data_type: DataType,
    /// Its path, joined with dots, without the names that Parquet adds to a list.
    name: String,
}

impl Columns {
    /// The columns of a file with this schema.
    pub(super) fn new(schema: &Schema) -> Self {
        let mut columns = Vec::new();
        for field in schema.fields() {
            add(field.data_type(), vec![field.name()], vec![field.name()], &mut columns);
        }
        Columns(columns)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The columns in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Column> {
        self.0.iter()
    }

    /// Finds the column with this name: its path joined with dots, in which `list.element` may be omitted.
    pub(super) fn find(&self, name: &str) -> Result<&Column, NoText> {
        match self.positions(name)?[..] {
            [one] => Ok(&self.0[one]),
            [first, ..] => {
                let first = &self.0[first].name;
                Err(NoText::Option(format!("{name:?} has several columns: name one of them, like {first:?}")))
            }
            [] => Err(NoText::Option(format!("{name:?} has no columns"))),
        }
    }

    /// Finds the positions of the column with this name, or of all columns of the struct, list or map.
    pub(super) fn positions(&self, name: &str) -> Result<Vec<usize>, NoText> {
        let is_whole = |column: &Column| column.path.parts() == [name];
        let is_same = |column: &Column| column.name == name || column.path.string() == name;
        let one = self.0.iter().position(is_whole).or_else(|| self.0.iter().position(is_same));
        if let Some(one) = one {
            return Ok(vec![one]);
        }
        let is_inside = |path: &str| path.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        let columns = self.0.iter().enumerate();
        let inside =
            columns.filter(|(_, column)| is_inside(&column.name) || is_inside(&column.path.string()));
        let inside: Vec<usize> = inside.map(|(at, _)| at).collect();
        match inside.is_empty() {
            true => {
                let known = known_columns(name, self.0.iter().map(|column| column.name.as_str()));
                Err(NoText::Option(format!("no column is named {name:?}; {known}")))
            }
            false => Ok(inside),
        }
    }
}

/// Adds the columns of a value of this type.
fn add<'a>(data_type: &'a DataType, path: Vec<&'a str>, name: Vec<&'a str>, columns: &mut Vec<Column>) {
    match data_type {
        DataType::Struct(fields) => {
            for field in fields {
                add(
                    field.data_type(),
                    [&path[..], &[field.name()]].concat(),
                    [&name[..], &[field.name()]].concat(),
                    columns,
                );
            }
        }
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::FixedSizeList(element, _)
        | DataType::ListView(element)
        | DataType::LargeListView(element) => {
            add(element.data_type(), [&path[..], &["list", element.name()]].concat(), name, columns);
        }
        DataType::Map(entries, _) => {
            add(
                entries.data_type(),
                [&path[..], &[entries.name()]].concat(),
                [&name[..], &[entries.name()]].concat(),
                columns,
            );
        }
        _ => {
            let path = path.into_iter().map(str::to_owned).collect();
            let column =
                Column { path: ColumnPath::new(path), data_type: data_type.clone(), name: name.join(".") };
            columns.push(column);
        }
    }
}
