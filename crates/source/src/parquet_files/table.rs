//! The files of a table whose log names its columns: files may lack some of them, and the log has the values
//! of others.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, new_null_array};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use sawmill_profile::{Error, Kind, Result};
use sawmill_store::Location;

use crate::columns::common::{common, merged};
use crate::columns::united::widest;
use crate::hive::{Folder, FolderValue, Hive};
use crate::parquet_files::files::{Opened, ParquetFiles, map_where_they_are, open};
use crate::parquet_files::mapped::name_in_files;
use crate::parquet_files::opened_file::{ColumnPlace, OpenObject, OpenedFile};
use crate::parquet_files::schema::same;
use crate::units::SourceFile;

/// A file of a table.
#[derive(Clone, Debug)]
pub struct TableFile {
    /// Where it is.
    pub place: Location,
    /// Its length in bytes, as the log has it.
    pub bytes: u64,
    /// The values of columns that are the same in all of its rows.
    pub given: Vec<GivenValue>,
    /// The rows that are deleted, if some are.
    pub deleted: Option<DeletedRows>,
}

/// Rows of a file that no longer belong to the table. Only [`without_deleted`](ParquetFiles::without_deleted) and
/// [`filtered`](ParquetFiles::filtered) read a file that has some.
#[derive(Clone, Debug)]
pub struct DeletedRows {
    /// Their positions in the file, in ascending order.
    pub rows: Arc<[Range<u64>]>,
    /// Identifies them; a part of the file's identity.
    pub name: String,
}

/// The value of a column in all rows of a file.
#[derive(Clone, Debug)]
pub struct GivenValue {
    /// The position of the column in the table's schema.
    pub column: usize,
    /// An array of this value alone.
    pub value: ArrayRef,
    /// The value as the log has it; a part of the file's identity. `None` for null.
    pub text: Option<String>,
}

impl ParquetFiles {
    /// Opens the files of a table. They get the columns of `table`, in that order: a column that a file lacks
    /// is null in its rows, and a value that the log gives replaces the file's. Columns that the table does
    /// not have are not read. `columns` are those to read, or all if it is empty: another one that cannot be read is
    /// null.
    ///
    /// # Errors
    /// Errors of [`open_located`](Self::open_located); a file of another length than the log has; a column of
    /// another type than the table's, or without values although the table has no nulls there.
    pub fn open_table(
        table: &Schema,
        files: &[TableFile],
        objects: OpenObject<'_>,
        max_footer: u64,
        columns: &[String],
    ) -> Result<Self> {
        let wanted: Vec<String> = columns.iter().map(|name| name_in_files(table, name)).collect();
        let each = |file: &TableFile| {
            let (mut opened, mut source) =
                open(&file.place, objects, Hive::Ignored, (max_footer, &wanted), Some(table))?;
            for column in &mut opened.opened.left_out {
                let is_it = |field: &&FieldRef| name_in_files(table, field.name()) == column.name;
                if let Some(field) = table.fields().iter().find(is_it) {
                    column.name.clone_from(field.name());
                }
            }
            let replaced = |source: &SourceFile, what: String| {
                let advice = "another program has replaced the file: restore it, or the table's version";
                Err(Error::new(Kind::Source, what).at(&source.name).advise(advice))
            };
            if let Some(deleted) = &file.deleted {
                if let Some(last) = deleted.rows.last().filter(|last| last.end > source.rows) {
                    let what =
                        format!("the table deletes row {}, and the file has {}", last.end, source.rows);
                    return replaced(&source, what);
                }
                source.fingerprint += &format!(" without {:?}", deleted.name);
                opened.opened.deleted.clone_from(&deleted.rows);
            }
            match source.bytes == file.bytes {
                true => Ok((opened, source, file.given.clone())),
                false => {
                    let what =
                        format!("the file has {} bytes, {} in the table's log", source.bytes, file.bytes);
                    replaced(&source, what)
                }
            }
        };
        let is_object = |file: &TableFile| matches!(file.place, Location::Object(_));
        let mut opened = map_where_they_are("opener", files, is_object, each)?;
        opened.sort_by(|(_, a, _), (_, b, _)| a.name.cmp(&b.name));
        let fields = columns_of(table, &opened)?;
        let all = Schema::new(fields.clone());
        let mut files = Vec::with_capacity(opened.len());
        for (mut file, mut source, given) in opened {
            arrange(&mut file, &mut source, &given, (&fields, columns))?;
            let own = |field: &Field| file.schema.field_with_name(field.name()).ok();
            file.opened.narrow = fields.iter().any(|field| own(field).is_some_and(|own| !same(field, own)));
            file.opened.unfold(&all)?;
            files.push((source, file.opened));
        }
        let names: Vec<_> = table.fields().iter().map(|field| (field.name(), field.data_type())).collect();
        Ok(Self::new(all, files, format!("table {names:?} ")))
    }
}

type OpenedTableFile = (Opened, SourceFile, Vec<GivenValue>);

/// Returns the columns of a table with the types that its files have them in.
fn columns_of(table: &Schema, files: &[OpenedTableFile]) -> Result<Vec<Field>> {
    let mut fields = Vec::with_capacity(table.fields().len());
    for (column, wanted) in table.fields().iter().enumerate() {
        let mut found: Option<Field> = None;
        for (file, source, given) in files {
            if given.iter().any(|given| given.column == column) {
                continue;
            }
            let Ok(theirs) = file.schema.field_with_name(wanted.name()) else {
                refuse_other_case(wanted, &file.schema, table).map_err(|error| error.at(&source.name))?;
                continue;
            };
            let misfit = |other: &str, field: &Field, types: &str| -> Result<Vec<Field>> {
                let (name, own) = (wanted.name(), theirs.data_type());
                let what = format!("column {name:?} is {own}, in {other} {}", field.data_type());
                let advice = format!("rewrite the table, so that all of its files have {types} types");
                Err(Error::new(Kind::Schema, what).at(&source.name).advise(advice))
            };
            let widened = || widest(theirs, wanted).filter(|both| both.data_type() == wanted.data_type());
            let Some(fitted) = fitted(theirs, wanted).or_else(widened) else {
                return misfit("the table's schema", wanted, "its present");
            };
            found = Some(match found {
                None => fitted,
                Some(first) if !same(&first, &fitted) => return misfit("other files", &first, "the same"),
                Some(first) => common(&first, &fitted),
            });
        }
        let found = found.filter(|found| *found.data_type() != DataType::Null);
        let field = found.unwrap_or_else(|| wanted.as_ref().clone().with_metadata(HashMap::new()));
        fields.push(field.with_nullable(wanted.is_nullable()));
    }
    Ok(fields)
}

/// Refuses a column that a file has with a name of another case: to Delta they are the same, and NULL would be wrong.
fn refuse_other_case(wanted: &Field, own: &Schema, table: &Schema) -> Result<()> {
    let is_it = |own: &&FieldRef| {
        own.name().eq_ignore_ascii_case(wanted.name()) && table.field_with_name(own.name()).is_err()
    };
    match own.fields().iter().find(is_it) {
        None => Ok(()),
        Some(own) => {
            let what = format!("column {:?} is {:?} in the file", wanted.name(), own.name());
            Err(Error::new(Kind::Schema, what)
                .advise("rewrite the table, so that all of its files have its names"))
        }
    }
}

/// Returns a file's field with the table's fields of structs. `None` if it has other values.
fn fitted(own: &Field, wanted: &Field) -> Option<Field> {
    if same(&as_moments(wanted), &as_moments(own)) {
        return Some(own.clone());
    }
    let item = |own: &FieldRef, wanted: &FieldRef| fitted(own, wanted).map(Arc::new);
    let field_of = |own: &Fields, wanted: &FieldRef| match own.find(wanted.name()) {
        Some((_, own)) => item(own, wanted),
        // To Delta, names that differ in case are the same.
        None if own.iter().any(|own| own.name().eq_ignore_ascii_case(wanted.name())) => None,
        None => Some(Arc::new(Field::new(wanted.name(), wanted.data_type().clone(), true))),
    };
    let data_type = match (own.data_type(), wanted.data_type()) {
        (DataType::Struct(own), DataType::Struct(wanted)) => {
            DataType::Struct(wanted.iter().map(|wanted| field_of(own, wanted)).collect::<Option<Fields>>()?)
        }
        (DataType::List(own), DataType::List(wanted)) => DataType::List(item(own, wanted)?),
        (DataType::Map(own, sorted), DataType::Map(wanted, _)) => {
            let (DataType::Struct(pair), DataType::Struct(wanted)) = (own.data_type(), wanted.data_type())
            else {
                return None;
            };
            let pair =
                pair.iter().zip(wanted).map(|(own, wanted)| item(own, wanted)).collect::<Option<_>>()?;
            let entries = own.as_ref().clone().with_data_type(DataType::Struct(pair));
            DataType::Map(Arc::new(entries), *sorted)
        }
        _ => return None,
    };
    Some(own.clone().with_data_type(data_type))
}

/// Sets where a file's columns are: in the file, or given.
fn arrange(
    file: &mut Opened,
    source: &mut SourceFile,
    given: &[GivenValue],
    (fields, wanted): (&[Field], &[String]),
) -> Result<()> {
    let OpenedFile { columns: places, folders, .. } = &mut file.opened;
    let mut found = Vec::with_capacity(fields.len());
    for (column, field) in fields.iter().enumerate() {
        let of_log = given.iter().find(|given| given.column == column);
        let value = match (of_log, file.schema.index_of(field.name())) {
            (Some(given), _) => {
                source.fingerprint += &format!(" {:?}={:?}", field.name(), given.text);
                Arc::clone(&given.value)
            }
            (None, Ok(at)) => {
                found.push(ColumnPlace::Field(at));
                continue;
            }
            (None, Err(_)) => new_null_array(field.data_type(), 1),
        };
        let is_wanted = wanted.is_empty() || wanted.contains(field.name());
        if value.is_null(0) && !field.is_nullable() && is_wanted {
            let what = format!("column {:?} has no values, but is not nullable in the table", field.name());
            return Err(Error::new(Kind::Schema, what)
                .at(&source.name)
                .advise("restore the file, or a version of the table before it"));
        }
        found.push(ColumnPlace::Folder(folders.len()));
        folders.push(Folder { field: field.clone(), value: FolderValue::Given(value) });
    }
    *places = found.into();
    Ok(())
}

/// Returns the field with UTC in place of all time zones, and with microseconds in place of all units: neither changes
/// which moments the values are.
fn as_moments(field: &Field) -> Field {
    merged(field, field, |own, _| match own {
        DataType::Timestamp(_, zone) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.as_ref().map(|_| "UTC".into()))
        }
        other => other.clone(),
    })
}
