//! Servers that restart without commits that they had confirmed, since they did not wait for their log.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, ListArray, RecordBatch, StringArray};
use postgres::{Client, NoTls};
use sawmill_loader::{LoadOptions, LoadReport, Mode, RejectOptions, TableName, load};
use sawmill_localpg::LocalPg;
use sawmill_postgres::{Postgres, PostgresTables, Strategy, TableKind, forget};
use sawmill_profile::{Phase, Profile};
use sawmill_source::{Control, Kind, ParquetFiles, Result, Source};

use crate::database::{run, small, with_control};
use crate::fixture::{people, write};
use crate::slowed::{Slowed, halt};

const ROWS: usize = 40_000;

/// A server whose disk has only the commits that waited for it.
struct Forgetful {
    server: LocalPg,
    directory: tempfile::TempDir,
}

impl Forgetful {
    fn start() -> Self {
        let mut builder = LocalPg::builder();
        for (setting, value) in [
            ("synchronous_commit", "off"),
            ("wal_writer_delay", "10s"),
            ("wal_buffers", "64MB"),
            ("bgwriter_lru_maxpages", "0"),
            ("checkpoint_timeout", "1h"),
            ("autovacuum", "off"),
        ] {
            builder = builder.setting(setting, value);
        }
        let forgetful = Self { server: builder.start().unwrap(), directory: tempfile::tempdir().unwrap() };
        let table = "CREATE TABLE others (id bigint, name text, amount float8)";
        forgetful.client().batch_execute(table).unwrap();
        forgetful
    }

    /// A connection, as soon as the server has recovered.
    fn client(&self) -> Client {
        let connect = || Client::connect(&self.server.url(), NoTls);
        let tries = (0..500).find_map(|_| {
            connect().ok().or_else(|| {
                std::thread::sleep(Duration::from_millis(20));
                None
            })
        });
        tries.unwrap_or_else(|| connect().unwrap())
    }

    fn target(&self, table: &str) -> Postgres {
        Postgres::new(self.server.url().parse().unwrap(), table.parse().unwrap())
    }

    /// The process that writes the log for commits that do not wait for it.
    fn log_writer(&self) -> i32 {
        let sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'";
        for _ in 0..1000 {
            if let Some(row) = self.client().query_opt(sql, &[]).unwrap() {
                return row.get(0);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the server has no walwriter");
    }

    fn file(&self) -> PathBuf {
        let path = self.directory.path().join("people.parquet");
        people(&path, 0, ROWS, 10_000);
        path
    }

    /// Loads, and crashes the server as soon as this many rows are counted. The load reads no further until
    /// the server has crashed.
    fn crashing_at<T: Send>(
        &self,
        source: &dyn Source,
        rows: u64,
        loading: impl FnOnce(&dyn Source, &Phase) -> T + Send,
    ) -> T {
        let (phase, writer) = (Profile::new().phase("load"), self.log_writer().to_string());
        let (crashed, mut session) = (AtomicBool::new(false), self.client());
        let wait = halt(&phase, rows, &crashed);
        let source = Slowed::new(source, &wait);
        let signal =
            |name: &str| assert!(Command::new("kill").args([name, &writer]).status().unwrap().success());
        signal("-STOP");
        std::thread::scope(|scope| {
            let loading = scope.spawn(|| loading(&source, &phase));
            while phase.rows() < rows && !loading.is_finished() {
                std::thread::sleep(Duration::from_micros(200));
            }
            // The others follow, and the contents of memory are lost. Until then a load that goes on could flush the log.
            signal("-KILL");
            while session.batch_execute("").is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
            crashed.store(true, Relaxed);
            loading.join().unwrap()
        })
    }

    fn crashing(&self, source: &dyn Source, target: &Postgres, options: &LoadOptions) -> Result<LoadReport> {
        let cancel = AtomicBool::new(false);
        self.crashing_at(source, ROWS as u64 / 2, |source, phase| {
            load(source, target, options, &Control::new(&cancel, phase))
        })
    }

    /// Staging tables.
    fn unfinished_tables(&self) -> i64 {
        let sql =
            "SELECT count(*) FROM pg_class WHERE relname LIKE '%\\_\\_sawmill%' AND relkind IN ('r', 'p')";
        self.client().query_one(sql, &[]).unwrap().get(0)
    }

    #[track_caller]
    fn has_each_row_once(&self, table: &str) {
        let sql = format!("SELECT count(*), count(DISTINCT id), sum(id)::bigint FROM {table}");
        // The load may have ended before the crash, which then cuts off this connection.
        let ask = || self.client().query_one(&sql, &[]);
        let row = (0..5).find_map(|_| ask().ok()).unwrap_or_else(|| ask().unwrap());
        let rows = ROWS as i64;
        assert_eq!(
            (row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, i64>(2)),
            (rows, rows, rows * (rows - 1) / 2)
        );
    }
}

fn options() -> LoadOptions {
    LoadOptions { unit_rows: 300, verify: false, ..small() }
}

/// Partitions of some 900 rows, each filled over one connection.
fn in_partitions(target: Postgres, source: &ParquetFiles) -> Postgres {
    let by = format!("hash(id, {})", ROWS / 900).parse().unwrap();
    let target = target.strategy(Strategy::Staged);
    with_control(|control| target.partitioned(&by, source, control)).unwrap()
}

#[test]
fn units_lost_in_a_crash_are_sent_again_before_the_load_is_complete() {
    let server = Forgetful::start();
    let source = ParquetFiles::open(&[server.file()]).unwrap();
    let unlogged = TableKind { unlogged: true, ..TableKind::default() };
    for (table, target) in [
        ("direct", server.target("direct")),
        ("staged", in_partitions(server.target("staged"), &source)),
        ("others", server.target("others").mode(Mode::Append)),
        ("fresh", server.target("fresh").mode(Mode::Replace)),
        ("unlogged", server.target("unlogged").kind(unlogged.clone())),
        ("apart", in_partitions(server.target("apart").kind(unlogged), &source)),
    ] {
        let report = server.crashing(&source, &target, &options()).unwrap();
        assert!(report.units_lost > 0, "{table}: the server has lost nothing");
        assert_eq!((report.rows, report.rows_loaded), (ROWS as u64, ROWS as u64), "{table}");
        let note = report.notes.iter().find(|note| note.contains("had confirmed their commit"));
        assert!(note.unwrap().contains(&report.units_lost.to_string()), "{:?}", report.notes);
        server.has_each_row_once(table);
        let verified = LoadOptions { verify: true, ..options() };
        assert!(run(&source, &target, &verified).unwrap().verified.unwrap().matches(), "{table}");
        assert_eq!(server.unfinished_tables(), 0, "{table}");
    }
}

#[test]
fn emptied_parts_of_an_unlogged_table_are_dropped_by_the_next_run_and_with_the_load() {
    let server = Forgetful::start();
    let source = ParquetFiles::open(&[server.file()]).unwrap();
    let unlogged = TableKind { unlogged: true, ..TableKind::default() };
    // The tables outlive the crash, their rows do not.
    server.client().batch_execute("ALTER DATABASE postgres SET synchronous_commit = on").unwrap();
    for (table, finished) in [("finished", true), ("forgotten", false)] {
        let target = in_partitions(server.target(table).kind(unlogged.clone()), &source);
        let options = LoadOptions { retries: 0, ..options() };
        server.crashing(&source, &target, &options).unwrap_err();
        server.client();
        assert!(server.unfinished_tables() > 1, "{table}");
        if finished {
            run(&source, &target, &options).unwrap();
            server.has_each_row_once(table);
        } else {
            with_control(|control| forget(&target, false, control)).unwrap();
        }
        assert_eq!(server.unfinished_tables(), 0, "{table}");
    }
}

#[test]
fn a_crash_after_the_last_unit_is_noticed_before_the_load_is_complete() {
    let server = Forgetful::start();
    let source = ParquetFiles::open(&[server.file()]).unwrap();
    for (table, verify) in [("a", false), ("b", true), ("c", false), ("d", true)] {
        let (cancel, target) = (AtomicBool::new(false), server.target(table));
        let options = LoadOptions { verify, ..options() };
        let report = server
            .crashing_at(&source, ROWS as u64, |source, phase| {
                load(source, &target, &options, &Control::new(&cancel, phase))
            })
            .unwrap();
        assert_eq!(report.rows, ROWS as u64);
        // The commit that completed the load made all earlier ones last.
        server.has_each_row_once(table);
    }
}

#[test]
fn rows_rejected_with_lost_units_are_rejected_once() {
    let server = Forgetful::start();
    let source = ParquetFiles::open(&[server.file()]).unwrap();
    let table = "CREATE TABLE checked (id bigint CHECK (id % 1000 <> 7), name text, amount float8)";
    server.client().batch_execute(table).unwrap();
    let path = server.directory.path().join("rejected.parquet");
    let target = server
        .target("checked")
        .mode(Mode::Append)
        .rejects(Some(RejectOptions { path: path.clone(), most: None }));
    let report = server.crashing(&source, &target, &options()).unwrap();
    assert!(report.units_lost > 0);
    let rejected = ROWS as u64 / 1000;
    assert_eq!((report.rows, report.rows_rejected), (ROWS as u64 - rejected, rejected));
    assert_eq!(ParquetFiles::open(&[path]).unwrap().rows(), rejected);
    let count: i64 = server.client().query_one("SELECT count(*) FROM checked", &[]).unwrap().get(0);
    assert_eq!(count as u64, report.rows);
}

#[test]
fn tables_of_lists_get_back_the_rows_lost_in_a_crash() {
    let server = Forgetful::start();
    let path = server.directory.path().join("lists.parquet");
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS as i64 / 4));
    let name: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS / 4).map(|row| format!("n{row}"))));
    let lists = (0..ROWS as i64 / 4).map(|row| Some((0..3).map(move |item| Some(row * 3 + item))));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
    let batch = RecordBatch::try_from_iter([("id", id), ("name", name), ("list", lists)]).unwrap();
    write(&path, &batch, 3000);
    let source = ParquetFiles::open(&[path]).unwrap();
    // In the first table, and in the second: both have a row counted for each record.
    for (table, rows) in [("first", ROWS as u64 / 8), ("second", ROWS as u64 / 8 * 3)] {
        let (cancel, options) = (AtomicBool::new(false), options());
        let target = server.target(table);
        let reports = server
            .crashing_at(&source, rows, |source, phase| {
                let tables = PostgresTables::new(source, target, true).unwrap();
                tables.load(&options, &Control::new(&cancel, phase), &mut |_| {})
            })
            .unwrap();
        let lost: u64 = reports.iter().map(|report| report.result.units_lost).sum();
        assert!(lost > 0, "{table}: the server has lost nothing");
        let sql = format!(
            "SELECT (SELECT count(DISTINCT id) FROM {table}), count(DISTINCT value), count(*) FROM {table}_list"
        );
        let row = server.client().query_one(&sql, &[]).unwrap();
        let rows = ROWS as i64 / 4;
        assert_eq!(
            (row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, i64>(2)),
            (rows, 3 * rows, 3 * rows)
        );
    }
}

#[test]
fn a_server_that_restarts_between_two_tables_is_waited_for() {
    let server = Forgetful::start();
    let path = server.directory.path().join("lists.parquet");
    let lists = (0..1000).map(|row| Some([Some(row), None]));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
    write(&path, &RecordBatch::try_from_iter([("list", lists)]).unwrap(), 300);
    let source = ParquetFiles::open(&[path]).unwrap();
    let tables = PostgresTables::new(&source, server.target("records"), false).unwrap();
    let (cancel, profile, writer) = (AtomicBool::new(false), Profile::new(), server.log_writer().to_string());
    let phase = profile.phase("load");
    let mut crash_before_the_second = |table: &TableName| {
        if table.to_string().contains("records_list") {
            assert!(Command::new("kill").args(["-KILL", &writer]).status().unwrap().success());
            while std::path::Path::new("/proc").join(&writer).exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    };
    let control = Control::new(&cancel, &phase);
    tables.load(&options(), &control, &mut crash_before_the_second).unwrap();
    let sql = "SELECT (SELECT count(*) FROM records), count(value), count(*) FROM records_list";
    let row = server.client().query_one(sql, &[]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, i64>(2)), (1000, 1000, 2000));
}

/// The parts of a server's address before and after the `@`, without the database.
fn parts(server: &LocalPg) -> (String, String) {
    let url = server.url();
    let (credentials, rest) = url.split_once('@').unwrap();
    (credentials.to_owned(), rest.split('/').next().unwrap().to_owned())
}

#[test]
fn another_server_at_the_same_address_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, ROWS, 10_000);
    let source = ParquetFiles::open(&[path]).unwrap();
    let (first, second) = (LocalPg::start().unwrap(), LocalPg::start().unwrap());
    let (credentials, address) = parts(&first);
    let (other_credentials, other_address) = parts(&second);
    let password = credentials.rsplit_once(':').unwrap().1;
    let change = format!("ALTER ROLE CURRENT_USER PASSWORD '{password}'");
    let mut client =
        Client::connect(&format!("{other_credentials}@{other_address}/postgres"), NoTls).unwrap();
    client.batch_execute(&change).unwrap();
    let url = format!("{credentials}@{address},{other_address}/postgres");
    let target = Postgres::new(url.parse().unwrap(), "people".parse().unwrap());
    let (cancel, phase) = (AtomicBool::new(false), Profile::new().phase("load"));
    let stopped = AtomicBool::new(false);
    let wait = halt(&phase, ROWS as u64 / 4, &stopped);
    let slowed = Slowed::new(&source, &wait);
    let error = std::thread::scope(|scope| {
        let loading = scope.spawn(|| load(&slowed, &target, &options(), &Control::new(&cancel, &phase)));
        while phase.rows() < ROWS as u64 / 4 && !loading.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(first);
        stopped.store(true, Relaxed);
        loading.join().unwrap().unwrap_err()
    });
    assert_eq!(error.kind(), Kind::Changed, "{error}");
    let sql = "SELECT system_identifier::text FROM pg_control_system()";
    let system: String = client.query_one(sql, &[]).unwrap().get(0);
    assert!(error.what().contains(&format!("another server now: system identifier {system}")), "{error}");
}
