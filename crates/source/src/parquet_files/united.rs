//! The columns of several files, which agree or are united by name.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::new_null_array;
use arrow_schema::{Field, FieldRef, Schema, SchemaRef};
use sawmill_profile::{Error, Kind, Result};

use crate::columns::united::widest;
use crate::hive::{Folder, FolderName, FolderValue};
use crate::parquet_files::files::Opened;
use crate::parquet_files::left_out::without;
use crate::parquet_files::opened_file::{ColumnPlace, OpenedFile};
use crate::parquet_files::schema::{differences, same};
use crate::units::SourceFile;

/// How to treat files whose columns differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnlikeFiles {
    /// They are an error, with this advice.
    Refused(&'static str),
    /// They get the columns of all of them: one that a file lacks is NULL in its rows, and of numbers and times
    /// the type is one that holds the values of all. Other differences of types are an error.
    United,
}

impl Default for UnlikeFiles {
    fn default() -> Self {
        Self::Refused("load files with different columns separately, into different tables")
    }
}

/// Returns the columns that all files get, in the order of the first file that has them.
pub(super) fn common_columns(
    opened: &[(Opened, SourceFile)],
    left_out: &HashSet<String>,
    unlike: UnlikeFiles,
) -> Result<Vec<Field>> {
    let mut fields: Vec<Field> = Vec::new();
    for (number, (file, source)) in opened.iter().enumerate() {
        let own = without(&file.schema, left_out);
        if number == 0 {
            fields = own.fields().iter().map(|field| field.as_ref().clone()).collect();
            continue;
        }
        let lines = match unlike {
            UnlikeFiles::Refused(_) => differences(&Schema::new(fields.clone()), &own),
            UnlikeFiles::United => Vec::new(),
        };
        let lines = if lines.is_empty() { unite(&mut fields, &own) } else { lines };
        if !lines.is_empty() {
            let first = opened.first().map(|(_, first)| first.name.as_str()).unwrap_or_default();
            let what = format!("columns differ from those of {first}: {}", lines.join("; "));
            return Err(Error::new(Kind::Schema, what).at(&source.name).advise(match unlike {
                UnlikeFiles::Refused(advice) => advice,
                UnlikeFiles::United => {
                    "such types are not united: load the files one after the other into a column that takes the values of both, \
                     such as text, or into different tables"
                }
            }));
        }
    }
    Ok(fields)
}

/// Unites a file's columns with `fields`. Returns a line for each column without a common type.
fn unite(fields: &mut Vec<Field>, own: &Schema) -> Vec<String> {
    let mut lines = Vec::new();
    for field in fields.iter_mut() {
        *field = match own.field_with_name(field.name()) {
            Err(_) => field.clone().with_nullable(true),
            Ok(theirs) => match widest(field, theirs) {
                Some(both) => both,
                None => {
                    let (name, types) = (field.name(), [theirs.data_type(), field.data_type()]);
                    lines.push(format!("column {name:?} is {} and not {}", types[0], types[1]));
                    continue;
                }
            },
        };
    }
    for theirs in own.fields() {
        if fields.iter().all(|field| field.name() != theirs.name()) {
            fields.push(theirs.as_ref().clone().with_nullable(true));
        }
    }
    lines
}

/// Where the field `number` of `all` is in a file's own schema: several columns of one name keep their order.
fn index_in(own: &Schema, all: &Schema, number: usize) -> Option<usize> {
    let name = all.field(number).name();
    if own.fields().get(number).is_some_and(|field| field.name() == name) {
        return Some(number);
    }
    let before = all.fields().iter().take(number).filter(|field| field.name() == name).count();
    let mut of_name = own.fields().iter().enumerate().filter(|(_, field)| field.name() == name);
    of_name.nth(before).map(|(at, _)| at)
}

impl Opened {
    /// Sets the places of the columns `all` in the file. Columns that it lacks are NULL, and its folders'
    /// columns follow. Returns the file's own columns, with its types.
    pub(super) fn place(&mut self, all: &Schema, of_folders: Vec<Folder>) -> SchemaRef {
        let (named, mut places) =
            (of_folders.len(), Vec::with_capacity(all.fields().len() + of_folders.len()));
        let OpenedFile { folders, narrow, columns, .. } = &mut self.opened;
        *folders = of_folders;
        let mut own = Vec::with_capacity(places.capacity());
        for (number, field) in all.fields().iter().enumerate() {
            match index_in(&self.schema, all, number) {
                Some(at) => {
                    let theirs = self.schema.field(at);
                    *narrow |= !same(field, theirs);
                    own.push(theirs.clone());
                    places.push(ColumnPlace::Field(at));
                }
                None => {
                    places.push(ColumnPlace::Folder(folders.len()));
                    let value = FolderValue::Given(new_null_array(field.data_type(), 1));
                    folders.push(Folder { field: field.as_ref().clone(), value });
                }
            }
        }
        own.extend(folders.iter().take(named).map(|folder| folder.field.clone()));
        places.extend((0..named).map(ColumnPlace::Folder));
        *columns = places.into();
        Arc::new(Schema::new(own))
    }

    /// Whether the file lacks one of the columns, or has another type for one.
    pub(super) fn differs(&self, all: &Schema) -> bool {
        let own = |number| index_in(&self.schema, all, number).map(|at| self.schema.field(at));
        let has = |(number, field): (usize, &FieldRef)| own(number).is_some_and(|own| same(field, own));
        !all.fields().iter().enumerate().all(has)
    }

    /// Refuses a column that other files have and this one has in its folder's name only.
    pub(super) fn refuse_of_folders(&self, all: &Schema, names: &[FolderName], place: &str) -> Result<()> {
        let is_named_only = |folder: &&FolderName| {
            all.field_with_name(&folder.column).is_ok() && self.schema.index_of(&folder.column).is_err()
        };
        match names.iter().find(is_named_only) {
            None => Ok(()),
            Some(folder) => Err(Error::new(
                Kind::Schema,
                format!(
                    "column {:?} is in other files, and this one has it in the name of its folder only",
                    folder.column
                ),
            )
            .at(place)
            .advise("write the column into all files, or ignore folders with --hive no")),
        }
    }
}
