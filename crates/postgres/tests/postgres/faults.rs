//! Connections, servers and loaders die during a load: every row arrives once, or none is visible.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sawmill_loader::{LoadOptions, LoadState, Mode, load};
use sawmill_localpg::LocalPg;
use sawmill_profile::Profile;
use sawmill_source::{Control, Kind, ParquetFiles};

use crate::database::{Database, run, small};
use crate::fixture::people;
use crate::proxy::Proxy;
use crate::slowed::{Slowed, halt};

struct People {
    _directory: tempfile::TempDir,
    path: std::path::PathBuf,
    source: ParquetFiles,
}

const ROWS: usize = 60_000;

fn many() -> People {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, ROWS, 20_000);
    People { source: ParquetFiles::open(&[&path]).unwrap(), path, _directory: directory }
}

/// Units enough to be interrupted between and within.
fn options() -> LoadOptions {
    LoadOptions { unit_rows: 2000, ..small() }
}

#[track_caller]
fn exactly_once(database: &Database, table: &str) {
    let sql = format!("SELECT count(*), count(DISTINCT id), sum(id)::bigint FROM {table}");
    let row = database.client().query_one(&sql, &[]).unwrap();
    let rows = ROWS as i64;
    assert_eq!(
        (row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, i64>(2)),
        (rows, rows, rows * (rows - 1) / 2)
    );
}

#[test]
fn a_load_continues_when_its_connections_are_killed_again_and_again() {
    let database = Database::new();
    let people = many();
    let report = database.killing_connections(Duration::from_millis(60), || {
        run(&people.source, &database.target("people"), &options())
    });
    let report = report.unwrap();
    println!("{} retries", report.retries);
    assert_eq!(report.rows, ROWS as u64);
    exactly_once(&database, "people");
}

#[test]
fn a_load_continues_when_the_server_crashes_and_comes_back() {
    let mut server = LocalPg::start().unwrap();
    let people = many();
    let target =
        |url: String| sawmill_postgres::Postgres::new(url.parse().unwrap(), "people".parse().unwrap());
    let url = server.url();
    let (cancel, phase) = (AtomicBool::new(false), Profile::new().phase("load"));
    let target = target(url.clone());
    let options = LoadOptions { unit_rows: 300, ..options() };
    let crashed = AtomicBool::new(false);
    let wait = halt(&phase, 3000, &crashed);
    let slowed = Slowed::new(&people.source, &wait);
    let report = std::thread::scope(|scope| {
        let loading = scope.spawn(|| load(&slowed, &target, &options, &Control::new(&cancel, &phase)));
        while phase.rows() < 3000 && !loading.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        server.restart_immediate().unwrap();
        crashed.store(true, Relaxed);
        loading.join().unwrap()
    });
    let report = report.unwrap();
    assert!(report.retries > 0, "the load was over before the server crashed");
    println!("{} retries", report.retries);
    assert!(report.verified.unwrap().matches());
    let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    let row = client.query_one("SELECT count(*), count(DISTINCT id) FROM people", &[]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (ROWS as i64, ROWS as i64));
}

#[test]
fn a_commit_whose_answer_was_lost_is_not_repeated() {
    let database = Database::new();
    let people = many();
    let (before, after) = database.url.split_once("@127.0.0.1:").unwrap();
    let (port, name) = after.split_once('/').unwrap();
    let proxy = Proxy::start(port.parse().unwrap(), 3);
    let url = format!("{before}@127.0.0.1:{}/{name}", proxy.port);
    for (table, mode) in [("people", Mode::Create), ("others", Mode::Append)] {
        database.client().batch_execute("CREATE TABLE others (id bigint, name text, amount float8)").ok();
        proxy.cuts.store(3, Relaxed);
        let target = sawmill_postgres::Postgres::new(url.parse().unwrap(), table.parse().unwrap()).mode(mode);
        let report = run(&people.source, &target, &options()).unwrap();
        assert_eq!((report.retries, proxy.cuts.load(Relaxed)), (3, 0));
        assert!(report.verified.unwrap().matches());
        exactly_once(&database, table);
    }
}

/// Not a test: [`the_next_run_finishes_the_load_of_a_killed_one`] runs and kills it.
#[test]
fn as_a_child_process() {
    let (Ok(url), Ok(path)) = (std::env::var("SAWMILL_TEST_URL"), std::env::var("SAWMILL_TEST_FILE")) else {
        return;
    };
    let source = ParquetFiles::open(&[path]).unwrap();
    let target = sawmill_postgres::Postgres::new(url.parse().unwrap(), "people".parse().unwrap());
    let slowed = Slowed::new(&source, &|| std::thread::sleep(Duration::from_millis(2)));
    run(&slowed, &target, &LoadOptions { unit_rows: 5, ..options() }).unwrap();
}

#[test]
fn the_next_run_finishes_the_load_of_a_killed_one() {
    let database = Database::new();
    let people = many();
    // In each round at another moment after the first commit.
    let killed =
        database.kill_loads("faults::as_a_child_process", &people.path, &[], 30, |round| 1 + round % 4);
    let report = run(&people.source, &database.target("people"), &options()).unwrap();
    println!("{killed} killed, then {:?}, {} units resumed", report.state, report.units_resumed);
    assert!(killed >= 25, "only {killed} runs were killed before they ended");
    exactly_once(&database, "people");
}

/// Cancels a load as soon as some rows were committed; returns how many, or `None` if it was too fast.
fn cancelled(people: &People, target: &sawmill_postgres::Postgres) -> Option<u64> {
    let cancel = AtomicBool::new(false);
    let phase = Profile::new().phase("load");
    let wait = halt(&phase, 4000, &cancel);
    let slowed = Slowed::new(&people.source, &wait);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            let end = Instant::now() + Duration::from_secs(20);
            while phase.rows() < 4000 && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(1));
            }
            cancel.store(true, Relaxed);
        });
        load(&slowed, target, &options(), &Control::new(&cancel, &phase))
    });
    match result {
        Ok(_) => None,
        Err(error) => {
            assert_eq!(error.kind(), Kind::Cancelled, "{error}");
            Some(phase.rows())
        }
    }
}

#[test]
fn a_cancelled_load_shows_nothing_and_the_same_load_again_loads_only_what_is_missing() {
    let database = Database::new();
    let people = many();
    let target = database.target("people");
    let before = cancelled(&people, &target).expect("the load was cancelled in its middle");
    assert!(!database.has("people"));
    let report = run(&people.source, &target, &options()).unwrap();
    assert_eq!(report.state, LoadState::Resumed);
    assert!(report.units_resumed >= 2 && report.rows_loaded <= ROWS as u64 - before, "{report:?}");
    exactly_once(&database, "people");
}

#[test]
fn an_append_that_was_cancelled_is_finished_exactly_once() {
    let database = Database::new();
    let people = many();
    database.client().batch_execute("CREATE TABLE people (id bigint, name text, amount float8)").unwrap();
    let target = database.target("people").mode(Mode::Append);
    cancelled(&people, &target).expect("the load was cancelled in its middle");
    let report = run(&people.source, &target, &options()).unwrap();
    assert_eq!(report.state, LoadState::Resumed);
    assert!(report.verified.unwrap().matches());
    exactly_once(&database, "people");
}

#[test]
fn a_load_is_not_resumed_with_a_source_that_changed() {
    let database = Database::new();
    let people = many();
    let target = database.target("people");
    cancelled(&people, &target).expect("the load was cancelled in its middle");
    crate::fixture::people(&people.path, 1, ROWS, 20_000);
    let changed = ParquetFiles::open(&[&people.path]).unwrap();
    let error = run(&changed, &target, &options()).unwrap_err();
    assert_eq!(error.kind(), Kind::Changed);
    assert!(error.what().contains("people.parquet"), "{error}");
    crate::fixture::people(&people.path, 0, ROWS, 20_000);
    let back = ParquetFiles::open(&[&people.path]).unwrap();
    run(&back, &target, &options()).unwrap();
    exactly_once(&database, "people");
}

#[test]
fn a_load_that_waits_for_a_lock_can_be_cancelled() {
    let database = Database::new();
    let people = many();
    let mut client = database.client();
    client.batch_execute("CREATE TABLE people (id bigint, name text, amount float8)").unwrap();
    client.batch_execute("BEGIN; LOCK TABLE people").unwrap();
    let cancel = AtomicBool::new(false);
    let phase = Profile::new().phase("load");
    let target = database.target("people").mode(Mode::Append);
    let options = LoadOptions { verify: false, ..options() };
    let (error, took) = std::thread::scope(|scope| {
        let loading = scope.spawn(|| load(&people.source, &target, &options, &Control::new(&cancel, &phase)));
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'people'::regclass";
        while client.query_one(waits, &[]).unwrap().get::<_, i64>(0) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let raised = Instant::now();
        cancel.store(true, Relaxed);
        (loading.join().unwrap().unwrap_err(), raised.elapsed())
    });
    assert_eq!(error.kind(), Kind::Cancelled);
    assert!(took < Duration::from_secs(2), "{took:?}");
    client.batch_execute("ROLLBACK").unwrap();
    // The server has no statement of it left waiting.
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sawmill' AND datname = current_database()";
    let end = Instant::now() + Duration::from_secs(5);
    while client.query_one(waiting, &[]).unwrap().get::<_, i64>(0) > 0 {
        assert!(Instant::now() < end, "a connection stayed");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(database.count("people"), 0);
}

#[test]
fn the_same_load_does_not_run_twice_at_once() {
    let database = Database::new();
    let people = many();
    let target = database.target("people");
    let options = options();
    let results = std::thread::scope(|scope| {
        let loads: Vec<_> = (0..2).map(|_| scope.spawn(|| run(&people.source, &target, &options))).collect();
        loads.into_iter().map(|load| load.join().unwrap()).collect::<Vec<_>>()
    });
    for result in &results {
        match result {
            Ok(report) => assert_eq!(report.rows, ROWS as u64),
            Err(error) => assert_eq!(error.kind(), Kind::Busy, "{error}"),
        }
    }
    assert!(results.iter().any(Result::is_ok));
    exactly_once(&database, "people");
}
