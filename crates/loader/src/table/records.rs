//! Records of the loads into a table, and what forgetting them removes.

use std::collections::BTreeMap;

use sawmill_source::SourceFile;
use serde::{Deserialize, Serialize};

use crate::engine::load::LoadOptions;
use crate::table::schema_change::ColumnChanges;

/// How a load was run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadFacts {
    /// The version of Sawmill that wrote the record last.
    pub version: Option<String>,
    /// The command, without addresses and passwords.
    pub command: Option<String>,
    /// Duration of the run that completed the load.
    pub seconds: Option<f64>,
    /// The load's changes for columns in which its files and the table differed.
    #[serde(skip_serializing_if = "ColumnChanges::is_empty")]
    pub columns: ColumnChanges,
    /// The mode as the user named it, if the record has a more general mode: insert, history, or an append whose rows
    /// replace a file's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<String>,
    /// Whether the same merge leaves rows of later ones as they are, if it is repeated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keeps_newer: bool,
    /// The columns of the table that the load fills, if they are not recorded elsewhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filled: Vec<String>,
    /// Whether the rows replace the file's earlier rows, which are deleted first.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub replaces: bool,
    /// The order of the rows over all files; empty for file order. With an order, units have rows of any files.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub order: String,
    /// Units that were committed before other records were left out. The plan keeps them as they are: file, row group,
    /// first row and number of rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept_units: Vec<(u32, u32, u64, u64)>,
    /// Whether a value in the files ended the last run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub value_refused: bool,
    /// Whether the load has made the table that it merges rows into.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub made_table: bool,
    /// Records of text that could not be read and were left out, by file. They also count as rejected.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub records_left_out: BTreeMap<String, u64>,
}

impl LoadFacts {
    /// The facts of a new or resumed load.
    pub fn new(command: Option<&str>, columns: ColumnChanges) -> Self {
        let version = Some(env!("CARGO_PKG_VERSION").to_owned());
        Self { version, command: command.map(str::to_owned), columns, ..Self::default() }
    }

    /// The same facts for a load of these files, with the records that the options leave out.
    pub fn leaving_out(self, options: &LoadOptions, files: &[SourceFile]) -> Self {
        let records = |file: &SourceFile| {
            Some((file.name.clone(), options.records_left_out.get(&file.name)?.len() as u64))
        };
        Self { records_left_out: files.iter().filter_map(records).collect(), ..self }
    }

    /// The same facts once the load of these files is complete, after a run of this duration.
    pub fn after(
        &self,
        duration: std::time::Duration,
        columns: ColumnChanges,
        (options, files): (&LoadOptions, &[SourceFile]),
    ) -> Self {
        let command = options.command.as_deref().or(self.command.as_deref());
        let seconds = Some(duration.as_millis() as f64 / 1000.0);
        let kept = Self { value_refused: false, made_table: false, seconds, ..self.clone() };
        let Self { version, command, columns, .. } = Self::new(command, columns);
        Self { version, command, columns, ..kept }.leaving_out(options, files)
    }

    /// The facts as records hold them.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a record's facts; unreadable ones are unknown.
    pub fn from_text(text: Option<&str>) -> Self {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
}

/// A load according to the target's records.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadStatus {
    /// The table, with its schema.
    pub table: String,
    /// The mode: create, append, truncate, replace, upsert, insert or history.
    pub mode: String,
    /// The files, in order.
    pub files: Vec<FileStatus>,
    /// When it began, UTC, RFC 3339.
    pub begun: String,
    /// When it was completed; `None` while rows are missing.
    pub completed: Option<String>,
    /// Committed units.
    pub units: u64,
    /// Committed rows.
    pub rows: u64,
    /// Rejected rows, and records of text that were left out.
    pub rejected: u64,
    /// Whether the target still has the table.
    pub table_exists: bool,
    /// How it was run.
    #[serde(flatten)]
    pub facts: LoadFacts,
    /// Batches that an audit counted in the table when the load was completed; `None` where rows are not
    /// accounted for by batches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audited_batches: Option<u64>,
    /// Whether a process is working on it now.
    pub running: bool,
    /// Its identifier in the records.
    pub load_id: String,
}

impl LoadStatus {
    /// The status completed from its facts: the mode as the user named it, left-out records counted as rejected, and
    /// which numbers are known for each file.
    pub fn with_facts(mut self) -> Self {
        if let Some(merge) = self.facts.merge.take() {
            self.mode = merge;
        }
        let is_mixed = !self.facts.order.is_empty() && self.files.len() > 1;
        for file in &mut self.files {
            let left_out = self.facts.records_left_out.get(&file.name).copied().unwrap_or_default();
            self.rejected += left_out;
            let of_file = |count: Option<u64>| count.filter(|_| !is_mixed);
            file.rows = of_file(file.rows);
            file.rejected = of_file(file.rejected).map(|rejected| rejected + left_out);
        }
        self
    }
}

/// A file of a load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileStatus {
    /// Its name.
    pub name: String,
    /// Its length; `None` for generated rows.
    pub bytes: Option<u64>,
    /// Identifies its content: the hash of a text file's bytes, or of a Parquet file's footer.
    pub hash: String,
    /// Its committed rows; `None` if the load put the rows of all files in order, so that its units mix them.
    pub rows: Option<u64>,
    /// Its rejected rows, and records of text that were left out; `None` as for [`rows`](Self::rows).
    pub rejected: Option<u64>,
}

impl FileStatus {
    /// A file by its name and its fingerprint.
    pub fn new(name: String, fingerprint: &str, rows: u64, rejected: u64) -> Self {
        let measured =
            fingerprint.split_once(':').and_then(|(length, hash)| Some((length.parse().ok()?, hash)));
        let (bytes, hash) = measured.map_or((None, fingerprint), |(bytes, hash)| (Some(bytes), hash));
        Self { name, bytes, hash: hash.to_owned(), rows: Some(rows), rejected: Some(rejected) }
    }
}

/// The records and tables that forgetting a load removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Forgotten {
    /// Records of loads into the table.
    pub loads: u64,
    /// The unfinished table of a load in mode create.
    pub staging_dropped: bool,
    /// The table itself.
    pub table_dropped: bool,
}
