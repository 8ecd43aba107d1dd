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
use crate::checkpoint::{self, each_action};
use crate::deletion_vector::deleted_rows;
use crate::log_name::{LOG, LogNames, commit_name};
use crate::partition;
use crate::protocol::{check_readable, mapping};
use crate::schema::{DeltaField, Mapping, PHYSICAL_NAME, fields_of, to_arrow};
use crate::table_folder::TableFolder;

/// How many commits are read at the same time, and how many bytes they have together, unless one alone has more.
const READERS: usize = 16;
const MAX_READ: u64 = 64 << 20;
/// What the files of a version may take in memory: half a million files, or more with short names.
const MAX_MEMORY: usize = 512 << 20;
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
        let names = LogNames::new(names.iter().map(|(name, bytes)| (name.as_str(), *bytes)));
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
    /// Files of the commit that is being applied: what it removes are files of earlier ones.
    fresh: BTreeMap<FileKey, Add>,
    applications: BTreeMap<String, i64>,
    /// What the files take in memory.
    memory: usize,
}

impl Replayed {
    fn new(table: &dyn TableFolder, names: &LogNames, version: u64, place: &str) -> Result<Self> {
        let mut replayed = Self::default();
        let checkpoint = names.checkpoints.range(..=version).next_back();
        let first = match checkpoint {
            Some((at, files)) => {
                checkpoint::read(table, files, &mut |action| replayed.apply(action))?;
                replayed.end_commit();
                at + 1
            }
            None => 0,
        };
        // A name may say that there are billions: none is counted behind the first that is missing.
        let commits = first..=version;
        if let Some(missing) = commits.clone().find(|commit| !names.commits.contains_key(commit)) {
            let what =
                format!("version {version} cannot be read any more: its log lacks the commit {missing}");
            let oldest = names.checkpoints.keys().next().map_or_else(String::new, |oldest| {
                format!("the oldest version with a checkpoint is {oldest}")
            });
            return Err(Error::new(Kind::Failed, what).at(place).advise(oldest));
        }
        let commits = commits.filter_map(|commit| names.commits.get_key_value(&commit));
        replayed.read_commits(table, &commits.collect::<Vec<_>>())?;
        Ok(replayed)
    }

    /// Reads commits of these versions and lengths, several at the same time, and applies them in their order.
    fn read_commits(&mut self, table: &dyn TableFolder, mut commits: &[(&u64, &u64)]) -> Result<()> {
        let pool = Pool::new("commit", READERS.min(commits.len()), None);
        while !commits.is_empty() {
            let mut sum = 0_u64;
            let fits = |(_, bytes): &&(&u64, &u64)| {
                sum = sum.saturating_add(**bytes);
                sum <= MAX_READ
            };
            let several = commits.iter().take(READERS).take_while(fits).count().max(1);
            let (now, rest) = commits.split_at(several);
            for (version, bytes) in
                pool.map(now, |(version, bytes)| read_commit(table, **version, **bytes))?
            {
                each_action(&bytes, &mut |action| self.apply(action))
                    .map_err(|what| damaged(table, version, &what))?;
                self.end_commit();
            }
            commits = rest;
        }
        Ok(())
    }

    /// Applies an entry of a commit or checkpoint.
    fn apply(&mut self, action: Action) -> std::result::Result<(), String> {
        let key = |path: &str, deleted: Option<&DeletionVector>| -> std::result::Result<FileKey, String> {
            let decoded = sawmill_store::percent_decoded(path);
            let decoded = decoded.ok_or_else(|| format!("the path {path:?} is not percent-encoded UTF-8"))?;
            Ok((decoded, deleted.map(DeletionVector::id)))
        };
        if let Some(remove) = &action.remove {
            let removed = self.adds.remove(&key(&remove.path, remove.deletion_vector.as_ref())?);
            self.memory -= removed.map_or(0, |add| add.memory());
        }
        if let Some(add) = action.add {
            self.memory += add.memory();
            let replaced = self.fresh.insert(key(&add.path, add.deletion_vector.as_ref())?, add);
            self.memory -= replaced.map_or(0, |add| add.memory());
        }
        if let Some(transaction) = action.txn {
            self.memory += 100 + transaction.app_id.len();
            self.applications.insert(transaction.app_id, transaction.version);
        }
        self.protocol = action.protocol.or(self.protocol.take());
        self.metadata = action.meta_data.or(self.metadata.take());
        match self.memory > MAX_MEMORY {
            true => {
                Err(format!("its files take more than {} MiB of memory: compact the table", MAX_MEMORY >> 20))
            }
            false => Ok(()),
        }
    }

    /// Adds the files of a commit, of which some may be there.
    fn end_commit(&mut self) {
        for (key, add) in std::mem::take(&mut self.fresh) {
            let replaced = self.adds.insert(key, add);
            self.memory -= replaced.map_or(0, |add| add.memory());
        }
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
        let mut room = MAX_MEMORY - self.memory;
        for ((path, _), add) in &self.adds {
            let deleted = deleted(table, path, add, (&mut vectors, &mut room))?;
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

/// The deletion vectors that were read, with their rows.
type Vectors = BTreeMap<DeletionVector, Arc<[Range<u64>]>>;

/// The rows of a file that are deleted. Files that name the same deletion vector share it in `vectors`, which has `room`
/// for more bytes.
fn deleted(
    (table, confinement): Within<'_>,
    path: &str,
    add: &Add,
    (vectors, room): (&mut Vectors, &mut usize),
) -> Result<Option<DeletedRows>> {
    let Some(vector) = &add.deletion_vector else { return Ok(None) };
    let rows = match vectors.get(vector) {
        Some(rows) => Arc::clone(rows),
        None => {
            let rows: Arc<[_]> = deleted_rows(table, vector, confinement, *room)
                .map_err(|what| {
                    Error::new(Kind::Failed, format!("the deletion vector of the file cannot be read: {what}"))
                        .at(path)
                        .advise("rewrite the files that have some (in Spark: REORG TABLE ... APPLY (PURGE)), then load the new version")
                })?
                .into();
            *room = room.saturating_sub(size_of_val(&*rows));
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

fn read_commit(table: &dyn TableFolder, version: u64, bytes: u64) -> Result<(u64, Vec<u8>)> {
    let read = table.read(&commit_name(version), bytes)?;
    Ok((version, read.ok_or_else(|| damaged(table, version, "the file is missing"))?))
}

fn damaged(table: &dyn TableFolder, version: u64, what: &str) -> Error {
    let name = commit_name(version);
    let place = table.location(&name).map_or(name, |place| place.to_string());
    Error::new(Kind::Failed, format!("the commit cannot be read: {what}"))
        .at(place)
        .advise("restore the table's log")
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

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

    /// A table of commits of 64 MiB, which counts the bytes that it holds.
    #[derive(Default)]
    struct LongCommits {
        held: Mutex<(u64, u64)>,
        files: usize,
    }

    impl TableFolder for LongCommits {
        fn names(&self, _: &str) -> Result<Vec<(String, u64)>> {
            let name = |at: u64| format!("{at:020}.json");
            Ok((0..8).map(|at| (name(at), if at < 6 { MAX_READ } else { 1 << 20 })).collect())
        }
        fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>> {
            let mut held = self.held.lock().unwrap();
            held.0 += most;
            held.1 = held.1.max(held.0);
            drop(held);
            std::thread::sleep(std::time::Duration::from_millis(50));
            self.held.lock().unwrap().0 -= most;
            let long = "x".repeat(100_000);
            let add = |file: usize| format!("{{\"add\":{{\"path\":\"{name}{file}{long}\",\"size\":1}}}}\n");
            let commit_info = "{\"commitInfo\":[[1,2],[3]]}\n";
            Ok(Some(
                (0..self.files).map(add).chain([commit_info.to_owned()]).collect::<String>().into_bytes(),
            ))
        }
        fn read_at(&self, _: &Location) -> Result<Option<Vec<u8>>> {
            Ok(None)
        }
        fn create(&self, _: &str, _: &[u8]) -> Result<bool> {
            Ok(false)
        }
        fn location(&self, name: &str) -> Result<Location> {
            Ok(Location::Path(name.into()))
        }
    }

    #[test]
    fn commits_that_are_read_at_once_and_files_that_are_held_have_a_limit() {
        let table = LongCommits::default();
        assert!(Snapshot::open(&table, None).unwrap_err().to_string().contains("no protocol"));
        assert_eq!(table.held.into_inner().unwrap().1, MAX_READ);
        let table = LongCommits { files: 200, ..LongCommits::default() };
        let error = Snapshot::open(&table, None).unwrap_err().to_string();
        assert!(error.contains("more than 512 MiB of memory"), "{error}");
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
