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

/// Asks for the names and fingerprints of files that need not be read, because a target has their rows.
pub type FindLoaded<'a> = &'a dyn Fn() -> Result<HashSet<(String, String)>>;

/// Columns that grow with the files that have them.
#[derive(Default)]
struct Columns<'f> {
    fields: Vec<Field>,
    /// For each of them, the name of a file with its type.
    files: Vec<&'f str>,
}

/// Returns the columns that all files get, in the order of the first file that has them. If they do not fit together, files
/// that are `loaded` are taken out whose columns do not fit those of the others.
pub(super) fn common_columns(
    opened: &mut Vec<(Opened, SourceFile)>,
    left_out: &HashSet<String>,
    unlike: UnlikeFiles,
    loaded: FindLoaded<'_>,
) -> Result<(Vec<Field>, Vec<SourceFile>)> {
    let error = match Columns::new(opened.iter(), left_out, unlike) {
        Ok(columns) => return Ok((columns.fields, Vec::new())),
        Err(error) => error,
    };
    let known = loaded()?;
    let is_loaded = |file: &SourceFile| {
        !known.is_empty() && known.contains(&(file.name.clone(), file.fingerprint.clone()))
    };
    if !opened.iter().any(|(_, file)| is_loaded(file)) {
        return Err(error);
    }
    let mut columns = Columns::new(opened.iter().filter(|(_, file)| !is_loaded(file)), left_out, unlike)?;
    let mut unlike_files = HashSet::new();
    for file in opened.iter().filter(|(_, file)| is_loaded(file)) {
        if columns.add(file, left_out, unlike).is_err() {
            unlike_files.insert(file.1.name.clone());
        }
    }
    // New files that are like none of the loaded ones need another table, or to be loaded alone.
    if opened.iter().all(|(_, file)| !is_loaded(file) || unlike_files.contains(&file.name)) {
        return Err(error);
    }
    let fields = columns.fields;
    let taken_out = opened.extract_if(.., |(_, file)| unlike_files.contains(&file.name));
    let taken_out = taken_out.map(|(_, file)| file).collect();
    Ok((fields, taken_out))
}

impl<'f> Columns<'f> {
    fn new(
        files: impl Iterator<Item = &'f (Opened, SourceFile)>,
        left_out: &HashSet<String>,
        unlike: UnlikeFiles,
    ) -> Result<Self> {
        let mut columns = Self::default();
        for file in files {
            columns.add(file, left_out, unlike)?;
        }
        Ok(columns)
    }

    /// Adds a file's columns. After an error there are none that were not there before.
    fn add(
        &mut self,
        (file, source): &'f (Opened, SourceFile),
        left_out: &HashSet<String>,
        unlike: UnlikeFiles,
    ) -> Result<()> {
        let own = without(&file.schema, left_out);
        if self.fields.is_empty() {
            self.fields = own.fields().iter().map(|field| field.as_ref().clone()).collect();
            self.files = vec![&source.name; self.fields.len()];
            return Ok(());
        }
        let lines = match unlike {
            UnlikeFiles::Refused(_) => differences(&Schema::new(self.fields.clone()), &own),
            UnlikeFiles::United => Vec::new(),
        };
        let first = self.files.first().copied().unwrap_or_default();
        let (lines, other) = match lines.is_empty() {
            true => self.unite(&own, &source.name),
            false => (lines, first),
        };
        if lines.is_empty() {
            return Ok(());
        }
        let what = format!("columns differ from those of {other}: {}", lines.join("; "));
        Err(Error::new(Kind::Schema, what).at(&source.name).advise(match unlike {
            UnlikeFiles::Refused(advice) => advice,
            UnlikeFiles::United => {
                "such types are not united: load the files one after the other into a column that takes the values of both, \
                 such as text, or into different tables"
            }
        }))
    }

    /// Unites them with the columns of the file of this name. Returns a line for each column without a common type, and a
    /// file that has the first of them; then nothing has changed.
    fn unite(&mut self, own: &Schema, name: &'f str) -> (Vec<String>, &'f str) {
        let (mut lines, mut other) = (Vec::new(), None);
        let (mut fields, mut files) = (Vec::new(), self.files.clone());
        for (field, file) in self.fields.iter().zip(&mut files) {
            let both = match own.field_with_name(field.name()) {
                Err(_) => Some(field.clone().with_nullable(true)),
                Ok(theirs) => widest(field, theirs)
                    .ok_or(theirs)
                    .map_err(|theirs| {
                        let (name, types) = (field.name(), [theirs.data_type(), field.data_type()]);
                        lines.push(format!("column {name:?} is {} and not {}", types[0], types[1]));
                        other.get_or_insert(*file);
                    })
                    .ok(),
            };
            let both = both.unwrap_or_else(|| field.clone());
            if both.data_type() != field.data_type() {
                *file = name;
            }
            fields.push(both);
        }
        if let Some(other) = other {
            return (lines, other);
        }
        for theirs in own.fields() {
            if fields.iter().all(|field| field.name() != theirs.name()) {
                fields.push(theirs.as_ref().clone().with_nullable(true));
                files.push(name);
            }
        }
        (self.fields, self.files) = (fields, files);
        (lines, name)
    }
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
