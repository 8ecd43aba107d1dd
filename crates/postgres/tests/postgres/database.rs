//! A database for each test, and loads into it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use postgres::types::{FromSql, Type};
use postgres::{Client, NoTls};
use sawmill_loader::{LoadOptions, LoadReport, load};
use sawmill_localpg::LocalPg;
use sawmill_postgres::Postgres;
use sawmill_profile::Profile;
use sawmill_source::{Control, Result, Source};

use crate::shared_server::SharedDatabase;

pub struct Database {
    pub url: String,
    _owner: Arc<Owner>,
}

/// What lives as long as a database.
#[allow(dead_code, reason = "they are only dropped")]
enum Owner {
    Shared(SharedDatabase),
    Alone(LocalPg),
}

impl Database {
    /// An empty database.
    pub fn new() -> Self {
        let database = SharedDatabase::new();
        Self { url: database.url(), _owner: Arc::new(Owner::Shared(database)) }
    }

    /// The database of a separate server, for tests that count over a whole server.
    pub fn alone() -> Self {
        let server = LocalPg::start().expect("a server starts");
        Self { url: server.url(), _owner: Arc::new(Owner::Alone(server)) }
    }

    /// Another database on the same server.
    pub fn with_url(&self, url: String) -> Self {
        Self { url, _owner: Arc::clone(&self._owner) }
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.url, NoTls).unwrap()
    }

    pub fn target(&self, table: &str) -> Postgres {
        Postgres::new(self.url.parse().unwrap(), table.parse().unwrap())
    }

    /// Whether a table with this name exists.
    pub fn has(&self, table: &str) -> bool {
        self.client().query_one("SELECT to_regclass($1) IS NOT NULL", &[&table]).unwrap().get(0)
    }

    pub fn count(&self, table: &str) -> i64 {
        self.client().query_one(&format!("SELECT count(*) FROM {table}"), &[]).unwrap().get(0)
    }

    /// Runs a test that loads `path` into this database, in a child process, and kills it when it has
    /// committed `units` more units, `rounds` times. Returns how many processes the kill ended.
    pub fn kill_loads(
        &self,
        test: &str,
        path: &Path,
        more: &[(&str, &str)],
        rounds: i64,
        units: impl Fn(i64) -> i64,
    ) -> u32 {
        let committed = || if self.has("_sawmill.units") { self.count("_sawmill.units") } else { 0 };
        let mut killed = 0;
        for round in 0..rounds {
            let before = committed();
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", test])
                .env("SAWMILL_TEST_URL", &self.url)
                .env("SAWMILL_TEST_FILE", path)
                .envs(more.iter().copied())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            while committed() < before + units(round) && child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            child.kill().unwrap();
            killed += u32::from(!child.wait().unwrap().success());
        }
        killed
    }

    /// Runs a load while the connections that copy into this database are killed five times, after a pause
    /// each.
    pub fn killing_connections(
        &self,
        pause: Duration,
        load: impl FnOnce() -> Result<LoadReport>,
    ) -> Result<LoadReport> {
        const KILL: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE application_name = 'sawmill' AND datname = current_database() AND query ILIKE 'copy%'";
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = self.client();
                for _ in 0..5 {
                    std::thread::sleep(pause);
                    if done.load(Relaxed) {
                        break;
                    }
                    client.query_one(KILL, &[]).unwrap();
                }
            });
            let report = load();
            done.store(true, Relaxed);
            report
        })
    }

    /// All rows as the bytes that the server sends, sorted.
    pub fn rows(&self, query: &str) -> Vec<Vec<Option<Vec<u8>>>> {
        let mut rows: Vec<Vec<Option<Vec<u8>>>> = self
            .client()
            .query(query, &[])
            .unwrap()
            .iter()
            .map(|row| (0..row.len()).map(|i| row.get::<_, Option<Raw>>(i).map(|raw| raw.0)).collect())
            .collect();
        rows.sort();
        rows
    }
}

/// A value's bytes on the wire.
pub struct Raw(pub Vec<u8>);

impl<'a> FromSql<'a> for Raw {
    fn from_sql(
        _: &Type,
        raw: &'a [u8],
    ) -> std::result::Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Small blocks, batches and units, so that little data makes many of each.
pub fn small() -> LoadOptions {
    LoadOptions {
        batch_rows: 100,
        batch_bytes: 16 * 1024,
        unit_rows: 500,
        verify: true,
        ..LoadOptions::default()
    }
}

/// Runs a load without cancelling it.
pub fn run(source: &dyn Source, target: &Postgres, options: &LoadOptions) -> Result<LoadReport> {
    let cancel = AtomicBool::new(false);
    let phase = Profile::new().phase("load");
    load(source, target, options, &Control::new(&cancel, &phase))
}

/// Calls `work` with a control that is never cancelled.
pub fn with_control<T>(work: impl FnOnce(&Control<'_>) -> T) -> T {
    let cancel = AtomicBool::new(false);
    let phase = Profile::new().phase("test");
    work(&Control::new(&cancel, &phase))
}
