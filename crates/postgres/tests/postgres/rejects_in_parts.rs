//! Bad rows of tables that consist of several: partitions on both routes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::*;
use sawmill_loader::{LoadOptions, LoadState, RejectOptions};
use sawmill_postgres::{Postgres, Strategy, TableKind, verify};
use sawmill_source::{Kind, ParquetFiles, Source};

use crate::database::{Database, run, small, with_control};
use crate::fixture::write;
use crate::rejects::read_rejects;
use crate::slowed::Slowed;

const DAY: i64 = 86_400_000_000;
const ROWS: i64 = 3000;
/// Rows whose text the server refuses: at both ends of row groups of 500 rows, adjacent and alone.
const BAD: [i64; 7] = [3, 4, 499, 500, 1777, 1778, 2999];
const BOTH: [Strategy; 2] = [Strategy::Direct, Strategy::Staged];

/// Words of 100 days, `id, at, word`: either the days one after the other, or all of them in every row group.
fn words_of_days(path: &Path, clustered: bool, bad: &[i64], word: &str) {
    let at = |id: i64| (19_721 + if clustered { id / 30 } else { id % 100 }) * DAY;
    let word = |id: i64| if bad.contains(&id) { format!("{word}{id}") } else { format!("word {id}") };
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..ROWS)), false),
        ("at", Arc::new(TimestampMicrosecondArray::from_iter_values((0..ROWS).map(at))), true),
        ("word", Arc::new(StringArray::from_iter_values((0..ROWS).map(word))), true),
    ];
    write(path, &RecordBatch::try_from_iter_with_nullable(columns).unwrap(), 500);
}

struct Words {
    directory: tempfile::TempDir,
    path: PathBuf,
    source: ParquetFiles,
}

fn words(clustered: bool, bad: &[i64], word: &str) -> Words {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("words.parquet");
    words_of_days(&path, clustered, bad, word);
    Words { source: ParquetFiles::open(&[&path]).unwrap(), path, directory }
}

impl Words {
    fn file(&self) -> PathBuf {
        self.directory.path().join("rejects.parquet")
    }

    fn rejecting(&self, target: Postgres, most: Option<u64>) -> Postgres {
        target.rejects(Some(RejectOptions { path: self.file(), most }))
    }
}

fn by(target: Postgres, text: &str, source: &dyn Source) -> Postgres {
    with_control(|control| target.partitioned(&text.parse().unwrap(), source, control)).unwrap()
}

/// The numbers of the rejected rows, in order; each occurs once.
#[track_caller]
fn places(path: &Path) -> Vec<i64> {
    let mut rows: Vec<i64> =
        read_rejects(path).iter().map(|(group, row, _)| i64::from(*group) * 500 + row).collect();
    rows.sort_unstable();
    rows
}

/// The table has all other rows, once.
#[track_caller]
fn all_others(database: &Database, table: &str, bad: &[i64]) {
    let sql = format!("SELECT count(*), sum(id)::bigint FROM {table} WHERE word LIKE 'word%'");
    let row = database.client().query_one(&sql, &[]).unwrap();
    let all = ROWS * (ROWS - 1) / 2;
    let expected = (ROWS - bad.len() as i64, all - bad.iter().sum::<i64>());
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), expected);
}

#[test]
fn bad_rows_of_partitions_have_their_numbers_in_the_file_on_both_routes() {
    for (strategy, clustered) in BOTH.into_iter().flat_map(|way| [(way, true), (way, false)]) {
        let database = Database::new();
        let words = words(clustered, &BAD, "\0");
        for scheme in ["month(at)", "hash(id, 3)"] {
            let table = if scheme.starts_with('m') { "months" } else { "hashes" };
            let target = words.rejecting(database.target(table).strategy(strategy), None);
            let target = by(target, scheme, &words.source);
            let report = run(&words.source, &target, &small()).unwrap();
            assert_eq!((report.rows, report.rows_rejected), (2993, 7), "{strategy:?} {scheme}");
            assert!(report.verified.unwrap().matches());
            assert_eq!(places(&words.file()), BAD, "{strategy:?} {scheme}");
            assert!(read_rejects(&words.file()).iter().all(|(.., reason)| reason.contains("0x00")));
            all_others(&database, table, &BAD);
            let again = run(&words.source, &target, &small()).unwrap();
            assert_eq!((again.state, again.rows_rejected), (LoadState::Complete, 7));
            // Table and file together equal the source, and verification finds rows missing from both.
            let compare =
                || with_control(|control| verify(&words.source, &target, &small(), control)).unwrap();
            let same = compare();
            assert!(same.matches() && same.rejected == 7);
            database.client().batch_execute(&format!("DELETE FROM {table} WHERE id = 1779")).unwrap();
            let options = LoadOptions { locate: true, ..small() };
            let found = with_control(|control| verify(&words.source, &target, &options, control)).unwrap();
            let located = found.located.unwrap();
            assert_eq!((located.units.len(), located.rows_of_none), (1, 0), "{strategy:?} {scheme}");
            let unit = &located.units[0];
            assert_eq!((unit.row_group, unit.first_missing.as_slice()), (3, [279].as_slice()));
        }
    }
}

#[test]
fn bad_rows_among_selected_rows_have_their_numbers_in_the_file() {
    for strategy in BOTH {
        let database = Database::new();
        let words = words(false, &BAD, "\0");
        let condition = "id >= 4 and id <> 1000 and id < 2900".parse().unwrap();
        let some = with_control(|control| words.source.filtered(condition, control)).unwrap();
        let target = words.rejecting(database.target("t").strategy(strategy), None);
        let target = by(target, "month(at)", &some);
        let report = run(&some, &target, &small()).unwrap();
        assert_eq!((report.rows, report.rows_rejected), (2890, 5));
        assert_eq!(places(&words.file()), [4, 499, 500, 1777, 1778]);
    }
}

#[test]
fn more_rejects_than_allowed_end_the_load_on_both_routes_and_the_next_run_counts_them_once() {
    for strategy in BOTH {
        let database = Database::new();
        let words = words(false, &BAD, "\0");
        let target = |most| {
            by(words.rejecting(database.target("t").strategy(strategy), most), "month(at)", &words.source)
        };
        let error = run(&words.source, &target(Some(6)), &small()).unwrap_err();
        assert_eq!(error.kind(), Kind::Value);
        assert!(error.what().contains("7 rows cannot be loaded"), "{error}");
        assert!(error.place().contains("words.parquet, row group"), "{error}");
        assert!(!words.file().exists() && !database.has("t"));
        let report = run(&words.source, &target(Some(7)), &small()).unwrap();
        assert_eq!((report.rows, report.rows_rejected), (2993, 7));
        assert_eq!(places(&words.file()), BAD);
    }
}

/// A database whose encoding has no euro sign: there the server refuses a row that is sent.
fn latin() -> (Database, Database) {
    let database = Database::new();
    let (host, name) = database.url.rsplit_once('/').unwrap();
    let latin = format!("{name}_latin");
    let create = format!("CREATE DATABASE {latin} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    database.client().batch_execute(&create).unwrap();
    let other = database.with_url(format!("{host}/{latin}"));
    (database, other)
}

#[test]
fn rows_that_the_server_refuses_are_rejected_in_partitions_that_workers_fill_too() {
    let (_kept, database) = latin();
    let words = words(true, &BAD, "€");
    let target = words.rejecting(database.target("months").strategy(Strategy::Staged), None);
    let target = by(target, "month(at)", &words.source);
    let report = run(&words.source, &target, &small()).unwrap();
    assert_eq!((report.rows, report.rows_rejected), (2993, 7));
    assert!(report.verified.unwrap().matches());
    assert_eq!(places(&words.file()), BAD);
    assert!(read_rejects(&words.file()).iter().all(|(.., reason)| reason.contains("encoding")));
    let recorded = "_sawmill.rejects r JOIN _sawmill.units USING (load_id, file, row_group, first_row)";
    assert_eq!(database.count(recorded), 7);
    all_others(&database, "months", &BAD);
}

#[test]
fn a_key_over_partitions_rejects_rows_if_it_exists_before_the_rows() {
    let database = Database::new();
    let words = words(true, &[], "");
    let kind = TableKind { primary_key: vec!["at".into()], ..TableKind::default() };
    let target = words.rejecting(database.target("t").kind(kind), None);
    let target = by(target, "month(at)", &words.source);
    let error = run(&words.source, &target.clone().strategy(Strategy::Staged), &small()).unwrap_err();
    assert!(error.kind() == Kind::Config && error.advice().contains("--key-after"), "{error}");
    // Without a requested strategy it is the one that can reject them.
    let report = run(&words.source, &target, &LoadOptions { degree: 1, ..small() }).unwrap();
    assert_eq!((report.rows, report.rows_rejected), (100, 2900));
    assert!(report.notes.iter().any(|note| note.starts_with("direct")), "{:?}", report.notes);
    assert!(read_rejects(&words.file()).iter().all(|(.., reason)| reason.contains("duplicate key")));
}

#[test]
fn partitions_with_bad_rows_are_stored_in_the_named_tablespace() {
    let database = Database::new();
    let words = words(false, &BAD, "\0");
    let name = "space_of_words";
    let mut client = database.client();
    // A location in the server's own directory; servers before version 15 have none.
    if client.batch_execute("SET allow_in_place_tablespaces = on").is_err() {
        return;
    }
    client.batch_execute(&format!("CREATE TABLESPACE {name} LOCATION ''")).unwrap();
    for strategy in BOTH {
        let kind = TableKind {
            tablespace: Some(name.to_owned()),
            indexes: vec![vec!["id".into()]],
            ..TableKind::default()
        };
        let table = format!("t_{strategy:?}").to_lowercase();
        let target = words.rejecting(database.target(&table).kind(kind).strategy(strategy), None);
        let target = by(target, "month(at)", &words.source);
        let report = run(&words.source, &target, &small()).unwrap();
        assert_eq!((report.rows, report.rows_rejected), (2993, 7));
        let elsewhere = format!(
            "(SELECT FROM pg_class c LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace \
             WHERE relname LIKE '{table}\\_2%' AND relkind = 'r' AND spcname IS DISTINCT FROM '{name}') others"
        );
        assert_eq!(database.count(&elsewhere), 0);
        assert_eq!(places(&words.file()), BAD);
    }
}

/// Not a test: [`a_killed_load_counts_each_rejected_row_once`] runs and kills it.
#[test]
fn as_a_child_process() {
    let (Ok(url), Ok(path)) = (std::env::var("SAWMILL_TEST_URL"), std::env::var("SAWMILL_TEST_FILE")) else {
        return;
    };
    let source = ParquetFiles::open(&[&path]).unwrap();
    let target = Postgres::new(url.parse().unwrap(), "t".parse().unwrap());
    let rejects = Path::new(&path).with_file_name("rejects.parquet");
    let target = target.rejects(Some(RejectOptions { path: rejects, most: None }));
    let target = the_way(target, &std::env::var("SAWMILL_TEST_WAY").unwrap(), &source);
    let slowed = Slowed::new(&source, &|| std::thread::sleep(Duration::from_millis(5)));
    run(&slowed, &target, &LoadOptions { unit_rows: 20, ..small() }).unwrap();
}

fn the_way(target: Postgres, way: &str, source: &dyn Source) -> Postgres {
    let strategy = if way == "direct" { Strategy::Direct } else { Strategy::Staged };
    by(target.strategy(strategy), "day(at)", source)
}

#[test]
fn a_killed_load_counts_each_rejected_row_once() {
    for way in ["direct", "staged"] {
        let database = Database::new();
        let bad: Vec<i64> = (0..ROWS).filter(|id| id % 10 == 7).collect();
        let words = words(true, &bad, "\0");
        let environment = [("SAWMILL_TEST_WAY", way)];
        let test = "rejects_in_parts::as_a_child_process";
        let killed = database.kill_loads(test, &words.path, &environment, 5, |round| 1 + round);
        let target = the_way(words.rejecting(database.target("t"), Some(300)), way, &words.source);
        let report = run(&words.source, &target, &LoadOptions { unit_rows: 20, ..small() }).unwrap();
        println!("{way}: {killed} killed, then {} units resumed", report.units_resumed);
        assert!(killed >= 2, "only {killed} runs were killed before they ended");
        assert_eq!((report.rows, report.rows_rejected), (2700, 300), "{way}");
        assert!(report.verified.unwrap().matches());
        assert_eq!(places(&words.file()), bad, "{way}");
        assert_eq!(database.count("_sawmill.rejects"), 300);
        all_others(&database, "t", &bad);
        let same = with_control(|control| verify(&words.source, &target, &small(), control)).unwrap();
        assert!(same.matches());
    }
}

#[test]
fn killed_connections_neither_lose_nor_duplicate_a_bad_row() {
    let database = Database::new();
    let bad: Vec<i64> = (0..ROWS).filter(|id| id % 10 == 7).collect();
    let words = words(true, &bad, "\0");
    let target = the_way(words.rejecting(database.target("t"), Some(300)), "staged", &words.source);
    let report = database.killing_connections(Duration::from_millis(40), || {
        run(&words.source, &target, &LoadOptions { unit_rows: 20, ..small() })
    });
    let report = report.unwrap();
    println!("{} retries", report.retries);
    assert_eq!((report.rows, report.rows_rejected), (2700, 300));
    assert_eq!(places(&words.file()), bad);
    all_others(&database, "t", &bad);
}
