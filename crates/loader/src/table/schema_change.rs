//! Columns by which the files of a load and its table differ: the changes a load may make, and those it made.

use sawmill_source::Source;
use serde::{Deserialize, Serialize};

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

/// The load's changes for columns by which its files and the table differed.
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

impl ColumnChanges {
    /// Whether nothing differed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Columns of these names that some of a source's files lack.
    pub fn absent<'n>(names: impl Iterator<Item = &'n String>, source: &dyn Source) -> Self {
        let lacking = |name: &String| {
            let own = source.files().iter();
            let own = own.filter(|file| file.columns.as_ref().is_some_and(|own| own.index_of(name).is_err()));
            let (first, files) = (own.clone().next()?, own.count() as u64);
            Some(NullColumn { name: name.clone(), files, first: first.name.clone() })
        };
        Self { null: names.filter_map(lacking).collect(), ..Self::default() }
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
            let more = match files.saturating_sub(1) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            lines.push(format!("NULL in rows of files that lack it: column {name:?} ({first}{more})"));
        }
        lines
    }
}
