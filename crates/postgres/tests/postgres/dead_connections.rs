//! Connections that break anywhere, or fall silent: a load, a comparison and the records continue over another one, and
//! wait for a server that still works.

use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use sawmill_loader::{LoadOptions, LoadReport, Mode, load};
use sawmill_pgwire::{BlockingConnection, Connection, Patience, Server};
use sawmill_postgres::{Postgres, forget, status, verify};
use sawmill_profile::Profile;
use sawmill_source::{Control, Kind, ParquetFiles, Result};

use crate::database::{Database, run, small, with_control};
use crate::faulty::{Fault, FaultyProxy};
use crate::fixture::people;
use crate::slowed::{Slowed, halt};

/// How long an answer may take here.
const PATIENCE: Duration = Duration::from_millis(400);
const ROWS: usize = 3000;

fn file() -> (tempfile::TempDir, ParquetFiles) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, ROWS, 1000);
    let source = ParquetFiles::open(&[&path]).unwrap();
    (directory, source)
}

fn options() -> LoadOptions {
    LoadOptions { degree: 1, ..small() }
}

fn target(url: &str, table: &str) -> Postgres {
    Postgres::new(url.parse().unwrap(), table.parse().unwrap()).patience(PATIENCE)
}

#[track_caller]
fn exactly_once(database: &Database, table: &str) {
    let sql = format!("SELECT count(*), count(DISTINCT id) FROM {table}");
    let row = database.client().query_one(&sql, &[]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (ROWS as i64, ROWS as i64), "{table}");
}

/// Runs `work` for each number on several threads, each with its own proxy.
fn by_threads(url: &str, numbers: &[usize], work: impl Fn(&FaultyProxy, &str, usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let (proxy, url) = FaultyProxy::before(url);
                while let Some(number) = numbers.get(next.fetch_add(1, Relaxed)) {
                    work(&proxy, &url, *number);
                }
            });
        }
    });
}

#[test]
fn a_login_that_is_cut_at_any_byte_is_a_lost_connection() {
    let database = Database::new();
    let logins = AtomicUsize::new(0);
    let numbers: Vec<usize> = (0..700).collect();
    by_threads(&database.url, &numbers, |proxy, url, after| {
        let server: Server = url.parse().unwrap();
        proxy.set(Fault { connection: 0, from_server: true, after, swallows: false });
        match BlockingConnection::open(&server, &|| false) {
            Ok(_) => drop(logins.fetch_add(1, Relaxed)),
            Err(error) => assert_eq!(error.kind(), Kind::Connection, "cut after {after} bytes: {error}"),
        }
        // From the first byte on this is a server that has answered.
        assert_eq!(server.is_reached(), after > 0, "cut after {after} bytes");
    });
    let logins = logins.into_inner();
    assert!((1..500).contains(&logins), "{logins} logins were over before they were cut");
}

#[test]
fn a_load_whose_opening_is_cut_anywhere_is_completed() {
    let database = Database::new();
    let (_kept, source) = file();
    let met = AtomicUsize::new(0);
    let numbers: Vec<usize> = (0..90).collect();
    by_threads(&database.url, &numbers, |proxy, url, number| {
        // The first connections open the load: its main one, and one that looks for a pool.
        let fault = Fault {
            connection: number as u32 % 2,
            from_server: number % 3 > 0,
            // After the answer to the request for TLS: the server has been reached.
            after: 9 + number * 43,
            swallows: false,
        };
        proxy.set(fault);
        let table = format!("cut_{number}");
        let report = run(&source, &target(url, &table), &options());
        let report = report.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert!(report.verified.unwrap().matches());
        exactly_once(&database, &table);
        met.fetch_add(usize::from(proxy.met()), Relaxed);
    });
    assert!(met.into_inner() > 45, "few of the connections were cut");
}

#[test]
fn an_append_a_comparison_and_the_records_go_on_after_a_cut() {
    let database = Database::new();
    let (_kept, source) = file();
    run(&source, &database.target("t"), &options()).unwrap();
    database.client().batch_execute("CREATE TABLE appended (LIKE t)").unwrap();
    run(&source, &database.target("appended").mode(Mode::Append), &options()).unwrap();
    let numbers: Vec<usize> = (0..60).collect();
    by_threads(&database.url, &numbers, |proxy, url, number| {
        let after = 1 + number * 61;
        proxy.set(Fault { connection: number as u32 % 3, from_server: true, after, swallows: false });
        let found = with_control(|control| match number % 2 {
            0 => verify(&source, &target(url, "t"), &options(), control).map(|verified| verified.matches()),
            _ => status(&url.parse()?, "_sawmill", None, control).map(|loads| loads.len() == 2),
        });
        assert_eq!(found.map_err(|error| error.to_string()), Ok(true), "cut after {after} bytes");
    });
    // A load holds a lock: one after the other.
    let (proxy, url) = FaultyProxy::before(&database.url);
    for after in [1, 300, 600, 900] {
        proxy.set(Fault { connection: 0, from_server: true, after, swallows: false });
        let report = run(&source, &target(&url, "appended").mode(Mode::Append), &options()).unwrap();
        assert!(report.rows_loaded == 0 && proxy.met(), "cut after {after} bytes");
    }
    exactly_once(&database, "appended");
}

#[test]
fn forgetting_goes_on_after_a_cut() {
    let database = Database::new();
    let (_kept, source) = file();
    let (proxy, url) = FaultyProxy::before(&database.url);
    for after in [100, 700, 1500, 2500] {
        let table = format!("t_{after}");
        run(&source, &database.target(&table), &options()).unwrap();
        proxy.set(Fault { connection: 0, from_server: true, after, swallows: false });
        let forgotten = with_control(|control| forget(&target(&url, &table), true, control)).unwrap();
        assert!(proxy.met() && forgotten.table_dropped, "{after}: {forgotten:?}");
        assert!(!database.has(&table));
    }
}

/// Loads while one of the connections falls silent. Also returns whether it did.
fn silent(database: &Database, fault: Fault, table: &str) -> (Result<LoadReport>, bool) {
    let (_kept, source) = file();
    let (proxy, url) = FaultyProxy::before(&database.url);
    proxy.set(fault);
    let report = run(&source, &target(&format!("{url}?connect_timeout=2"), table), &options());
    (report, proxy.met())
}

#[test]
fn a_load_goes_on_when_a_connection_swallows_what_is_sent_or_answered() {
    let database = Database::new();
    let (next, met) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // Some connections receive less.
    let faults: Vec<(u32, bool, usize)> = [(0, 200), (0, 2000), (1, 300), (2, 700), (2, 20_000), (3, 1000)]
        .into_iter()
        .flat_map(|(connection, after)| [true, false].map(|from_server| (connection, from_server, after)))
        .collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((connection, from_server, after)) =
                    faults.get(next.fetch_add(1, Relaxed)).copied()
                {
                    let fault = Fault { connection, from_server, after, swallows: true };
                    let table = format!("silent_{connection}_{after}_{from_server}");
                    let (report, happened) = silent(&database, fault, &table);
                    let report = report.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
                    assert!(report.verified.unwrap().matches(), "{fault:?}");
                    exactly_once(&database, &table);
                    met.fetch_add(usize::from(happened), Relaxed);
                }
            });
        }
    });
    assert!(met.into_inner() >= 8, "few connections went silent");
}

#[test]
fn a_comparison_and_the_records_go_on_when_a_connection_goes_silent() {
    let database = Database::new();
    let (_kept, source) = file();
    run(&source, &database.target("t"), &options()).unwrap();
    let (proxy, url) = FaultyProxy::before(&database.url);
    // With a degree of 1 the third connection alone reads the rows.
    for (connection, after) in [(0, 1000), (2, 700), (2, 3000)] {
        proxy.set(Fault { connection, from_server: true, after, swallows: true });
        let verified = with_control(|control| verify(&source, &target(&url, "t"), &options(), control));
        assert!(verified.unwrap().matches() && proxy.met(), "{connection} {after}");
    }
    proxy.set(Fault { connection: 0, from_server: true, after: 1000, swallows: true });
    let server: Server = url.parse().unwrap();
    let loads = with_control(|control| status(&server.patience(PATIENCE), "_sawmill", None, control));
    assert!(loads.unwrap().len() == 1 && proxy.met());
}

#[test]
fn a_statement_of_a_load_test_is_waited_for_while_the_server_works_on_it() {
    let database = Database::new();
    let (proxy, url) = FaultyProxy::before(&database.url);
    let server = url.parse::<Server>().unwrap().patience(PATIENCE);
    let cancel = AtomicBool::new(false);
    let mut connection = BlockingConnection::open(&server, &|| false).unwrap();
    let mut patience = Patience::new(&server, &mut connection, &cancel);
    // Some statements end just as the server is asked, and a process that has just answered counts as working.
    for patiences in [2.5, 2.0, 3.0, 1.0] {
        let long = format!("SELECT pg_sleep({}), 7", PATIENCE.as_secs_f64() * patiences);
        let rows = connection.ask(&long, &mut || patience.given_up()).unwrap();
        assert_eq!(rows[0][1].as_deref(), Some("7"), "{patiences}");
        patience.came();
    }
    proxy.silence_first(true);
    patience.came();
    let error = connection.ask("SELECT 1", &mut || patience.given_up()).unwrap_err();
    assert_eq!(error.kind(), Kind::Connection);
    assert!(proxy.met());
}

#[test]
fn a_session_that_was_ended_for_its_silence_is_named_and_not_the_command_that_ended_it() {
    let database = Database::new();
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE pid = ";
    for _ in 0..3 {
        let (proxy, url) = FaultyProxy::before(&database.url);
        let server = url.parse::<Server>().unwrap().patience(PATIENCE);
        with_control(|control| {
            let connection = Connection::open(&server, control).unwrap();
            let process: i32 = connection.query(control, "SELECT pg_backend_pid()", &[]).unwrap()[0].get(0);
            // The server does not hear the question, ends the session when asked about it, and says so.
            proxy.silence_first(false);
            let error = connection.batch(control, "SELECT 1").unwrap_err();
            assert!(proxy.met());
            assert_eq!(error.kind(), Kind::Connection, "{error}");
            let what = format!("no answer for 0.4 s, and its process {process} does not work on it (idle");
            assert!(error.what().contains(&what), "{error}");
            let left =
                || database.client().query_one(&format!("{sql}{process}"), &[]).unwrap().get::<_, i64>(0);
            while left() > 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
        });
    }
}

/// A process of the server that has served a copy for a while and waits for its client.
const COPIES: &str = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() \
     AND query LIKE 'COPY%' AND state = 'active' AND wait_event = 'ClientRead' \
     AND query_start < clock_timestamp() - interval '100 ms'";

#[test]
fn a_load_goes_on_without_a_process_of_the_server_that_has_stopped() {
    let database = Database::new();
    let (_kept, source) = file();
    database.client().batch_execute("CREATE TABLE t (id bigint, name text, amount float8)").unwrap();
    let (cancel, phase, stopped) =
        (AtomicBool::new(false), Profile::new().phase("load"), AtomicBool::new(false));
    let (halted, started) = (halt(&phase, 1000, &stopped), AtomicU64::new(0));
    let wait = || {
        started.fetch_add(1, Relaxed);
        halted();
    };
    let slowed = Slowed::new(&source, &wait);
    let target = target(&database.url, "t").mode(Mode::Append);
    let options = LoadOptions { verify: false, ..options() };
    // All rows that were read have been written. A process that stops between its record of a unit and its commit
    // would hold a lock, for which the load then waits.
    let is_halted = || {
        let rows = phase.rows();
        rows >= 1000 && rows == (started.load(Relaxed) - 1) * options.unit_rows
    };
    let signal = |pid: i32, name: &str| {
        assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
    };
    let (report, pid) = std::thread::scope(|scope| {
        let loading = scope.spawn(|| load(&slowed, &target, &options, &Control::new(&cancel, &phase)));
        let mut client = database.client();
        let pid: i32 = loop {
            let halted = is_halted();
            match client.query_opt(COPIES, &[]).unwrap() {
                Some(row) if halted => break row.get(0),
                _ if loading.is_finished() => panic!("the load was over: {:?}", loading.join().unwrap()),
                _ => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        signal(pid, "-STOP");
        stopped.store(true, Relaxed);
        (loading.join().unwrap(), pid)
    });
    signal(pid, "-CONT");
    assert!(report.unwrap().retries > 0);
    exactly_once(&database, "t");
}

#[test]
fn a_record_that_a_silent_process_holds_ends_the_load_and_the_process_is_named() {
    let database = Database::new();
    let (_kept, source) = file();
    database.client().batch_execute("CREATE TABLE t (id bigint, name text, amount float8)").unwrap();
    let (cancel, phase, held) =
        (AtomicBool::new(false), Profile::new().phase("load"), AtomicBool::new(false));
    let halted = halt(&phase, 1000, &held);
    let slowed = Slowed::new(&source, &halted);
    let target = target(&database.url, "t").mode(Mode::Append);
    let options = LoadOptions { verify: false, ..options() };
    let mut holder = database.client();
    let pid: i32 = holder.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    let error = std::thread::scope(|scope| {
        let loading = scope.spawn(|| load(&slowed, &target, &options, &Control::new(&cancel, &phase)));
        while phase.rows() < 1000 {
            std::thread::sleep(Duration::from_millis(2));
        }
        // As a process that has stopped behind the record of a unit, whose connection was lost.
        let record = "BEGIN; INSERT INTO _sawmill.units (load_id, file, row_group, first_row, rows, content_sum, non_null) \
                      SELECT load_id, 0, 2, 0, 1, '0', '{1,1,1}' FROM _sawmill.loads";
        holder.batch_execute(record).unwrap();
        held.store(true, Relaxed);
        loading.join().unwrap()
    })
    .unwrap_err();
    assert!(error.what().contains(&format!("process {pid} of the server")), "{error}");
    assert!(error.advice().contains(&format!("pg_terminate_backend({pid})")), "{error}");
    holder.batch_execute("ROLLBACK").unwrap();
    run(&source, &target, &options).unwrap();
    exactly_once(&database, "t");
}

#[test]
fn a_server_that_works_for_longer_than_the_patience_is_waited_for() {
    let database = Database::new();
    let (_kept, source) = file();
    database.client().batch_execute("CREATE TABLE t (id bigint, name text, amount float8)").unwrap();
    let mut holder = database.client();
    holder.batch_execute("BEGIN; LOCK TABLE t").unwrap();
    let notices = Mutex::new(Vec::new());
    let (told, asked) = std::sync::mpsc::channel();
    let told = Mutex::new(told);
    let note = |line: &str| {
        notices.lock().unwrap().push(line.to_owned());
        if line.contains("the server works on it") {
            let _ = told.lock().unwrap().send(());
        }
    };
    let (cancel, phase) = (AtomicBool::new(false), Profile::new().phase("load"));
    let target = target(&database.url, "t").mode(Mode::Append);
    let options = LoadOptions { verify: false, ..options() };
    let report = std::thread::scope(|scope| {
        let control = Control::new(&cancel, &phase).with_notices(&note);
        let loading = scope.spawn(move || load(&source, &target, &options, &control));
        asked.recv_timeout(Duration::from_secs(60)).expect("the load says what it waits for");
        asked.recv_timeout(Duration::from_secs(60)).expect("and goes on waiting");
        holder.batch_execute("COMMIT").unwrap();
        loading.join().unwrap().unwrap()
    });
    assert_eq!((report.rows_loaded, report.retries), (ROWS as u64, 0), "{:?}", notices.lock().unwrap());
    exactly_once(&database, "t");
}
