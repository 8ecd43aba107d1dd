//! One version of a table: its files, its schema, and how far applications have come.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::Schema;
use sawmill_profile::{Error, Kind, Pool, Result};
use sawmill_store::{Confinement, Location};
use serde_json::Value;

use crate::action::{Action, Add, DeletionVector, Metadata, Protocol};
use crate::checkpoint::{self, actions_of};
use crate::deletion_vector::deleted_rows;
use crate::log_name::{LOG, LogNames, commit_name};
use crate::partition;
use crate::protocol::{check_readable, mapping};
use crate::schema::{DeltaField, Mapping, PHYSICAL_NAME, fields_of, to_arrow};
use crate::table_folder::TableFolder;

/// How many commits are read at the same time.
const READERS: usize = 16;
/// Tables have a few; each takes memory for each file.
const MAX_PARTITION_COLUMNS: usize = 100;

/// One version of a table.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Its number.
    pub version: u64,
    /// Its columns, with the types that they are read as.
    pub schema: Schema,
    /// The columns whose values the log has.
    pub partition_columns: Vec<String>,
    /// Its files, in the order of their paths.
    pub files: Vec<SnapshotFile>,
    pub(crate) protocol: Protocol,
    pub(crate) metadata: Metadata,
    pub(crate) fields: Vec<DeltaField>,
    pub(crate) adds: Vec<Add>,
    pub(crate) applications: BTreeMap<String, i64>,
}

/// A file of a version.
#[derive(Clone, Debug)]
pub struct SnapshotFile {
    /// Its path as the log has it, without percent-encoding.
    pub path: String,
    /// Where it is.
    pub place: Location,
    /// Its length in bytes.
    pub bytes: u64,
    /// For each partition column its position in the schema, its value, and the value's text.
    pub partition_values: Vec<(usize, ArrayRef, Option<String>)>,
    /// The rows that are deleted, if some are.
    pub deleted: Option<DeletedRows>,
}

/// Rows of a file that are deleted.
#[derive(Clone, Debug)]
pub struct DeletedRows {
    /// Their positions in the file, in ascending order.
    pub rows: Arc<[Range<u64>]>,
    /// What the log calls them: other rows of the file have another name.
    pub name: String,
}

impl Snapshot {
    /// Reads a version, the newest if none is given. `None` if the folder holds no table.
    ///
    /// # Errors
    /// A version that does not exist or whose commits are gone; a table that demands what this crate lacks; a
    /// log that cannot be read.
    pub fn open(table: &dyn TableFolder, version: Option<u64>) -> Result<Option<Self>> {
        Self::open_within(table, version, None)
    }

    /// As [`open`](Self::open); its files and their deletion vectors must be in this folder.
    ///
    /// # Errors
    /// Errors of [`open`](Self::open); a file outside of the folder.
    pub fn open_within(
        table: &dyn TableFolder,
        version: Option<u64>,
        confinement: Option<&Confinement>,
    ) -> Result<Option<Self>> {
        let place = table.location("")?.to_string();
        let names = table.names(LOG)?;
        let names = LogNames::new(names.iter().map(String::as_str));
        let Some(newest) = names.newest() else { return Ok(None) };
        let version = version.unwrap_or(newest);
        if version > newest {
            return Err(Error::new(Kind::Failed, format!("the table has no version {version}"))
                .at(place)
                .advise(format!("its newest is {newest}")));
        }
        let replayed = Replayed::new(table, &names, version, &place)?;
        replayed.snapshot((table, confinement), version, &place).map(Some)
    }

    /// Returns whether an application has committed a version.
    pub fn has_committed(&self, application: &str) -> bool {
        self.applications.contains_key(application)
    }
}

/// What tells a file from others: a file with other deleted rows is another.
type FileKey = (String, Option<(String, String, Option<i64>)>);

/// What all entries up to a version leave.
#[derive(Default)]
struct Replayed {
    protocol: Option<Protocol>,
    metadata: Option<Metadata>,
    adds: BTreeMap<FileKey, Add>,
    applications: BTreeMap<String, i64>,
}

impl Replayed {
    fn new(table: &dyn TableFolder, names: &LogNames, version: u64, place: &str) -> Result<Self> {
        let mut replayed = Self::default();
        let checkpoint = names.checkpoints.range(..=version).next_back();
        let first = match checkpoint {
            Some((at, files)) => {
                replayed.apply(checkpoint::read(table, files)?)?;
                at + 1
            }
            None => 0,
        };
        // A name may say that there are billions: none is counted behind the first that is missing.
        let commits = first..=version;
        if let Some(missing) = commits.clone().find(|commit| names.commits.binary_search(commit).is_err()) {
            let what =
                format!("version {version} cannot be read any more: its log lacks the commit {missing}");
            let oldest = names.checkpoints.keys().next().map_or_else(String::new, |oldest| {
                format!("the oldest version with a checkpoint is {oldest}")
            });
            return Err(Error::new(Kind::Failed, what).at(place).advise(oldest));
        }
        for actions in read_commits(table, &commits.collect::<Vec<_>>())? {
            replayed.apply(actions)?;
        }
        Ok(replayed)
    }

    /// Applies the entries of one commit or checkpoint.
    fn apply(&mut self, actions: Vec<Action>) -> Result<()> {
        let key = |path: &str, deleted: Option<&crate::action::DeletionVector>| -> Result<FileKey> {
            Ok((decoded(path)?, deleted.map(crate::action::DeletionVector::id)))
        };
        for action in &actions {
            if let Some(remove) = &action.remove {
                self.adds.remove(&key(&remove.path, remove.deletion_vector.as_ref())?);
            }
        }
        for action in actions {
            if let Some(add) = action.add {
                self.adds.insert(key(&add.path, add.deletion_vector.as_ref())?, add);
            }
            if let Some(transaction) = action.txn {
                self.applications.insert(transaction.app_id, transaction.version);
            }
            self.protocol = action.protocol.or(self.protocol.take());
            self.metadata = action.meta_data.or(self.metadata.take());
        }
        Ok(())
    }

    fn snapshot(self, table: Within<'_>, version: u64, place: &str) -> Result<Snapshot> {
        let lacks = |what: &str| {
            Error::new(Kind::Failed, format!("the table's log has no {what}"))
                .at(place)
                .advise("restore the table's log")
        };
        let protocol = self.protocol.ok_or_else(|| lacks("protocol"))?;
        let metadata = self.metadata.ok_or_else(|| lacks("schema"))?;
        check_readable(&protocol, &metadata, place)?;
        let unsupported = |what: String| {
            Error::new(Kind::Failed, what)
                .at(place)
                .advise("read the table with another program, or rewrite its column")
        };
        let fields = fields_of(&metadata.schema_string).map_err(unsupported)?;
        let schema =
            mapping(&metadata).and_then(|mapping| to_arrow(&fields, mapping)).map_err(unsupported)?;
        let names: Vec<String> = match mapping(&metadata) {
            Ok(Mapping::None) => fields.iter().map(|field| field.name.clone()).collect(),
            _ => fields.iter().map(physical_name).collect(),
        };
        // Each file has a value of each of them.
        if metadata.partition_columns.len() > MAX_PARTITION_COLUMNS {
            let count = metadata.partition_columns.len();
            return Err(unsupported(format!("{count} partition columns, more than {MAX_PARTITION_COLUMNS}")));
        }
        let partitions: Vec<usize> = metadata
            .partition_columns
            .iter()
            .map(|name| schema.index_of(name).map_err(|_| lacks(&format!("partition column {name:?}"))))
            .collect::<Result<_>>()?;
        let mut files = Vec::with_capacity(self.adds.len());
        let mut vectors = BTreeMap::new();
        for ((path, _), add) in &self.adds {
            let deleted = deleted(table, path, add, &mut vectors)?;
            files.push(file_of(table, path, add, deleted, (&schema, &names), &partitions)?);
        }
        Ok(Snapshot {
            version,
            schema,
            partition_columns: metadata.partition_columns.clone(),
            files,
            protocol,
            metadata,
            fields,
            adds: self.adds.into_values().collect(),
            applications: self.applications,
        })
    }
}

/// A table's folder, and the folder that its files must be in.
type Within<'a> = (&'a dyn TableFolder, Option<&'a Confinement>);

/// The rows of a file that are deleted. Files that name the same deletion vector share it in `vectors`.
fn deleted(
    (table, confinement): Within<'_>,
    path: &str,
    add: &Add,
    vectors: &mut BTreeMap<DeletionVector, Arc<[Range<u64>]>>,
) -> Result<Option<DeletedRows>> {
    let Some(vector) = &add.deletion_vector else { return Ok(None) };
    let rows = match vectors.get(vector) {
        Some(rows) => Arc::clone(rows),
        None => {
            let rows: Arc<[_]> = deleted_rows(table, vector, confinement)
                .map_err(|what| {
                    Error::new(Kind::Failed, format!("the deletion vector of the file cannot be read: {what}"))
                        .at(path)
                        .advise("rewrite the files that have some (in Spark: REORG TABLE ... APPLY (PURGE)), then load the new version")
                })?
                .into();
            vectors.insert(vector.clone(), Arc::clone(&rows));
            rows
        }
    };
    let (kind, name, offset) = vector.id();
    let offset = offset.map_or_else(String::new, |at| format!("@{at}"));
    Ok(Some(DeletedRows { rows, name: format!("{kind}{name}{offset}") }))
}

fn file_of(
    (table, confinement): Within<'_>,
    path: &str,
    add: &Add,
    deleted: Option<DeletedRows>,
    (schema, names): (&Schema, &[String]),
    partitions: &[usize],
) -> Result<SnapshotFile> {
    let mut partition_values = Vec::with_capacity(partitions.len());
    for column in partitions {
        let field = schema.field(*column);
        let text = names.get(*column).and_then(|name| add.partition_values.get(name)).cloned().flatten();
        let value = partition::value(text.as_deref(), field.data_type()).map_err(|what| {
            let what = format!("the partition value of column {:?}: {what}", field.name());
            Error::new(Kind::Failed, what)
                .at(path)
                .advise("rewrite the partition, or read the table with another program")
        })?;
        partition_values.push((*column, value, text));
    }
    let place = match is_absolute(path) {
        true => Location::new(Path::new(path))?,
        false => table.location(path)?,
    };
    confinement.map_or(Ok(()), |within| within.check(&place))?;
    Ok(SnapshotFile { path: path.to_owned(), place, bytes: add.size, partition_values, deleted })
}

/// Returns the name of a column in files and in partition values of a table that maps its columns.
fn physical_name(field: &DeltaField) -> String {
    match field.metadata.get(PHYSICAL_NAME) {
        Some(Value::String(name)) => name.clone(),
        _ => field.name.clone(),
    }
}

/// Whether a path is the URL of a file that may be outside of the table's folder.
fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || path.split_once("://").is_some_and(|(scheme, _)| !scheme.contains('/'))
}

/// Reads commits, several at the same time, and returns their entries in the order of the versions.
fn read_commits(table: &dyn TableFolder, versions: &[u64]) -> Result<Vec<Vec<Action>>> {
    let pool = Pool::new("commit", READERS.min(versions.len()), None);
    pool.map(versions, |version| read_commit(table, *version))
}

fn read_commit(table: &dyn TableFolder, version: u64) -> Result<Vec<Action>> {
    let name = commit_name(version);
    let damaged = |what: String| {
        let place = table.location(&name).map_or_else(|_| name.clone(), |place| place.to_string());
        Error::new(Kind::Failed, format!("the commit cannot be read: {what}"))
            .at(place)
            .advise("restore the table's log")
    };
    let bytes = table.read(&name)?.ok_or_else(|| damaged("the file is missing".to_owned()))?;
    actions_of(&bytes).map_err(damaged)
}

/// Returns a path without percent-encoding.
fn decoded(path: &str) -> Result<String> {
    sawmill_store::percent_decoded(path).ok_or_else(|| {
        Error::new(Kind::Failed, "the path of a file is not percent-encoded UTF-8")
            .at(path)
            .advise("restore the table's log")
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, RecordBatch, StringArray, StructArray};
    use arrow_schema::{DataType, Field};
    use parquet::arrow::ArrowWriter;
    use serde_json::json;

    use super::*;
    use crate::table_folder::LocalTable;

    /// A table with columns `c0` and so on, whose first version has these lines besides.
    fn opened(columns: usize, partitions: usize, lines: &[String]) -> Result<Snapshot> {
        let directory = tempfile::tempdir().unwrap();
        let table = LocalTable::new(directory.path());
        let field =
            |i: usize| json!({"name": format!("c{i}"), "type": "long", "nullable": true, "metadata": {}});
        let schema = json!({"type": "struct", "fields": (0..columns).map(field).collect::<Vec<_>>()});
        let names: Vec<String> = (0..partitions).map(|i| format!("c{i}")).collect();
        let features = ["deletionVectors"];
        let protocol = json!({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features,
            "writerFeatures": features});
        let metadata = json!({"id": "t", "schemaString": schema.to_string(), "partitionColumns": names});
        let first = [json!({"protocol": protocol}).to_string(), json!({"metaData": metadata}).to_string()];
        table.create(&commit_name(0), [&first[..], lines].concat().join("\n").as_bytes()).unwrap();
        Ok(Snapshot::open(&table, None)?.unwrap())
    }

    #[test]
    fn a_table_with_more_partition_columns_than_any_has_is_refused() {
        assert_eq!(opened(200, 100, &[]).unwrap().partition_columns.len(), 100);
        let error = opened(200, 101, &[]).unwrap_err().to_string();
        assert!(error.contains("101 partition columns, more than 100"), "{error}");
    }

    #[test]
    fn files_that_name_one_deletion_vector_share_its_rows() {
        let vector = json!({"storageType": "i", "sizeInBytes": 40, "cardinality": 6,
            "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"});
        let add =
            |path: &str| json!({"add": {"path": path, "size": 1, "deletionVector": vector}}).to_string();
        let files = opened(1, 0, &[add("a"), add("b")]).unwrap().files;
        let rows =
            files.iter().map(|file| Arc::clone(&file.deleted.as_ref().unwrap().rows)).collect::<Vec<_>>();
        assert_eq!(rows[0].len(), 5);
        assert!(Arc::ptr_eq(&rows[0], &rows[1]));
    }

    #[test]
    fn a_checkpoint_whose_entries_are_hardly_stored_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let table = LocalTable::new(directory.path());
        let path = (Field::new("path", DataType::Utf8, true), StringArray::from(vec!["a"; 200_000]));
        let size = (Field::new("size", DataType::Int64, true), Int64Array::from(vec![1; 200_000]));
        let add = StructArray::from(vec![
            (Arc::new(path.0), Arc::new(path.1) as ArrayRef),
            (Arc::new(size.0), Arc::new(size.1) as ArrayRef),
        ]);
        let rows = RecordBatch::try_from_iter([("add", Arc::new(add) as ArrayRef)]).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        let name = format!("{LOG}/{:020}.checkpoint.parquet", 0);
        table.create(&name, &writer.into_inner().unwrap()).unwrap();
        let error = Snapshot::open(&table, None).unwrap_err().to_string();
        assert!(error.contains("made to exhaust memory"), "{error}");
    }
}
