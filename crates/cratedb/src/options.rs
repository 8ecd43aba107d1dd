//! The options of a load into CrateDB: the table, the types, the transport, and what happens to rows that
//! the server refuses.

use std::path::PathBuf;

use serde::Serialize;

/// How rows reach the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// The PostgreSQL wire where the server answers there, else HTTP.
    #[default]
    Auto,
    /// `POST /_sql` with `bulk_args`.
    Http,
    /// `INSERT ... SELECT FROM UNNEST(...)` with binary array parameters over the PostgreSQL wire.
    Pg,
}

/// How structs are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Objects {
    /// `OBJECT(STRICT) AS (...)`: exactly these fields.
    #[default]
    Strict,
    /// `OBJECT(DYNAMIC) AS (...)`: these fields, and later ones are added.
    Dynamic,
    /// `OBJECT(IGNORED)`: stored as it is, neither typed nor indexed.
    Ignored,
}

/// How timestamps finer than a millisecond are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Timestamps {
    /// `TIMESTAMP`; a value that is not a whole millisecond is an error.
    #[default]
    Error,
    /// `TIMESTAMP`; digits below a millisecond are cut (towards the past).
    Truncate,
    /// `TEXT` in ISO 8601, with all digits.
    Text,
    /// `BIGINT`: the microseconds or nanoseconds since 1970 that the file holds.
    Bigint,
}

/// How dates are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dates {
    /// `TIMESTAMP WITHOUT TIME ZONE` at midnight.
    #[default]
    Timestamp,
    /// `TEXT` in ISO 8601.
    Text,
}

/// How times of day are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Times {
    /// `TEXT` in ISO 8601.
    #[default]
    Text,
    /// `BIGINT`: the file's units since midnight.
    Bigint,
}

/// How bytes are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Binary {
    /// `TEXT` in base64 (RFC 4648, with padding).
    #[default]
    Base64,
    /// `TEXT` in hexadecimal digits.
    Hex,
}

/// How text over 32,766 bytes is treated. That is Lucene's limit for the index and the column store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LongText {
    /// An error.
    #[default]
    Error,
    /// Text columns of a new table get neither index nor column store, and take any length.
    Noindex,
}

/// The options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CrateOptions {
    /// How rows reach the server.
    pub transport: Transport,
    /// How structs are stored.
    pub objects: Objects,
    /// How fine timestamps are stored.
    pub timestamps: Timestamps,
    /// How dates are stored.
    pub dates: Dates,
    /// How times of day are stored.
    pub times: Times,
    /// How bytes are stored.
    pub binary: Binary,
    /// How long text is treated.
    pub long_text: LongText,
    /// Number of shards of a new table; `None` for the server's default.
    pub shards: Option<u32>,
    /// `number_of_replicas` of a new table, such as `0` or `0-1`; `None` for the server's default.
    pub replicas: Option<String>,
    /// Further parameters of a new table, such as `mapping.total_fields.limit`: names and values.
    pub with: Vec<(String, String)>,
    /// A column, or `date_trunc('month', column)` and the like: what a new table is partitioned by.
    pub partition_by: Option<String>,
    /// Columns with a type that no Arrow type means, such as `geo_point` or `float_vector(768)`: names and types.
    pub types: Vec<(String, String)>,
    /// Columns of a new table's primary key.
    pub primary_key: Vec<String>,
    /// Columns of a new table that are not indexed.
    pub no_index: Vec<String>,
    /// Keep the columns of a new table out of the column store, where the type allows that.
    pub no_columnstore: bool,
    /// Name of an extra column that holds each row's place in the source and is the primary key, so that
    /// any batch can be repeated.
    pub row_key: Option<String>,
    /// Name of an extra column that the server fills with the time at which it inserts a row.
    pub loaded_at: Option<String>,
    /// Accept rows without a key: a batch of an interrupted load may be in the table twice.
    pub at_least_once: bool,
    /// The file for rejected rows; without it the first one ends the load.
    pub rejects: Option<PathBuf>,
    /// End the load when more rows than this are rejected.
    pub max_rejects: Option<u64>,
    /// Compress request bodies.
    pub gzip: bool,
    /// Match columns of an existing table by position, not by name.
    pub by_position: bool,
    /// Rows of a request; 0 for the default of 20,000.
    pub batch_rows: usize,
}

impl CrateOptions {
    /// Rows of a request: 20,000 is where a real server was fastest (`docs/loading-cratedb.md`).
    pub fn request_rows(&self) -> usize {
        if self.batch_rows == 0 { 20_000 } else { self.batch_rows }
    }

    /// Whether a new table can lose acknowledged rows in a crash.
    pub(crate) fn is_asynchronous(&self) -> bool {
        let durability = self.with.iter().find(|(name, _)| name.eq_ignore_ascii_case("translog.durability"));
        durability.is_some_and(|(_, value)| value.eq_ignore_ascii_case("async"))
    }
}
