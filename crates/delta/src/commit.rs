//! Writes a new version of a table: all files of a run, at once and once.
//!
//! The version's file is created only if its name is free. If another program was quicker, the log is
//! read again, and the commit follows that program's. The application's name is part of the commit, so that a
//! run that was killed after it finds that it is done.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow_schema::Schema;
use sawmill_profile::{Error, Kind, Result};
use serde_json::json;

use crate::action::{Action, Add, Format, Metadata, Protocol, Remove, Transaction};
use crate::log_name::commit_name;
use crate::partition::has_plain_text;
use crate::protocol::check_writable;
use crate::schema::{DeltaField, field_fits, from_arrow, has_timestamp_ntz, schema_string};
use crate::snapshot::Snapshot;
use crate::table_folder::TableFolder;

/// How often other programs may be quicker before it is an error.
const ATTEMPTS: u32 = 100;

/// What happens to the files that the table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// They stay.
    Append,
    /// They are removed from the new version. Earlier versions keep them.
    Overwrite,
}

/// A file to add.
#[derive(Clone, Debug, Default)]
pub struct NewFile {
    /// Its path, relative to the table, with slashes.
    pub path: String,
    /// The values of the partition columns; `None` is null.
    pub partition_values: BTreeMap<String, Option<String>>,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its rows.
    pub rows: u64,
}

/// A new version of a table, or the first.
#[derive(Clone, Debug)]
pub struct Commit {
    application: String,
    fields: Vec<DeltaField>,
    partition_columns: Vec<String>,
    change: Change,
    files: Vec<NewFile>,
}

/// What became of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The version that has the files; if they were committed before, the newest version.
    pub version: u64,
    /// Whether they were committed before.
    pub already: bool,
}

impl Commit {
    /// Returns a commit of files with these columns. `application` is the same for the same work: an append is
    /// made once for each.
    ///
    /// # Errors
    /// A column of a type that Delta does not have.
    pub fn new(application: &str, schema: &Schema, change: Change, files: Vec<NewFile>) -> Result<Self> {
        let refused = |what: String| {
            Error::new(Kind::Failed, what)
                .advise("change the column's type, or write plain files without --table-format")
        };
        let fields = schema.fields().iter().map(|field| from_arrow(field)).collect::<Result<_, _>>();
        let fields = fields.map_err(refused)?;
        let application = application.to_owned();
        Ok(Self { application, fields, partition_columns: Vec::new(), change, files })
    }

    /// Sets the columns by which the files are divided into folders.
    ///
    /// # Errors
    /// A column that does not exist, or whose values have another text in the log than in folders' names.
    pub fn partitioned_by(mut self, columns: &[String], schema: &Schema) -> Result<Self> {
        for column in columns {
            let field = schema.field_with_name(column).map_err(|_| {
                Error::new(Kind::Failed, format!("the dataset has no column {column:?}"))
                    .advise("name a column of the dataset")
            })?;
            if !has_plain_text(field.data_type()) {
                let what =
                    format!("a Delta table cannot be partitioned by {column:?}: {}", field.data_type());
                return Err(Error::new(Kind::Failed, what)
                    .advise("partition by a column of text, integers, dates or booleans"));
            }
        }
        self.partition_columns = columns.to_vec();
        Ok(self)
    }

    /// Sets the files.
    pub fn with_files(self, files: Vec<NewFile>) -> Self {
        Self { files, ..self }
    }

    /// Checks that the table, if it exists, takes the files, and returns what [`make`](Self::make) would if the
    /// application has committed already.
    ///
    /// # Errors
    /// Other columns than the table's, or a table that demands what this crate lacks.
    pub fn check(&self, table: &dyn TableFolder) -> Result<Option<Committed>> {
        let Some(snapshot) = Snapshot::open(table, None)? else { return Ok(None) };
        self.fits(&snapshot, &table.location("")?.to_string())?;
        // Whether an overwrite is done depends on the files.
        let is_done = self.change == Change::Append && snapshot.has_committed(&self.application);
        Ok(is_done.then_some(Committed { version: snapshot.version, already: true }))
    }

    /// Commits.
    ///
    /// # Errors
    /// Errors of [`check`](Self::check); the version cannot be written.
    pub fn make(&self, table: &dyn TableFolder) -> Result<Committed> {
        let place = table.location("")?.to_string();
        for attempt in 0..ATTEMPTS {
            let snapshot = Snapshot::open(table, None)?;
            if let Some(snapshot) = &snapshot {
                self.fits(snapshot, &place)?;
                if self.is_done(snapshot) {
                    return Ok(Committed { version: snapshot.version, already: true });
                }
            }
            let version = snapshot.as_ref().map_or(0, |snapshot| snapshot.version + 1);
            let lines = self.lines(snapshot.as_ref())?;
            if table.create(&commit_name(version), &lines)? {
                return Ok(Committed { version, already: false });
            }
            sleep(Duration::from_millis(u64::from(attempt.min(20)) * 10));
        }
        Err(Error::new(Kind::Failed, "other programs commit versions without a pause")
            .at(place)
            .advise("run the command again when they have ended"))
    }

    fn is_done(&self, snapshot: &Snapshot) -> bool {
        match self.change {
            Change::Append => snapshot.has_committed(&self.application),
            Change::Overwrite => {
                let there: BTreeSet<&str> = snapshot.files.iter().map(|file| file.path.as_str()).collect();
                let wanted: BTreeSet<&str> = self.files.iter().map(|file| file.path.as_str()).collect();
                snapshot.has_committed(&self.application) && there == wanted
            }
        }
    }

    /// Checks that the files fit into the table.
    fn fits(&self, snapshot: &Snapshot, place: &str) -> Result<()> {
        let refused = |what: String| {
            Err(Error::new(Kind::Failed, what)
                .at(place)
                .advise("write to another folder, or generate with the table's columns"))
        };
        if self.partition_columns != snapshot.partition_columns {
            return refused(format!(
                "the table is partitioned by {:?}, the files by {:?}",
                snapshot.partition_columns, self.partition_columns
            ));
        }
        let mut theirs = snapshot.fields.iter();
        for own in &self.fields {
            match theirs.next() {
                Some(field) if field_fits(own, field) => {}
                Some(field) => {
                    return refused(format!(
                        "column {:?} of the files does not fit into column {:?} of the table",
                        own.name, field.name
                    ));
                }
                None => return refused(format!("the table has no column {:?}", own.name)),
            }
        }
        if let Some(more) = theirs.next() {
            return refused(format!("the files have no column {:?}", more.name));
        }
        let removes = self.change == Change::Overwrite;
        check_writable(&snapshot.protocol, &snapshot.metadata, &snapshot.fields, removes, place)
    }

    /// Returns the entries of the version after `before`.
    fn lines(&self, before: Option<&Snapshot>) -> Result<Vec<u8>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let mut actions =
            vec![Action { commit_info: Some(self.information(before, now)), ..Action::default() }];
        if before.is_none() {
            actions.push(Action { protocol: Some(self.protocol()), ..Action::default() });
            actions.push(Action { meta_data: Some(self.metadata(now)?), ..Action::default() });
        }
        let txn = Transaction { app_id: self.application.clone(), version: 1, last_updated: Some(now) };
        actions.push(Action { txn: Some(txn), ..Action::default() });
        let kept: BTreeSet<&str> = self.files.iter().map(|file| file.path.as_str()).collect();
        if let (Change::Overwrite, Some(before)) = (self.change, before) {
            let removed = before.files.iter().zip(&before.adds);
            let removed = removed.filter(|(file, _)| !kept.contains(file.path.as_str()));
            actions.extend(
                removed.map(|(_, add)| Action { remove: Some(remove_of(add, now)), ..Action::default() }),
            );
        }
        let add = |file: &NewFile| Action { add: Some(add_of(file, now)), ..Action::default() };
        actions.extend(self.files.iter().map(add));
        let mut lines = Vec::new();
        for action in &actions {
            serde_json::to_writer(&mut lines, action)
                .map_err(|error| Error::new(Kind::Failed, error.to_string()))?;
            lines.push(b'\n');
        }
        Ok(lines)
    }

    fn information(&self, before: Option<&Snapshot>, now: i64) -> serde_json::Value {
        let (rows, bytes) =
            self.files.iter().fold((0, 0), |(rows, bytes), file| (rows + file.rows, bytes + file.bytes));
        let mode = if self.change == Change::Append { "Append" } else { "Overwrite" };
        let partitions = json!(self.partition_columns).to_string();
        json!({
            "timestamp": now,
            "operation": "WRITE",
            "operationParameters": { "mode": mode, "partitionBy": partitions },
            "operationMetrics": {
                "numFiles": self.files.len().to_string(),
                "numOutputRows": rows.to_string(),
                "numOutputBytes": bytes.to_string(),
            },
            "readVersion": before.map(|before| before.version),
            "isBlindAppend": self.change == Change::Append,
            "engineInfo": concat!("sawmill/", env!("CARGO_PKG_VERSION")),
        })
    }

    /// What readers and writers must know for these columns: as little as possible.
    fn protocol(&self) -> Protocol {
        let has_ntz = self.fields.iter().any(|field| has_timestamp_ntz(&field.data_type));
        let features = has_ntz.then(|| vec!["timestampNtz".to_owned()]);
        let (min_reader_version, min_writer_version) = if has_ntz { (3, 7) } else { (1, 2) };
        let reader_features = features.clone();
        Protocol { min_reader_version, min_writer_version, reader_features, writer_features: features }
    }

    fn metadata(&self, now: i64) -> Result<Metadata> {
        Ok(Metadata {
            id: unique_id(),
            name: None,
            format: Format::default(),
            schema_string: schema_string(self.fields.clone())
                .map_err(|what| Error::new(Kind::Failed, what))?,
            partition_columns: self.partition_columns.clone(),
            configuration: BTreeMap::new(),
            created_time: Some(now),
        })
    }
}

fn add_of(file: &NewFile, now: i64) -> Add {
    Add {
        path: encoded(&file.path),
        partition_values: file.partition_values.clone(),
        size: file.bytes,
        modification_time: now,
        data_change: true,
        stats: Some(json!({ "numRecords": file.rows }).to_string()),
        deletion_vector: None,
    }
}

fn remove_of(add: &Add, now: i64) -> Remove {
    Remove {
        path: add.path.clone(),
        deletion_timestamp: now,
        data_change: true,
        extended_file_metadata: true,
        partition_values: add.partition_values.clone(),
        size: Some(add.size),
        deletion_vector: add.deletion_vector.clone(),
    }
}

/// Returns a path with percent-encoding.
fn encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b'=' => {
                text.push(byte.into());
            }
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

/// Returns a random UUID of version 4. The standard library draws the keys of its hash tables at random.
fn unique_id() -> String {
    let half = || RandomState::new().build_hasher().finish();
    let (high, low) = (half(), half());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field};

    use super::*;
    use crate::table_folder::LocalTable;

    fn schema() -> Schema {
        Schema::new(vec![Field::new("id", DataType::Int64, true), Field::new("kind", DataType::Utf8, true)])
    }

    fn file(path: &str) -> NewFile {
        NewFile { path: path.to_owned(), bytes: 10, rows: 3, ..NewFile::default() }
    }

    fn commit(application: &str, change: Change, path: &str) -> Commit {
        Commit::new(application, &schema(), change, vec![file(path)]).unwrap()
    }

    fn paths(table: &LocalTable, version: Option<u64>) -> Vec<String> {
        Snapshot::open(table, version).unwrap().unwrap().files.into_iter().map(|file| file.path).collect()
    }

    #[test]
    fn versions_add_and_remove_files_and_earlier_ones_stay() {
        let directory = tempfile::tempdir().unwrap();
        let table = LocalTable::new(directory.path());
        assert!(Snapshot::open(&table, None).unwrap().is_none());
        assert_eq!(commit("a", Change::Append, "a b%.parquet").make(&table).unwrap().version, 0);
        assert_eq!(commit("b", Change::Append, "ü/b.parquet").make(&table).unwrap().version, 1);
        assert_eq!(paths(&table, None), ["a b%.parquet", "ü/b.parquet"]);
        assert_eq!(commit("c", Change::Overwrite, "c.parquet").make(&table).unwrap().version, 2);
        assert_eq!(paths(&table, None), ["c.parquet"]);
        assert_eq!(paths(&table, Some(0)), ["a b%.parquet"]);
        assert!(Snapshot::open(&table, Some(3)).unwrap_err().to_string().contains("newest is 2"));
    }

    #[test]
    fn a_version_of_a_log_that_lacks_billions_of_commits_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let table = LocalTable::new(directory.path());
        table.create(&commit_name(9_000_000_000_000_000_000), b"{}").unwrap();
        let error = Snapshot::open(&table, None).unwrap_err().to_string();
        assert!(error.contains("lacks the commit 0"), "{error}");
    }

    #[test]
    fn the_same_work_is_committed_once() {
        let directory = tempfile::tempdir().unwrap();
        let table = LocalTable::new(directory.path());
        let append = commit("a", Change::Append, "a.parquet");
        assert_eq!(append.check(&table).unwrap(), None);
        append.make(&table).unwrap();
        assert_eq!(append.make(&table).unwrap(), Committed { version: 0, already: true });
        let overwrite = commit("b", Change::Overwrite, "b.parquet");
        overwrite.make(&table).unwrap();
        assert_eq!(overwrite.make(&table).unwrap(), Committed { version: 1, already: true });
        // Its files were removed by another command: it is still done.
        assert_eq!(append.check(&table).unwrap(), Some(Committed { version: 1, already: true }));
        // After another append the overwrite has something to do again.
        commit("c", Change::Append, "c.parquet").make(&table).unwrap();
        assert_eq!(overwrite.make(&table).unwrap(), Committed { version: 3, already: false });
        assert_eq!(paths(&table, None), ["b.parquet"]);
    }

    #[test]
    fn of_commits_at_the_same_time_none_is_lost() {
        let directory = tempfile::tempdir().unwrap();
        let table = LocalTable::new(directory.path());
        std::thread::scope(|scope| {
            for run in 0..8 {
                let table = &table;
                scope.spawn(move || {
                    let name = format!("{run}.parquet");
                    commit(&format!("run {run}"), Change::Append, &name).make(table).unwrap();
                });
            }
        });
        assert_eq!(paths(&table, None).len(), 8);
        assert_eq!(Snapshot::open(&table, None).unwrap().unwrap().version, 7);
    }

    #[test]
    fn files_with_other_columns_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let table = LocalTable::new(directory.path());
        commit("a", Change::Append, "a.parquet").make(&table).unwrap();
        let other = Schema::new(vec![Field::new("id", DataType::Int32, true)]);
        let other = Commit::new("b", &other, Change::Append, vec![file("b.parquet")]).unwrap();
        assert!(other.make(&table).unwrap_err().to_string().contains("does not fit"));
        let partitioned = commit("b", Change::Append, "b.parquet");
        let partitioned = partitioned.partitioned_by(&["kind".to_owned()], &schema()).unwrap();
        assert!(partitioned.check(&table).unwrap_err().to_string().contains("partitioned by"));
    }
}
