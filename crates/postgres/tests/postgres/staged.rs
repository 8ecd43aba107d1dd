//! The staged strategy: part tables of the workers that become partitions of one table.

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
    source: ParquetFiles,
}

fn many() -> People {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, ROWS, 10_000);
    People { source: ParquetFiles::open(&[&path]).unwrap(), _directory: directory }
}

/// Eight partitions, each filled by one worker.
fn staged(target: Postgres, source: &ParquetFiles) -> Postgres {
    let target = target.strategy(Strategy::Staged);
    with_control(|control| target.partitioned(&"hash(id, 8)".parse().unwrap(), source, control)).unwrap()
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
fn workers_fill_part_tables_which_become_the_partitions_of_one_table() {
    let database = Database::new();
    let people = many();
    let indexed = TableKind { indexes: vec![vec!["id".into()]], ..TableKind::default() };
    let target = staged(database.target("people").kind(indexed), &people.source);
    let report = run(&people.source, &target, &options()).unwrap();
    assert!(report.verified.unwrap().matches());
    exactly_once(&database, "people");
    assert_eq!(tables(&database).len(), 9, "{:?}", tables(&database));
    // Each partition has the index.
    let mut client = database.client();
    let one =
        |client: &mut postgres::Client, sql: &str| -> i64 { client.query_one(sql, &[]).unwrap().get(0) };
    assert_eq!(one(&mut client, "SELECT count(*) FROM ONLY people"), 0);
    assert_eq!(one(&mut client, "SELECT count(*) FROM pg_indexes WHERE tablename LIKE 'people%'"), 9);
    // The same load again does nothing; a replacement drops the old partitions with their table.
    assert_eq!(run(&people.source, &target, &options()).unwrap().state, LoadState::Complete);
    let target = target.mode(Mode::Replace);
    run(&people.source, &target, &options()).unwrap();
    exactly_once(&database, "people");
    assert_eq!(tables(&database).len(), 9, "{:?}", tables(&database));
    with_control(|control| forget(&target, true, control)).unwrap();
    assert_eq!(tables(&database), Vec::<String>::new());
}

#[test]
fn a_server_that_crashes_in_the_middle_costs_no_row() {
    let mut server = LocalPg::start().unwrap();
    let people = many();
    let url = server.url();
    let target = Postgres::new(url.parse().unwrap(), "people".parse().unwrap());
    let target = staged(target, &people.source);
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
    let whole = database.target("t").strategy(Strategy::Staged);
    let error = run(&people.source, &whole, &options()).unwrap_err();
    assert_eq!(error.kind(), Kind::Config);
    assert!(error.advice().contains("--partition-by") && error.advice().contains("one table"), "{error}");
    database.client().batch_execute("CREATE TABLE t (id bigint, name text, amount float8)").unwrap();
    let error = run(&people.source, &whole.mode(Mode::Append), &options()).unwrap_err();
    assert!(error.what().contains("new table"), "{error}");
    // Rows do not allow the key of a load, which can be forgotten.
    let keyed = TableKind { primary_key: vec!["id".into(), "name".into()], ..TableKind::default() };
    let target = staged(database.target("u").kind(keyed), &people.source);
    let error = run(&people.source, &target, &options()).unwrap_err();
    assert!(error.advice().contains("all rows are loaded"), "{error}");
    with_control(|control| forget(&target, false, control)).unwrap();
    assert_eq!(tables(&database), ["t"]);
}
