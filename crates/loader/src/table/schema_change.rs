//! Columns in which the files of a load and its table differ: the changes that a load may make, and the ones that it
//! made.

use std::fmt::Display;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use sawmill_profile::format_counted;
use sawmill_source::{Error, Kind, Result, Source, SourceFile};
use serde::{Deserialize, Serialize};

use crate::table::name::quote;

/// The changes that a load may make to an existing table if its files have other columns. By default such
/// files are an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchemaChange {
    /// Columns of the files that the table lacks.
    pub new_columns: NewColumns,
    /// Columns that are narrower in the table than in the files.
    pub widen: Widen,
}

/// How to treat a column of the files that the table lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NewColumns {
    /// It is an error.
    #[default]
    Refuse,
    /// The table gets it, nullable and of the type that a new table would have.
    Add,
    /// Its values are not loaded.
    LeaveOut,
}

/// Whether columns of the table get wider types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Widen {
    /// They keep their types.
    #[default]
    No,
    /// They get wider if the server need not rewrite the table; otherwise it is an error.
    InPlace,
    /// They also get wider if the server has to rewrite the table.
    Rewrite,
}

impl SchemaChange {
    /// Whether files may have other columns than the table, and than each other.
    pub fn is_allowed(self) -> bool {
        self != Self::default()
    }
}

/// The load's changes for columns in which its files and the table differed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ColumnChanges {
    /// Columns that the table got.
    pub added: Vec<AddedColumn>,
    /// Columns of the table that got wider types.
    pub widened: Vec<WidenedColumn>,
    /// Columns of the files that were not loaded.
    pub left_out: Vec<String>,
    /// Columns that are NULL in rows of files that lack them.
    pub null: Vec<NullColumn>,
}

/// A column that the table got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedColumn {
    /// Its name.
    pub name: String,
    /// Its type, as SQL writes it.
    #[serde(rename = "type")]
    pub type_name: String,
}

/// A column of the table that got a wider type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WidenedColumn {
    /// Its name.
    pub name: String,
    /// The type that it had.
    pub from: String,
    /// The type that it has.
    pub to: String,
    /// Whether the server rewrote the table for it.
    pub rewritten: bool,
}

/// A column that some files lack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NullColumn {
    /// Its name.
    pub name: String,
    /// The number of files that lack it.
    pub files: u64,
    /// The first of them.
    pub first: String,
}

impl NullColumn {
    /// A column that some of a source's files lack; `None` if all have it. Files that do not list their columns have
    /// it if `by_default`.
    pub fn new(name: &str, source: &dyn Source, by_default: bool) -> Option<Self> {
        let has = |file: &SourceFile| match &file.columns {
            Some(own) => own.index_of(name).is_ok(),
            None => by_default,
        };
        let mut lacking = source.files().iter().filter(|file| !has(file));
        let first = lacking.next()?.name.clone();
        Some(Self { name: name.to_owned(), files: lacking.count() as u64 + 1, first })
    }
}

/// ` and 2 more files`; empty for none.
pub fn and_more_files(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" and {}", format_counted(more as u64, "more file")) }
}

/// The name of the first file that has a column.
pub fn first_file_with<'s>(source: &'s dyn Source, column: &str) -> &'s str {
    let has =
        |file: &&SourceFile| file.columns.as_ref().is_none_or(|columns| columns.index_of(column).is_ok());
    source.files().iter().find(has).map(|file| file.name.as_str()).unwrap_or_default()
}

/// The schema with its columns renamed, in order, to the table's names.
///
/// # Errors
/// The table has fewer columns.
pub fn renamed(schema: &Schema, names: Vec<&str>, table: &dyn Display) -> Result<SchemaRef> {
    let fields = schema.fields();
    if names.len() < fields.len() {
        let what =
            format!("the source has more columns than the table: {}, not {}", fields.len(), names.len());
        return Err(Error::new(Kind::Schema, what)
            .at(format!("table {table}"))
            .advise("choose columns with --columns, or match them by name"));
    }
    let fields = fields.iter().zip(names).map(|(field, name)| field.as_ref().clone().with_name(name));
    Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// The error for columns that may not be changed as the files need it, one text for each.
pub fn refused_changes(refused: &[String], table: &dyn Display) -> Error {
    Error::new(Kind::Schema, refused.join("; "))
        .at(format!("table {table}"))
        .advise("allow the change, change the table, or leave the columns out (--columns a,b)")
}

/// Adds the ways to accept the columns to an error about them.
pub fn with_ways_out(error: Error, ways: &[String]) -> Error {
    if ways.is_empty() {
        return error;
    }
    let advice = format!("{}; or {}", ways.join("; "), error.advice());
    error.advise(advice)
}

impl ColumnChanges {
    /// Whether nothing differed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds to the error of a load that the table keeps the columns that it got, and what to do if corrected files have
    /// other types there.
    pub fn named_in(&self, error: Error) -> Error {
        let may_be_corrected =
            matches!(error.kind(), Kind::Value | Kind::Source | Kind::Server | Kind::Schema);
        if self.added.is_empty() || !may_be_corrected {
            return error;
        }
        let added = self.added.iter().map(|column| format!("{:?} {}", column.name, column.type_name));
        let drops = self.added.iter().map(|column| format!("DROP COLUMN {}", quote(&column.name)));
        let (added, drops) = (added.collect::<Vec<_>>().join(", "), drops.collect::<Vec<_>>().join(", "));
        let advice = match error.advice() {
            advice if advice.is_empty() => String::new(),
            advice => format!("{advice}; "),
        };
        error.advise(format!(
            "{advice}the table keeps what the load has added: {added}; if the corrected files have other types there, undo that \
             first (ALTER TABLE ... {drops})"
        ))
    }

    /// Columns of these names that some of a source's files lack.
    pub fn absent<'n>(names: impl Iterator<Item = &'n String>, source: &dyn Source) -> Self {
        let null = names.filter_map(|name| NullColumn::new(name, source, true));
        Self { null: null.collect(), ..Self::default() }
    }

    /// Adds the changes of a load of other files of the same source.
    pub fn add(&mut self, other: Self) {
        let Self { added, widened, left_out, null } = other;
        self.added.extend(added);
        self.widened.extend(widened);
        self.left_out
            .extend(left_out.into_iter().filter(|name| !self.left_out.contains(name)).collect::<Vec<_>>());
        for column in null {
            match self.null.iter_mut().find(|known| known.name == column.name) {
                Some(known) => known.files += column.files,
                None => self.null.push(column),
            }
        }
    }

    /// One line for each kind of change, for people.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for AddedColumn { name, type_name } in &self.added {
            lines.push(format!("adds column {name:?} {type_name}"));
        }
        for WidenedColumn { name, from, to, rewritten } in &self.widened {
            let rewritten = if *rewritten { "; the server rewrites the table" } else { "" };
            lines.push(format!("widens column {name:?} from {from} to {to}{rewritten}"));
        }
        if !self.left_out.is_empty() {
            let names: Vec<String> = self.left_out.iter().map(|name| format!("{name:?}")).collect();
            lines.push(format!("leaves out columns that the table lacks: {}", names.join(", ")));
        }
        for NullColumn { name, files, first } in &self.null {
            let more = and_more_files(files.saturating_sub(1) as usize);
            lines.push(format!("NULL in rows of files that lack it: column {name:?} ({first}{more})"));
        }
        lines
    }
}
