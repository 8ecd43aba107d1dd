//! Hive folders: in `trips/year=2020/region=EU/part-0.parquet` the folder names contain the values of two
//! columns.
//!
//! ```text
//! path of each file ─folder_names─▶ names and texts ─infer, over all files─▶ a type for each column ─▶ a value for each file
//! ```

mod agreement;
mod folder_names;
mod folder_value;

pub(crate) use agreement::Compared;
pub(crate) use folder_names::{FolderName, folder_names, values_of_links};
pub(crate) use folder_value::FolderValue;

use std::path::PathBuf;

use arrow_schema::{DataType, Field};
use sawmill_profile::{Error, Kind, Result};
use serde::Serialize;

/// Whether folders such as `year=2020` are columns of the files within.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hive {
    /// Each of them is a column. If the files have a column of that name, its values must equal the folder's.
    Columns,
    /// Folder names are ignored.
    #[default]
    Ignored,
}

/// A column that folders name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FolderColumn {
    /// Its name.
    pub name: String,
    /// The type of its values in all files.
    pub kind: FolderKind,
    /// Whether the files also have a column of this name, whose values are then used.
    pub in_files: bool,
}

/// The type of the values of a column that folders name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FolderKind {
    /// 64-bit integers.
    Integer,
    /// Dates such as `2024-01-31`.
    Date,
    /// Text: anything else.
    Text,
}

impl FolderKind {
    fn data_type(self) -> DataType {
        match self {
            Self::Integer => DataType::Int64,
            Self::Date => DataType::Date32,
            Self::Text => DataType::Utf8View,
        }
    }
}

/// The value of a folder's column in the rows of one file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Folder {
    pub field: Field,
    pub value: FolderValue,
}

/// The columns that folders name.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    pub columns: Vec<FolderColumn>,
    /// For each file, the columns that it does not contain itself, in the order of `columns`.
    pub of_files: Vec<Vec<Folder>>,
}

impl Folders {
    /// Returns the columns that the folders of all files name; `is_in_files` says which of them the files
    /// contain.
    ///
    /// # Errors
    /// Files whose folders name other columns than the first file's.
    pub(crate) fn new(
        files: &[(PathBuf, Vec<FolderName>)],
        is_in_files: impl Fn(&str) -> bool,
    ) -> Result<Self> {
        let Some((first_path, first)) = files.first() else { return Ok(Self::default()) };
        let named = |names: &[FolderName]| {
            let mut named: Vec<&str> = names.iter().map(|folder| folder.column.as_str()).collect();
            named.sort_unstable();
            match named.as_slice() {
                [] => "no column".to_owned(),
                _ => named.join(", "),
            }
        };
        let wanted = named(first);
        if let Some((path, names)) = files.iter().find(|(_, names)| named(names) != wanted) {
            let what =
                format!("its folders name {}, those of {} {wanted}", named(names), first_path.display());
            return Err(Error::new(Kind::Schema, what)
                .at(path.display().to_string())
                .advise("load the files of each layout separately, or ignore folders with --hive no"));
        }
        let mut columns = Vec::with_capacity(first.len());
        let mut of_files = vec![Vec::with_capacity(first.len()); files.len()];
        for FolderName { column: name, .. } in first {
            let texts = || {
                files.iter().map(|(_, names)| {
                    names
                        .iter()
                        .find(|folder| folder.column == *name)
                        .and_then(|folder| folder.value.as_deref())
                })
            };
            let kind = folder_value::infer(texts().flatten());
            let in_files = is_in_files(name);
            columns.push(FolderColumn { name: name.clone(), kind, in_files });
            if in_files {
                continue;
            }
            for (folders, text) in of_files.iter_mut().zip(texts()) {
                // Another file may be in a folder of null.
                let field = Field::new(name, kind.data_type(), true);
                folders.push(Folder { field, value: FolderValue::new(kind, text) });
            }
        }
        Ok(Self { columns, of_files })
    }

    /// Returns the fields that files take from their folders only.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field> {
        self.of_files.first().into_iter().flatten().map(|folder| folder.field.clone())
    }

    /// Returns the columns as text, a part of a load's identity; empty if the files contain all columns that
    /// folders name.
    pub(crate) fn mapping(&self) -> String {
        let lacking = self.columns.iter().filter(|column| !column.in_files);
        let named: Vec<_> = lacking.map(|column| (&column.name, column.kind)).collect();
        if named.is_empty() { String::new() } else { format!("folders {named:?} ") }
    }
}
