//! Writes partitions into folders: each by one thread, its rows in order.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::WriterProperties;
use sawmill_profile::{Phase, Pool, span};
use sawmill_source::{OrderedRows, Partition, PartitionedBy, Source, Unit, UnitKey};

use super::ConvertArgs;
use super::parquet::{ParquetOut, properties};
use super::run::Written;
use super::staging::{self, Layout, Staged};
use super::writer::{with_types, without_views};
use crate::error::Error;
use crate::r#gen::formats::batch_writer::Counted;
use crate::r#gen::formats::text_form::NoText;
use crate::interrupt;

/// Rows of a batch.
const BATCH_ROWS: usize = 4096;

/// The most bytes of an unfinished row group. Each thread holds one.
const GROUP_BYTES: u64 = 32 << 20;

/// The threads that encode the columns of a file, besides the one that gathers its rows: so a core is not idle
/// while the last partition is written.
const ENCODERS: usize = 1;

/// The name of the file in each folder.
const FILE: &str = "part-0.parquet";
/// The name of the file of empty strings, in the folder of rows without a value.
const FILE_OF_EMPTY: &str = "part-1.parquet";

/// The value of folders for rows without one.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The most bytes of a name in the usual file systems.
const MAX_NAME_LENGTH: usize = 255;

/// Writes the partitions of `rows` into folders of the output.
pub(super) struct Folders<'a> {
    pub args: &'a ConvertArgs,
    pub rows: &'a OrderedRows<'a>,
    pub by: &'a PartitionedBy,
    pub sort_by: Option<&'a str>,
    pub phase: &'a Phase,
}

/// What all threads share.
struct Shared<'a> {
    stop: AtomicBool,
    bytes: AtomicU64,
    staging: &'a Path,
    /// Whether the files stay on this machine.
    stays: bool,
    /// The columns of the files, as positions in the schema of the source, and the types they are written as.
    columns: Vec<usize>,
    schema: SchemaRef,
    properties: WriterProperties,
}

impl Folders<'_> {
    /// Writes all partitions.
    pub(super) fn write(&self) -> Result<Written, Error> {
        self.check_names()?;
        let staged = Staged::begin(self.args, Layout::Folders)?;
        let mut partitions: Vec<(usize, Partition)> =
            self.rows.partitions().into_iter().enumerate().collect();
        // The largest first, so that no thread begins one when the others are done.
        partitions.sort_by_key(|(number, partition)| (std::cmp::Reverse(partition.bytes), *number));
        let columns = self.columns();
        let schema = self.rows.schema();
        let fields = columns.iter().filter_map(|column| schema.fields().get(*column).cloned());
        let schema = with_types(&Schema::new(fields.collect::<Vec<_>>()), without_views);
        let sorting = self
            .sort_by
            .and_then(|name| leaf_of(&schema, name))
            .map(|column_idx| vec![SortingColumn { column_idx, descending: false, nulls_first: false }]);
        let properties = properties(self.args, &schema).map_err(|error| self.refused(error))?;
        let properties = properties.set_sorting_columns(sorting).build();
        let (threads, files) = (self.args.threads(), partitions.len() as u64);
        let shared = Shared {
            stop: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
            staging: staged.path(),
            stays: staged.stays(),
            columns,
            schema,
            properties,
        };
        let pool = Pool::new("writer", threads, Some(&self.phase.sink()));
        let write = |(): &mut (), (number, partition): (usize, Partition)| {
            self.write_partition(&shared, number, &partition)
        };
        pool.for_each(partitions, &shared.stop, || Ok(()), write)?;
        self.rows.check_unchanged()?;
        let bytes = shared.bytes.into_inner();
        staged.finish()?;
        Ok(Written { bytes, files })
    }

    /// Rejects values that no folder of their own can be named after.
    fn check_names(&self) -> Result<(), Error> {
        for partition in self.rows.partitions() {
            let (column, value) = partition.folder(self.by, self.rows.schema());
            let Some(value) = value else { continue };
            let what = if value == NULL {
                format!(
                    "the value {value:?} of the column {column:?} is the name of the folder without values"
                )
            } else if folder_name(&column, Some(&value)).len() > MAX_NAME_LENGTH {
                let start: String = value.chars().take(40).collect();
                format!("a value of the column {column:?} is too long for the name of a folder: \"{start}…\"")
            } else {
                continue;
            };
            let advice = "write such rows apart, or partition by another column";
            return Err(Error::failure(what, format!("--partition-by {}", self.by), advice));
        }
        Ok(())
    }

    /// The columns of the files: without the column whose values name the folders.
    fn columns(&self) -> Vec<usize> {
        let fields = self.rows.schema().fields();
        let stays = |name: &str| !matches!(self.by, PartitionedBy::List(column) if column == name);
        (0..fields.len()).filter(|at| fields.get(*at).is_some_and(|field| stays(field.name()))).collect()
    }

    fn write_partition(
        &self,
        shared: &Shared<'_>,
        number: usize,
        partition: &Partition,
    ) -> Result<(), Error> {
        let control = interrupt::control(self.phase);
        let control = control.with_stop(&shared.stop);
        let (column, value) = partition.folder(self.by, self.rows.schema());
        // Hive reads an empty value as null, and so would other readers: both have the same folder.
        let name = if value.as_ref().is_some_and(String::is_empty) { FILE_OF_EMPTY } else { FILE };
        let folder = shared.staging.join(folder_name(&column, value.as_deref()));
        let wrong = |error: io::Error| Error::of_output("writing", self.args.out(), &error);
        std::fs::create_dir_all(&folder).map_err(wrong)?;
        let file = File::create_new(folder.join(name)).map_err(wrong)?;
        let out = Counted { target: BufWriter::with_capacity(1 << 18, file), bytes: 0, phase: self.phase };
        let refuse = |error| self.refused(error);
        let mut reader = self.rows.reader_of(&shared.columns, BATCH_ROWS);
        let row_group = u32::try_from(number).unwrap_or(u32::MAX);
        let key = UnitKey { file: 0, row_group, first_row: 0 };
        reader.start(&Unit { key, rows: partition.rows, bytes: partition.bytes })?;
        let mut next = || -> Result<Option<RecordBatch>, Error> {
            control.check()?;
            let _gathering = span("gather and parse");
            Ok(reader.next_batch()?)
        };
        let (schema, properties) = (&shared.schema, shared.properties.clone());
        let mut parquet = ParquetOut::new(out, self.args, schema, properties, ENCODERS, self.phase);
        while let Some(rows) = next()? {
            parquet.write(&rows).map_err(refuse)?;
            parquet.end_row_group_of(GROUP_BYTES);
            self.phase.add_rows(rows.num_rows() as u64);
        }
        let written = parquet.finish().map_err(refuse)?;
        shared.bytes.fetch_add(written.bytes, Relaxed);
        let file = written.target.into_inner().map_err(|error| wrong(error.into_error()))?;
        if shared.stays { file.sync_all().map_err(wrong) } else { Ok(()) }
    }

    fn refused(&self, error: NoText) -> Error {
        super::run::refused(self.args, error, 0)
    }
}

/// Rejects an output that cannot become a directory of folders.
pub(super) fn check_out(args: &ConvertArgs, by: &PartitionedBy, source: &dyn Source) -> Result<(), Error> {
    if let PartitionedBy::Period(period, _) = by
        && source.schema().field_with_name(period.name()).is_ok()
    {
        let what = format!(
            "the column {0:?} would be in the files and in the names of the folders {0}=...",
            period.name()
        );
        let advice =
            format!("rename it with --rename {0}=NAME, or partition by another period", period.name());
        return Err(Error::usage(what, format!("--partition-by {by}"), advice));
    }
    if source.schema().fields().len() == 1 && matches!(by, PartitionedBy::List(_)) {
        let advice = "partition by another column: only the names of the folders hold the column of a list";
        return Err(Error::usage("the files would have no column", format!("--partition-by {by}"), advice));
    }
    staging::check_out(args, source, Layout::Folders)
}

/// The number of the column's leaf; `None` after nested columns, whose leaves are not counted here.
fn leaf_of(schema: &Schema, name: &str) -> Option<i32> {
    let at = schema.index_of(name).ok()?;
    let before = schema.fields().iter().take(at + 1);
    (!before.clone().any(|field| field.data_type().is_nested())).then(|| i32::try_from(at).ok()).flatten()
}

/// The name of the folder of a value. Empty values share the folder of rows without a value.
fn folder_name(column: &str, value: Option<&str>) -> String {
    let value = value.filter(|value| !value.is_empty()).map_or(NULL.to_owned(), escaped);
    format!("{}={value}", escaped(column))
}

/// A value as a part of a folder's name. Characters with a meaning for file systems or readers become `%2F` and
/// the like.
fn escaped(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        let special = character.is_control()
            || "\"#%'*/:=?\\{}[]^<>|".contains(character)
            || (at == 0 && character == '.');
        match special {
            true => {
                let mut bytes = [0; 4];
                for byte in character.encode_utf8(&mut bytes).bytes() {
                    name += &format!("%{byte:02X}");
                }
            }
            false => name.push(character),
        }
    }
    name
}
