//! The entries of a table's log, as far as Sawmill uses them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A line of a commit, or a row of a checkpoint: one of its fields is set.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Action {
    /// Not read: nothing depends on it.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub commit_info: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta_data: Option<Metadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub txn: Option<Transaction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remove: Option<Remove>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add: Option<Add>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sidecar: Option<Sidecar>,
}

impl Action {
    /// Whether it has a field that decides what is in the table.
    pub(crate) fn is_used(&self) -> bool {
        let Self { protocol, meta_data, txn, remove, add, sidecar, .. } = self;
        let of_table = protocol.is_some() || meta_data.is_some() || txn.is_some();
        of_table || remove.is_some() || add.is_some() || sidecar.is_some()
    }
}

/// What readers and writers must know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Protocol {
    pub min_reader_version: i32,
    pub min_writer_version: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader_features: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer_features: Option<Vec<String>>,
}

/// The schema, the partition columns and the settings of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default)]
    pub format: Format,
    pub schema_string: String,
    #[serde(default)]
    pub partition_columns: Vec<String>,
    #[serde(default)]
    pub configuration: BTreeMap<String, Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_time: Option<i64>,
}

/// How the files are stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Format {
    pub provider: String,
    #[serde(default)]
    pub options: BTreeMap<String, Option<String>>,
}

impl Default for Format {
    fn default() -> Self {
        Self { provider: "parquet".to_owned(), options: BTreeMap::new() }
    }
}

/// How far an application has come.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Transaction {
    pub app_id: String,
    pub version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<i64>,
}

/// A file that belongs to the table from this version on.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Add {
    /// Relative to the table, or absolute; percent-encoded.
    pub path: String,
    #[serde(default)]
    pub partition_values: BTreeMap<String, Option<String>>,
    pub size: u64,
    #[serde(default)]
    pub modification_time: i64,
    #[serde(default)]
    pub data_change: bool,
    /// Not read: nothing depends on them.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub stats: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<DeletionVector>,
}

impl Add {
    /// Estimates its memory, and that of the file of the snapshot that is made of it.
    pub(crate) fn memory(&self) -> usize {
        let of_value = |(name, value): (&String, &Option<String>)| {
            500 + name.len() + 4 * value.as_ref().map_or(0, String::len)
        };
        let vector = self.deletion_vector.as_ref().map_or(0, |vector| 3 * vector.path_or_inline_dv.len());
        let values = if self.partition_values.is_empty() { 0 } else { 700 };
        900 + 4 * self.path.len()
            + vector
            + values
            + self.partition_values.iter().map(of_value).sum::<usize>()
    }
}

/// A file that no longer belongs to the table.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Remove {
    pub path: String,
    #[serde(default)]
    pub deletion_timestamp: i64,
    #[serde(default)]
    pub data_change: bool,
    #[serde(default)]
    pub extended_file_metadata: bool,
    #[serde(default)]
    pub partition_values: BTreeMap<String, Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<DeletionVector>,
}

/// Which rows of a file are deleted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeletionVector {
    pub storage_type: String,
    pub path_or_inline_dv: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<i64>,
    pub size_in_bytes: i64,
    pub cardinality: i64,
}

impl DeletionVector {
    /// What tells it from others of the same file.
    pub(crate) fn id(&self) -> (String, String, Option<i64>) {
        (self.storage_type.clone(), self.path_or_inline_dv.clone(), self.offset)
    }
}

/// A file of a checkpoint that holds more of its entries.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sidecar {
    pub path: String,
}
