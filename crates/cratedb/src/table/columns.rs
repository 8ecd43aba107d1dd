//! The columns of a load: for a new table, or matched with an existing table's columns.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use sawmill_loader::renamed;
use sawmill_source::{Error, Kind, Result};

use crate::encode::form::{self, Form};
use crate::options::CrateOptions;
use crate::table::crate_type::CrateType;
use crate::table::existing::{Existing, StoredType, native_type};
use crate::table::names::{CrateTable, quote, refused_name};
use crate::table::native::Native;

/// A column as it is loaded.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// Its name in the table.
    pub name: String,
    /// Its position in the source's batches.
    pub source: usize,
    /// The type that a new column would get; it decides the form of values sent by column.
    pub crate_type: CrateType,
    pub form: Form,
    pub nullable: bool,
}

impl Column {
    /// Whether the server finds the stored value by `=`, whatever it is.
    pub(crate) fn is_comparable(&self) -> bool {
        let mut form = &self.form;
        while let Form::Dictionary(inner) = form {
            form = inner;
        }
        matches!(
            form,
            Form::Bool | Form::Int | Form::Text | Form::Varchar(_) | Form::Uuid | Form::Millis { .. }
        )
    }
}

/// All columns, and what makes rows repeatable.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub columns: Arc<Vec<Column>>,
    pub key: Key,
    /// Text is refused before it is sent when it is longer than this.
    pub longest_text: Option<usize>,
}

/// The key that makes it harmless to send a row twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// An extra column with the row's place in the source.
    Row(String),
    /// The table's own primary key: these columns.
    Own(Vec<String>),
    /// No key in the finished table. While rows gather, this column holds the tag of each row's request.
    Tags(String),
    /// No key: a row that is sent twice is stored twice.
    None,
}

impl Key {
    /// The key of the finished table, which has no tags.
    pub(crate) fn of_finished_table(self) -> Self {
        if matches!(self, Self::Tags(_)) { Self::None } else { self }
    }
}

/// Bytes of text that Lucene takes into an index or a column store.
pub(crate) const MAX_TEXT_LENGTH: usize = 32_766;

/// The type that a column has on request.
fn requested(name: &str, options: &CrateOptions) -> Result<Option<Native>, String> {
    let found = options.types.iter().rfind(|(column, _)| column == name);
    found.map(|(_, text)| native_type(text)).transpose()
}

/// The type of a new column and how its values are written, or why there is none.
pub(crate) fn wanted(field: &Field, options: &CrateOptions) -> Result<(CrateType, Form), String> {
    let (crate_type, form) = form::natural(field, options)?;
    let Some(native) = requested(field.name(), options)? else { return Ok((crate_type, form)) };
    form.into_stored(&crate_type, field.data_type(), &StoredType::Native(native))
        .map_err(|_| format!("{native} cannot hold values of the type {}", field.data_type()))
}

/// The columns of a new table. All that cannot be represented is named at once.
pub(crate) fn natural(
    schema: &Schema,
    options: &CrateOptions,
    table: &CrateTable,
) -> Result<Arc<Vec<Column>>> {
    let mut columns = Vec::with_capacity(schema.fields().len());
    let mut refused = Vec::new();
    for (i, field) in schema.fields().iter().enumerate() {
        let name = field.name();
        if let Some((why, proposal)) = refused_name(name, true) {
            refused.push(format!("column {name:?}: the name {why}: use --rename '{name}={proposal}'"));
        }
        if options.row_key.as_ref() == Some(name) {
            refused.push(format!(
                "column {name:?} has the name of the row key: use --row-key with another name"
            ));
        }
        if options.loaded_at.as_ref() == Some(name) {
            refused.push(format!("column {name:?} has the name for --loaded-at-column: choose another one"));
        }
        match wanted(field, options) {
            Ok((crate_type, form)) => columns.push(Column {
                name: name.clone(),
                source: i,
                crate_type,
                form,
                nullable: field.is_nullable() || *field.data_type() == DataType::Null,
            }),
            Err(what) => refused.push(format!("column {name:?}: {what}")),
        }
    }
    if let Some((why, proposal)) = options.loaded_at.as_ref().and_then(|name| refused_name(name, true)) {
        refused.push(format!("the name for --loaded-at-column {why}: use {proposal:?}"));
    }
    let known = |name: &String| schema.fields().iter().any(|field| field.name() == name);
    let typed = options.types.iter().map(|(name, _)| name);
    for name in options.primary_key.iter().chain(&options.no_index).chain(typed).filter(|name| !known(name)) {
        refused.push(format!("there is no column {name:?}"));
    }
    for column in columns.iter().filter(|column| options.primary_key.contains(&column.name)) {
        if column.crate_type.is_nested() {
            refused.push(format!(
                "column {:?} cannot be part of a primary key: its type is nested",
                column.name
            ));
        }
    }
    checked(columns, refused, schema, table)
}

/// The purpose for which an existing table's columns are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose<'n> {
    /// To compare them with all columns of the source.
    Compare,
    /// To fill them with all columns of the source.
    Write,
    /// The same with those that the table has.
    Follow,
    /// To go on with a load that fills these.
    GoOn(&'n [String]),
}

/// The columns of an existing table that this schema fills, or is compared with. Missing, extra and
/// incompatible columns are named at once.
pub(crate) fn matched(
    schema: &Schema,
    options: &CrateOptions,
    existing: &[Existing],
    table: &CrateTable,
    purpose: Purpose<'_>,
) -> Result<Arc<Vec<Column>>> {
    let mut columns = Vec::with_capacity(schema.fields().len());
    let mut refused = Vec::new();
    for (i, field) in schema.fields().iter().enumerate() {
        let name = field.name();
        let theirs = existing.iter().find(|column| column.name == *name);
        match purpose {
            Purpose::Follow if theirs.is_none() => continue,
            Purpose::GoOn(names) if !names.contains(name) => continue,
            _ => {}
        }
        let Some(theirs) = theirs else {
            refused.push(format!("column {name:?} is not in the table"));
            continue;
        };
        if theirs.generated {
            refused.push(format!("column {name:?} is computed by the server"));
            continue;
        }
        let natural = requested(name, options).and_then(|native| match native {
            Some(native) if theirs.data_type != StoredType::Native(native) => {
                Err(format!("the table has {}, not {native}", theirs.data_type))
            }
            _ => form::natural(field, options),
        });
        let (crate_type, form) = match natural {
            Ok(natural) => natural,
            Err(what) => {
                refused.push(format!("column {name:?}: {what}"));
                continue;
            }
        };
        match form.into_stored(&crate_type, field.data_type(), &theirs.data_type) {
            Ok((crate_type, form)) => columns.push(Column {
                name: name.clone(),
                source: i,
                crate_type,
                form,
                nullable: theirs.nullable,
            }),
            Err(misfit) => {
                refused.push(format!("column {:?} {}", format!("{name}{}", misfit.path), misfit.what));
            }
        }
    }
    for theirs in existing {
        if purpose != Purpose::Compare
            && !theirs.filled
            && !theirs.nullable
            && options.row_key.as_ref() != Some(&theirs.name)
            && schema.fields().iter().all(|field| *field.name() != theirs.name)
        {
            refused.push(format!("column {:?} of the table is NOT NULL and not in the source", theirs.name));
        }
    }
    checked(columns, refused, schema, table)
}

fn checked(
    columns: Vec<Column>,
    mut refused: Vec<String>,
    schema: &Schema,
    table: &CrateTable,
) -> Result<Arc<Vec<Column>>> {
    let mut names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    names.sort_unstable();
    for pair in names.windows(2).filter(|pair| pair[0] == pair[1]) {
        refused.push(format!("two columns have the name {:?}", pair[0]));
    }
    if names.is_empty() {
        refused.push("the source has no columns".to_owned());
    }
    match refused.is_empty() {
        true => Ok(Arc::new(columns)),
        false => Err(Error::new(Kind::Schema, refused.join("; ")).at(format!("table {table}")).advise(
            "rename (--rename), leave out (--columns) or change these columns, or load into another table",
        )),
    }
}

/// The schema with its columns renamed to the table's, position by position.
pub(crate) fn by_position(
    schema: &SchemaRef,
    existing: &[Existing],
    skipped: Option<&str>,
    table: &CrateTable,
) -> Result<SchemaRef> {
    let names: Vec<&str> = existing
        .iter()
        .filter(|column| !column.generated && Some(column.name.as_str()) != skipped)
        .map(|column| column.name.as_str())
        .collect();
    renamed(schema, names, table)
}

impl Plan {
    /// The names of the columns.
    pub(crate) fn filled(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// The columns' names for SQL, the row key first, the tag last.
    pub(crate) fn inserted(&self) -> Vec<String> {
        let (first, last) = match &self.key {
            Key::Row(name) => (Some(quote(name)), None),
            Key::Tags(name) => (None, Some(quote(name))),
            Key::Own(_) | Key::None => (None, None),
        };
        let columns = self.columns.iter().map(|column| quote(&column.name));
        first.into_iter().chain(columns).chain(last).collect()
    }
}

/// The column's type, and what fills it.
pub(crate) const LOADED_AT: &str = "TIMESTAMP WITH TIME ZONE DEFAULT current_timestamp";

/// Whether the server evaluates a default to the time.
pub(crate) fn is_the_time(default: &str) -> bool {
    let default = default.to_lowercase();
    ["current_timestamp", "now("].iter().any(|function| default.contains(function))
}

/// Checks that a table has the column, and fills it.
///
/// # Errors
/// It does not.
pub(crate) fn check_loaded_at(name: Option<&str>, existing: &[Existing], table: &CrateTable) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    let is_moment = |column: &Existing| matches!(&column.data_type, StoredType::Scalar(name) if name.starts_with("timestamp"));
    let what = match existing.iter().find(|column| column.name == name) {
        Some(column) if is_moment(column) && column.stamped => return Ok(()),
        Some(column) if is_moment(column) && column.filled => "has another default than the time".to_owned(),
        Some(column) if is_moment(column) => "has no default".to_owned(),
        Some(column) => format!("is {} in the table", column.data_type),
        None => "is not in the table".to_owned(),
    };
    let add = format!("ALTER TABLE {} ADD COLUMN {} {LOADED_AT}", table.quoted(), quote(name));
    Err(Error::new(Kind::Schema, format!("the column {name:?} for the time of the load {what}"))
        .at(format!("table {table}"))
        .advise(format!("leave --loaded-at-column out, or add a column: {add}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_other_than_the_time_is_refused() {
        let table = CrateTable { schema: "doc".to_owned(), name: "t".to_owned() };
        let with = |default: &str| {
            let column = Existing {
                name: "at".to_owned(),
                data_type: StoredType::named("timestamp with time zone", None),
                nullable: true,
                filled: true,
                stamped: is_the_time(default),
                generated: false,
            };
            check_loaded_at(Some("at"), &[column], &table).map_err(|error| error.what())
        };
        for default in ["CURRENT_TIMESTAMP", "current_timestamp(3)", "now()"] {
            assert_eq!(with(default), Ok(()));
        }
        let refused = with("946684800000").unwrap_err();
        assert!(refused.contains("another default"), "{refused}");
    }
}
