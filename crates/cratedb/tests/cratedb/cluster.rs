//! A cluster to load into, files to load, and queries for the result.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use sawmill_cratedb::{CrateDb, CrateOptions, CrateServer, Transport};
use sawmill_cratedb_standin::StandIn;
use sawmill_loader::{LoadOptions, LoadReport, Mode, Verification, load};
use sawmill_profile::Profile;
use sawmill_source::{Control, Error, ParquetFiles, Source};
use serde_json::Value;
use tempfile::TempDir;

/// The stand-in, or a real cluster.
pub struct Cluster {
    pub standin: Option<StandIn>,
    url: String,
    address: String,
    authorization: String,
    /// What the names of all of its tables begin with.
    prefix: String,
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

impl Cluster {
    /// A real cluster where one is named, else the stand-in. `SAWMILL_CRATEDB_URL` is the address of its HTTP
    /// endpoint with user and password where it asks for them; of `SAWMILL_CRATEDB_PG_URL` the port is used.
    pub fn any() -> Self {
        let Ok(named) = std::env::var("SAWMILL_CRATEDB_URL") else { return Self::standin() };
        let address = named.split_once("://").map_or(named.as_str(), |(_, rest)| rest);
        let address = address.split(['/', '?']).next().unwrap().to_owned();
        let pg = std::env::var("SAWMILL_CRATEDB_PG_URL").unwrap_or_default();
        let pg_port = pg
            .rsplit(':')
            .next()
            .and_then(|rest| rest.split(['/', '?']).next()?.parse::<u16>().ok())
            .unwrap_or(5432);
        let (credentials, host) = address.rsplit_once('@').unwrap_or(("", &address));
        let authorization = match credentials {
            "" => String::new(),
            user => {
                let user = if user.contains(':') { user.to_owned() } else { format!("{user}:") };
                format!("Authorization: Basic {}\r\n", BASE64_STANDARD.encode(user))
            }
        };
        Self {
            standin: None,
            url: format!("crate://{address}/doc?pg_port={pg_port}"),
            address: if host.contains(':') { host.to_owned() } else { format!("{host}:4200") },
            authorization,
            prefix: format!("sawmill_test_{}_{}", std::process::id(), NUMBER.fetch_add(1, Relaxed)),
        }
    }

    /// The stand-in.
    pub fn standin() -> Self {
        let standin = StandIn::start(1);
        let (url, address) = (standin.url(), format!("127.0.0.1:{}", standin.port(0)));
        Self { standin: Some(standin), url, address, authorization: String::new(), prefix: "t".to_owned() }
    }

    /// Host and port of its HTTP endpoint.
    pub fn http_address(&self) -> &str {
        &self.address
    }

    /// Host and port of its PostgreSQL wire.
    pub fn pg_address(&self) -> String {
        let (_, port) = self.url.rsplit_once("pg_port=").unwrap();
        let (host, _) = self.address.rsplit_once(':').unwrap();
        format!("{host}:{port}")
    }

    /// A table name that is unique among the tests.
    pub fn table(&self) -> String {
        format!("{}_{}", self.prefix, NUMBER.fetch_add(1, Relaxed))
    }

    pub fn target(&self, table: &str, options: CrateOptions) -> CrateDb {
        // Loads of other tests must not see this one's checkpoints dropped.
        let target = CrateDb::new(self.url.parse().unwrap(), table.parse().unwrap()).options(options);
        target.checkpoint_schema(self.checkpoints())
    }

    /// The schema of the records of loads.
    pub fn checkpoints(&self) -> String {
        format!("{}_checkpoints", self.prefix)
    }

    pub fn server(&self) -> CrateServer {
        self.url.parse().unwrap()
    }

    /// Runs a statement and returns its rows.
    pub fn sql(&self, statement: &str) -> Vec<Vec<Value>> {
        self.try_sql(statement).unwrap_or_else(|what| panic!("{statement}: {what}"))
    }

    pub fn try_sql(&self, statement: &str) -> Result<Vec<Vec<Value>>, String> {
        let shown = |error: &dyn std::fmt::Display| error.to_string();
        let body = serde_json::json!({ "stmt": statement }).to_string();
        let mut stream = TcpStream::connect(&self.address).map_err(|error| shown(&error))?;
        let head = format!(
            "POST /_sql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.authorization,
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).map_err(|error| shown(&error))?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).map_err(|error| shown(&error))?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (_, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
        let body: Value = serde_json::from_str(body).map_err(|error| format!("{error}: {body}"))?;
        match body.get("error") {
            Some(error) => Err(error.to_string()),
            None => Ok(serde_json::from_value(body["rows"].clone()).unwrap_or_default()),
        }
    }

    pub fn count(&self, table: &str) -> u64 {
        self.sql(&format!("REFRESH TABLE \"doc\".\"{table}\""));
        self.sql(&format!("SELECT count(*) FROM \"doc\".\"{table}\""))[0][0].as_u64().unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.standin.is_some() {
            return;
        }
        let named = format!(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema IN ('doc', '{}_checkpoints')",
            self.prefix
        );
        // What cannot be dropped stays: a panic would hide the one that may be under way.
        for row in self.try_sql(&named).unwrap_or_default() {
            let (Some(schema), Some(name)) = (row[0].as_str(), row[1].as_str()) else { continue };
            if schema != "doc" || name.starts_with(&format!("{}_", self.prefix)) {
                let _ = self.try_sql(&format!("DROP TABLE IF EXISTS \"{schema}\".\"{name}\""));
            }
        }
    }
}

/// A key from the row's place, over HTTP.
pub fn keyed(transport: Transport) -> CrateOptions {
    CrateOptions {
        row_key: Some("sawmill_row_key".into()),
        transport,
        replicas: Some("0".into()),
        ..CrateOptions::default()
    }
}

/// Small units and batches, so that much happens.
pub fn small() -> LoadOptions {
    LoadOptions {
        unit_rows: 500,
        batch_rows: 100,
        retries: 3,
        patience: Duration::ZERO,
        ..LoadOptions::default()
    }
}

pub fn run(source: &dyn Source, target: &CrateDb, options: &LoadOptions) -> Result<LoadReport, Error> {
    let cancel = AtomicBool::new(false);
    let profile = Profile::new();
    let phase = profile.phase("load");
    load(source, target, options, &Control::new(&cancel, &phase))
}

pub fn verify(source: &ParquetFiles, target: &CrateDb) -> Verification {
    with_control(|control| target.verify(source, &small(), control)).unwrap()
}

/// Calls with a flag that is never raised.
pub fn with_control<T>(call: impl FnOnce(&Control<'_>) -> T) -> T {
    let cancel = AtomicBool::new(false);
    let profile = Profile::new();
    let phase = profile.phase("test");
    call(&Control::new(&cancel, &phase))
}

/// Writes a batch with `group_rows` rows a row group.
pub fn write(path: &Path, batch: &RecordBatch, group_rows: usize) {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

/// A file of these columns, opened.
pub fn source_of(columns: Vec<(&str, ArrayRef)>, group_rows: usize) -> (TempDir, ParquetFiles) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.parquet");
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    write(&path, &RecordBatch::try_from_iter_with_nullable(columns).unwrap(), group_rows);
    let source = ParquetFiles::open(&[path]).unwrap();
    (directory, source)
}

/// `id bigint, name text`: ids from 0 on, every third name NULL.
pub fn people(rows: i64) -> (TempDir, ParquetFiles) {
    let names = (0..rows).map(|id| (id % 3 != 0).then(|| format!("name {id} \"ü\"")));
    source_of(
        vec![
            ("id", Arc::new(Int64Array::from_iter_values(0..rows))),
            ("name", Arc::new(StringArray::from_iter(names))),
        ],
        1000,
    )
}

/// `id bigint, name text` with `rows` rows from `first` on, in row groups of 1,000.
pub fn people_from(path: &Path, first: i64, rows: i64) {
    let ids = first..first + rows;
    let names = ids.clone().map(|id| (id % 3 != 0).then(|| format!("name {id}")));
    let columns: [(&str, ArrayRef, bool); 2] = [
        ("id", Arc::new(Int64Array::from_iter_values(ids)), true),
        ("name", Arc::new(StringArray::from_iter(names)), true),
    ];
    write(path, &RecordBatch::try_from_iter_with_nullable(columns).unwrap(), 1000);
}

/// Mode append.
pub fn append(target: CrateDb) -> CrateDb {
    target.mode(Mode::Append)
}
