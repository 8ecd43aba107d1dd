//! The staged strategy: part tables of the workers that become one table.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use sawmill_loader::{LoadOptions, LoadState, Mode};
use sawmill_localpg::LocalPg;
use sawmill_postgres::{Postgres, Strategy, TableKind, forget};
use sawmill_source::{Kind, ParquetFiles};

use crate::database::{Database, run, small, with_control};
use crate::fixture::people;
use crate::slowed::{Slowed, halt};

const ROWS: usize = 30_000;

struct People {
    _directory: tempfile::TempDir,
    path: std::path::PathBuf,
    source: ParquetFiles,
}

fn many() -> People {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, ROWS, 10_000);
    People { source: ParquetFiles::open(&[&path]).unwrap(), path, _directory: directory }
}

fn staged(database: &Database, table: &str) -> Postgres {
    database.target(table).strategy(Strategy::Staged).part_rows(4000)
}

fn options() -> LoadOptions {
    LoadOptions { unit_rows: 1000, ..small() }
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

/// All tables of the test.
fn tables(database: &Database) -> Vec<String> {
    let sql = "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p') AND \
               relnamespace = 'public'::regnamespace ORDER BY 1";
    database.client().query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

#[test]
fn workers_fill_part_tables_which_become_the_children_of_one_table() {
    let database = Database::new();
    let people = many();
    let target = staged(&database, "people")
        .kind(TableKind { indexes: vec![vec!["id".into()]], ..TableKind::default() });
    let report = run(&people.source, &target, &options()).unwrap();
    assert!(report.verified.unwrap().matches());
    exactly_once(&database, "people");
    let children = tables(&database).len() - 1;
    assert!((7..=9).contains(&children), "{:?}", tables(&database));
    // Rows are in the children, frozen, and each child has the index.
    let mut client = database.client();
    let one =
        |client: &mut postgres::Client, sql: &str| -> i64 { client.query_one(sql, &[]).unwrap().get(0) };
    assert_eq!(one(&mut client, "SELECT count(*) FROM ONLY people"), 0);
    assert_eq!(
        one(&mut client, "SELECT count(*) FROM pg_indexes WHERE tablename LIKE 'people%'"),
        children as i64 + 1
    );
    // The same load again does nothing; a replacement drops the old children with their parent.
    assert_eq!(run(&people.source, &target, &options()).unwrap().state, LoadState::Complete);
    let target = target.mode(Mode::Replace);
    run(&people.source, &target, &options()).unwrap();
    exactly_once(&database, "people");
    assert!((8..=10).contains(&tables(&database).len()), "{:?}", tables(&database));
    with_control(|control| forget(&target, true, control)).unwrap();
    assert_eq!(tables(&database), Vec::<String>::new());
}

#[test]
fn killed_connections_neither_lose_nor_duplicate_a_part() {
    let database = Database::new();
    let people = many();
    let report = database.killing_connections(Duration::from_millis(40), || {
        run(&people.source, &staged(&database, "people"), &options())
    });
    let report = report.unwrap();
    println!("{} retries", report.retries);
    assert!(report.verified.unwrap().matches());
    exactly_once(&database, "people");
}

/// Not a test of its own, but what [`the_next_run_finishes_the_load_of_a_killed_one`] runs and kills.
#[test]
fn as_a_child_process() {
    let (Ok(url), Ok(path)) = (std::env::var("SAWMILL_TEST_URL"), std::env::var("SAWMILL_TEST_FILE")) else {
        return;
    };
    let source = ParquetFiles::open(&[path]).unwrap();
    let target = Postgres::new(url.parse().unwrap(), "people".parse().unwrap());
    let slowed = Slowed::new(&source, &|| std::thread::sleep(Duration::from_millis(20)));
    run(&slowed, &target.strategy(Strategy::Staged).part_rows(1000), &options()).unwrap();
}

#[test]
fn the_next_run_finishes_the_load_of_a_killed_one() {
    let database = Database::new();
    let people = many();
    let killed = database.kill_loads("staged::as_a_child_process", &people.path, &[], 6, |round| 1 + round);
    let target = database.target("people").strategy(Strategy::Staged).part_rows(1000);
    let report = run(&people.source, &target, &options()).unwrap();
    println!("{killed} killed, then {:?}, {} units resumed", report.state, report.units_resumed);
    assert!(killed >= 2, "only {killed} runs were killed before they ended");
    exactly_once(&database, "people");
    assert!(tables(&database).iter().all(|table| !table.contains("sawmill")), "{:?}", tables(&database));
}

#[test]
fn a_server_that_crashes_in_the_middle_costs_no_row() {
    let mut server = LocalPg::start().unwrap();
    let people = many();
    let url = server.url();
    let target = Postgres::new(url.parse().unwrap(), "people".parse().unwrap());
    let target = target.strategy(Strategy::Staged).part_rows(2000);
    let (cancel, crashed) = (AtomicBool::new(false), AtomicBool::new(false));
    let phase = sawmill_profile::Profile::new().phase("load");
    let wait = halt(&phase, 5000, &crashed);
    let slowed = Slowed::new(&people.source, &wait);
    let control = sawmill_source::Control::new(&cancel, &phase);
    let options = LoadOptions { unit_rows: 300, ..options() };
    let report = std::thread::scope(|scope| {
        let loading = scope.spawn(|| sawmill_loader::load(&slowed, &target, &options, &control));
        while phase.rows() < 5000 && !loading.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        server.restart_immediate().unwrap();
        crashed.store(true, Relaxed);
        loading.join().unwrap()
    });
    let report = report.unwrap();
    assert!(report.retries > 0, "the load was over before the server crashed");
    assert!(report.verified.unwrap().matches());
}

#[test]
fn unsupported_options_are_refused_and_an_unfinished_load_can_be_forgotten() {
    let database = Database::new();
    let people = many();
    let keyed = TableKind { primary_key: vec!["id".into()], ..TableKind::default() };
    let error = run(&people.source, &staged(&database, "t").kind(keyed), &options()).unwrap_err();
    assert_eq!(error.kind(), Kind::Config);
    database.client().batch_execute("CREATE TABLE t (id bigint, name text, amount float8)").unwrap();
    let error = run(&people.source, &staged(&database, "t").mode(Mode::Append), &options()).unwrap_err();
    assert!(error.what().contains("new table"), "{error}");
    // The name of a child is taken: an error, and the load can be finished when the name is free.
    database.client().batch_execute("CREATE TABLE u_2 ()").unwrap();
    let error = run(&people.source, &staged(&database, "u"), &options()).unwrap_err();
    assert!(error.place().contains("u_2") && error.kind() == Kind::Exists, "{error}");
    with_control(|control| forget(&staged(&database, "u"), false, control)).unwrap();
    assert_eq!(tables(&database), ["t", "u_2"]);
}
