//! One load by several runs, each with a part of it.

use std::sync::Barrier;

use sawmill_loader::{LoadOptions, LoadReport, LoadState, Mode, Part, Share};
use sawmill_postgres::{Postgres, Strategy, TableKind};
use sawmill_source::{Kind, ParquetFiles, Result};

use crate::database::{Database, run, small, with_control};
use crate::fixture::people;

const ROWS: usize = 30_000;

struct People {
    directory: tempfile::TempDir,
    source: ParquetFiles,
}

fn many() -> People {
    let directory = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..3).map(|file| directory.path().join(format!("{file}.parquet"))).collect();
    let rows = ROWS / 3;
    paths.iter().enumerate().for_each(|(file, path)| people(path, (file * rows) as i64, rows, 4_000));
    People { source: ParquetFiles::open(&paths).unwrap(), directory }
}

fn part(number: u32, of: u32) -> LoadOptions {
    let share = Share::Part(Part::new(number, of).unwrap());
    LoadOptions { share, unit_rows: 1_000, verify: false, ..small() }
}

fn finish() -> LoadOptions {
    LoadOptions { share: Share::Finish, unit_rows: 1_000, verify: true, ..small() }
}

/// All parts at the same moment.
fn together(people: &People, target: &Postgres, of: u32) -> Vec<Result<LoadReport>> {
    let barrier = Barrier::new(of as usize);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=of)
            .map(|number| {
                let (barrier, source) = (&barrier, &people.source);
                scope.spawn(move || {
                    barrier.wait();
                    run(source, target, &part(number, of))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
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
fn parts_that_run_at_once_load_each_row_once_by_either_route() {
    let people = many();
    for strategy in [Strategy::Direct, Strategy::Staged] {
        for mode in [Mode::Create, Mode::Replace] {
            let database = Database::new();
            if mode == Mode::Replace {
                database.client().batch_execute("CREATE TABLE people (id bigint)").unwrap();
            }
            let mut target = database.target("people").strategy(strategy).mode(mode);
            if strategy == Strategy::Staged {
                let by = "hash(id, 15)".parse().unwrap();
                target = with_control(|control| target.partitioned(&by, &people.source, control)).unwrap();
            }
            let reports: Vec<_> =
                together(&people, &target, 4).into_iter().map(|report| report.unwrap()).collect();
            assert_eq!(reports.iter().map(|report| report.rows).sum::<u64>(), ROWS as u64);
            for report in &reports {
                let part = report.part.as_ref().unwrap();
                assert!(part.units_recorded <= part.units && report.units < part.units);
            }
            // Before the load is finished the table is not in its place.
            assert!(database.client().query("SELECT name FROM people", &[]).is_err());
            let finished = run(&people.source, &target, &finish()).unwrap();
            assert_eq!((finished.state, finished.rows_loaded), (LoadState::Resumed, 0));
            assert!(finished.verified.unwrap().matches());
            exactly_once(&database, "people");
            // A part that runs late finds nothing to do.
            let late = run(&people.source, &target, &part(2, 4)).unwrap();
            assert_eq!((late.state, late.rows_loaded), (LoadState::Complete, 0));
        }
    }
}

#[test]
fn parts_append_to_a_table_with_rows_of_others() {
    let (database, people) = (Database::new(), many());
    database
        .client()
        .batch_execute(
            "CREATE TABLE people (id bigint, name text, amount double precision); INSERT INTO people VALUES (-1, 'x', 0)",
        )
        .unwrap();
    let target = database.target("people").mode(Mode::Append);
    // The part that begins first records the table's earlier rows.
    let first = LoadOptions { verify: true, ..part(1, 2) };
    assert!(run(&people.source, &target, &first).unwrap().verified.is_none());
    run(&people.source, &target, &part(2, 2)).unwrap();
    let finished = run(&people.source, &target, &finish()).unwrap();
    assert!(finished.verified.unwrap().matches());
    database.client().batch_execute("DELETE FROM people WHERE id = -1").unwrap();
    exactly_once(&database, "people");
}

#[test]
fn a_load_is_not_finished_before_its_last_part() {
    let (database, people) = (Database::new(), many());
    let target = database.target("people");
    run(&people.source, &target, &part(1, 3)).unwrap();
    run(&people.source, &target, &part(3, 3)).unwrap();
    let error = run(&people.source, &target, &finish()).unwrap_err();
    assert_eq!(error.kind(), Kind::Mismatch);
    assert!(error.what().contains("10 units with 10,000 rows"), "{error}");
    assert!(error.place().contains("1.parquet, row group 0, from row 0"), "{error}");
    // The same load without parts does the rest.
    let whole = LoadOptions { share: Share::Whole, ..finish() };
    let report = run(&people.source, &target, &whole).unwrap();
    assert_eq!((report.rows_loaded, report.units_resumed), (10_000, 20));
    exactly_once(&database, "people");
}

#[test]
fn what_has_not_begun_is_not_finished_and_leaves_nothing_behind() {
    let (database, people) = (Database::new(), many());
    let create = "CREATE TABLE there (id bigint PRIMARY KEY, name text, amount double precision)";
    database.client().batch_execute(create).unwrap();
    let modes = [
        ("people", Mode::Create),
        ("people", Mode::Replace),
        ("there", Mode::Append),
        ("there", Mode::Truncate),
        ("there", Mode::Upsert),
    ];
    for (table, mode) in modes {
        let target = database.target(table).mode(mode).key(vec!["id".into()]);
        let error = run(&people.source, &target, &finish()).unwrap_err();
        assert_eq!(error.kind(), Kind::Mismatch);
        assert!(error.what().contains("no part of this load"), "{mode:?}: {error}");
        assert!(!database.has(&format!("{table}__sawmill_loading")));
        assert_eq!(database.count("_sawmill.loads"), 0);
    }
}

#[test]
fn a_load_whose_rows_were_deleted_meanwhile_is_not_finished() {
    for (mode, key) in [(Mode::Create, vec![]), (Mode::Create, vec!["id".to_owned()]), (Mode::Upsert, vec![])]
    {
        let (database, people) = (Database::new(), many());
        if mode == Mode::Upsert {
            let create = "CREATE TABLE people (id bigint PRIMARY KEY, name text, amount double precision)";
            database.client().batch_execute(create).unwrap();
        }
        let kind = TableKind { key_after: !key.is_empty(), primary_key: key, ..TableKind::default() };
        let target = database.target("people").mode(mode).key(vec!["id".into()]).kind(kind);
        for number in 1..=2 {
            run(&people.source, &target, &part(number, 2)).unwrap();
        }
        database.client().batch_execute("DELETE FROM people__sawmill_loading WHERE id < 500").unwrap();
        for share in [Share::Finish, Share::Whole] {
            let options = LoadOptions { share, verify: false, ..finish() };
            let error = run(&people.source, &target, &options).unwrap_err();
            assert_eq!(error.kind(), Kind::Mismatch, "{error}");
            assert!(error.what().contains("29,500 rows; according to the records 30,000"), "{error}");
            assert!(error.advice().contains("forget"), "{error}");
        }
        assert!(database.has("people__sawmill_loading"));
        assert!(mode == Mode::Upsert || !database.has("people"));
    }
}

#[test]
fn what_differs_from_the_parts_on_record_is_named() {
    let (database, people) = (Database::new(), many());
    let target = database.target("people");
    run(&people.source, &target, &part(1, 1)).unwrap();
    let refused = |source: &ParquetFiles, target: &Postgres| {
        let error = run(source, target, &finish()).unwrap_err();
        assert_eq!(error.kind(), Kind::Mismatch, "{error}");
        error.what().to_owned()
    };
    let kind = TableKind { indexes: vec![vec!["id".into()]], ..TableKind::default() };
    let what = refused(&people.source, &target.clone().kind(kind));
    assert!(what.contains("other options") && what.contains("indexes"), "{what}");
    let what = refused(&people.source, &target.clone().mode(Mode::Replace));
    assert!(what.contains("mode create, not replace"), "{what}");
    let path = |file: usize| people.directory.path().join(format!("{file}.parquet"));
    let what = refused(&ParquetFiles::open(&[path(0), path(1)]).unwrap(), &target);
    assert!(what.contains("2.parquet is not among the files given"), "{what}");
    crate::fixture::people(&path(3), 0, 10, 10);
    let what = refused(&ParquetFiles::open(&[path(0), path(1), path(2), path(3)]).unwrap(), &target);
    assert!(what.contains("3.parquet is not one of their files"), "{what}");
    run(&people.source, &target, &finish()).unwrap();
}

#[test]
fn a_part_that_runs_twice_at_once_is_loaded_once() {
    let (database, people) = (Database::new(), many());
    let target = database.target("people");
    let reports: Vec<_> = std::thread::scope(|scope| {
        let (people, target) = (&people, &target);
        let threads: Vec<_> =
            (0..3).map(|_| scope.spawn(move || run(&people.source, target, &part(1, 1)).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(reports.iter().map(|report| report.rows_loaded).sum::<u64>(), ROWS as u64);
    assert!(reports.iter().all(|report| report.rows == ROWS as u64));
    run(&people.source, &target, &finish()).unwrap();
    exactly_once(&database, "people");
}

#[test]
fn parts_of_another_number_wait_until_no_part_is_at_work() {
    let (database, people) = (Database::new(), many());
    let target = database.target("people");
    run(&people.source, &target, &part(1, 2)).unwrap();
    // Neither part is at work, so three parts may share the rest.
    (1..=3).for_each(|number| {
        run(&people.source, &target, &part(number, 3)).unwrap();
    });
    run(&people.source, &target, &finish()).unwrap();
    exactly_once(&database, "people");
}

#[test]
fn a_run_of_the_whole_load_does_not_disturb_a_part() {
    let (database, people) = (Database::new(), many());
    let target = database.target("people");
    run(&people.source, &target, &part(1, 2)).unwrap();
    // Another process of a part holds the lock of the load together with others.
    let mut other = database.client();
    let id: String = other.query_one("SELECT load_id FROM _sawmill.loads", &[]).unwrap().get(0);
    let key = xxhash_rust::xxh3::xxh3_64_with_seed(id.as_bytes(), 0x5a3_111) as i64;
    other.execute("SELECT pg_advisory_lock_shared($1)", &[&key]).unwrap();
    for share in [Share::Whole, Share::Finish] {
        let error = run(&people.source, &target, &LoadOptions { share, ..finish() }).unwrap_err();
        assert_eq!(error.kind(), Kind::Busy, "{error}");
    }
    // Parts of another number do not begin.
    let error = run(&people.source, &target, &part(1, 3)).unwrap_err();
    assert!(error.kind() == Kind::Busy && error.what().contains("2 parts"), "{error}");
    run(&people.source, &target, &part(2, 2)).unwrap();
    drop(other);
    run(&people.source, &target, &finish()).unwrap();
    exactly_once(&database, "people");
}
