//! Files that are appended once, in any list, and tables that have lost loaded rows.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sawmill_loader::{LoadOptions, LoadReport, LoadState, Mode, load};
use sawmill_postgres::{Postgres, status};
use sawmill_profile::{Profile, format_grouped};
use sawmill_source::{Control, Kind, Limited, ParquetFiles, Result, Source};

use crate::database::{Database, run, small, with_control};
use crate::fixture::people;
use crate::slowed::{Slowed, halt};

/// A table, and a directory of files to append to it.
pub struct Directory {
    pub database: Database,
    directory: tempfile::TempDir,
}

/// Rows of a file.
pub const ROWS: usize = 3000;

impl Directory {
    /// With the files a and b, of `ROWS` people each.
    pub fn new() -> Self {
        let new = Self { database: Database::new(), directory: tempfile::tempdir().unwrap() };
        let table = "CREATE TABLE t (id bigint, name text, amount float8)";
        new.database.client().batch_execute(table).unwrap();
        new.file("a", 0);
        new
    }

    pub fn file(&self, name: &str, number: usize) -> PathBuf {
        let path = self.path().join(format!("{name}.parquet"));
        people(&path, (number * ROWS) as i64, ROWS, 1000);
        path
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn source(&self) -> ParquetFiles {
        self.source_at(self.path())
    }

    fn source_at(&self, path: &Path) -> ParquetFiles {
        let files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        ParquetFiles::open(&files.collect::<Vec<_>>()).unwrap()
    }

    pub fn target(&self) -> Postgres {
        self.database.target("t").mode(Mode::Append)
    }

    pub fn append(&self) -> Result<LoadReport> {
        run(&self.source(), &self.target(), &small())
    }

    fn append_unverified(&self) -> Result<LoadReport> {
        run(&self.source(), &self.target(), &LoadOptions { verify: false, ..small() })
    }

    /// Loads until some rows are committed, but not all.
    pub fn begin(&self, source: &dyn Source) {
        let (cancel, phase) = (AtomicBool::new(false), Profile::new().phase("load"));
        let wait = halt(&phase, 300, &cancel);
        let slowed = Slowed::new(source, &wait);
        let error = std::thread::scope(|scope| {
            scope.spawn(|| {
                let end = Instant::now() + Duration::from_secs(20);
                while phase.rows() < 300 && Instant::now() < end {
                    std::thread::sleep(Duration::from_micros(50));
                }
                cancel.store(true, Relaxed);
            });
            let options =
                LoadOptions { degree: 1, unit_rows: 20, batch_rows: 20, append_changed: true, ..small() };
            load(&slowed, &self.target(), &options, &Control::new(&cancel, &phase)).unwrap_err()
        });
        assert_eq!(error.kind(), Kind::Cancelled, "{error}");
    }

    pub fn execute(&self, sql: &str) {
        self.database.client().batch_execute(sql).unwrap();
    }

    #[track_caller]
    fn holds_files(&self, files: i64) {
        let row =
            self.database.client().query_one("SELECT count(*), count(DISTINCT id) FROM t", &[]).unwrap();
        let rows = files * ROWS as i64;
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (rows, rows));
    }
}

#[test]
fn a_growing_directory_is_loaded_file_by_file() {
    let files = Directory::new();
    let report = files.append().unwrap();
    assert_eq!((report.files_loaded, report.files_already, report.rows), (1, 0, ROWS as u64));
    files.file("b", 1);
    for (loaded, already, rows_loaded) in [(1, 1, ROWS), (0, 2, 0)] {
        let report = files.append().unwrap();
        assert_eq!((report.files_loaded, report.files_already), (loaded, already));
        assert_eq!((report.rows, report.rows_loaded), (2 * ROWS as u64, rows_loaded as u64));
        assert!(report.verified.unwrap().matches());
        files.holds_files(2);
    }
    // Before the others in the list, and among them.
    files.file("_c", 2);
    files.file("aa", 3);
    let report = files.append().unwrap();
    assert_eq!((report.files_loaded, report.files_already, report.rows), (2, 2, 4 * ROWS as u64));
    files.holds_files(4);
    let report = files.append().unwrap();
    assert_eq!((report.state, report.files_already), (LoadState::Complete, 4));
    // Some of them.
    let one = ParquetFiles::open(&[files.path().join("aa.parquet")]).unwrap();
    let report = run(&one, &files.target(), &small()).unwrap();
    assert_eq!((report.state, report.rows), (LoadState::Complete, ROWS as u64));
    files.holds_files(4);
}

#[test]
fn files_that_made_the_table_are_not_appended_to_it() {
    let files = Directory::new();
    files.execute("DROP TABLE t");
    run(&files.source(), &files.database.target("t"), &small()).unwrap();
    files.file("b", 1);
    let error = run(&files.source(), &files.database.target("t"), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Exists);
    assert!(error.advice().contains("append"), "{error}");
    let report = files.append().unwrap();
    assert_eq!((report.files_loaded, report.files_already, report.rows), (1, 1, 2 * ROWS as u64));
    files.holds_files(2);
    // The load that created the table is still complete, and can be verified.
    let one = ParquetFiles::open(&[files.path().join("a.parquet")]).unwrap();
    let report = run(&one, &files.database.target("t"), &small()).unwrap();
    assert_eq!(report.state, LoadState::Complete);
    assert!(report.verified.unwrap().matches());
}

#[test]
fn files_are_loaded_again_on_request() {
    let files = Directory::new();
    files.append().unwrap();
    files.file("b", 1);
    let again = LoadOptions { again: true, ..small() };
    for rows in [3, 5] {
        let report = run(&files.source(), &files.target(), &again).unwrap();
        assert_eq!((report.files_loaded, report.rows_loaded), (2, 2 * ROWS as u64));
        assert!(report.verified.unwrap().matches());
        assert_eq!(files.database.count("t"), rows * ROWS as i64);
    }
    // Then they are remembered, as often as they were loaded.
    assert_eq!(files.append_unverified().unwrap().files_already, 2);
    assert_eq!(files.database.count("t"), 5 * ROWS as i64);
}

#[test]
fn other_columns_other_rows_and_other_tables_are_other_loads() {
    let files = Directory::new();
    files.append().unwrap();
    files.execute("CREATE TABLE u (LIKE t); CREATE TABLE v (LIKE t)");
    let all = run(&files.source(), &files.database.target("u").mode(Mode::Append), &small()).unwrap();
    assert_eq!(all.files_loaded, 1);
    let load = |columns: &[&str], again: bool| {
        let columns: Vec<String> = columns.iter().map(|column| (*column).to_owned()).collect();
        let source = files.source().select(&columns, &[]).unwrap();
        // Rows appended between two loads of the same columns cannot be separated from theirs by a sum.
        let options = LoadOptions { verify: false, again, ..small() };
        run(&source, &files.database.target("v").mode(Mode::Append), &options)
    };
    let mapped = |columns: &[&str]| load(columns, false).unwrap().files_loaded;
    assert_eq!(mapped(&["id"]), 1);
    // The rows of the file would be there twice.
    assert_eq!(load(&["id", "name"], false).unwrap_err().kind(), Kind::Exists);
    assert_eq!(load(&["id", "name"], true).unwrap().files_loaded, 1);
    assert_eq!([mapped(&["id"]), mapped(&["id", "name"])], [0, 0]);
    assert_eq!(files.database.count("v"), 2 * ROWS as i64);
    files.file("b", 1);
    assert_eq!(mapped(&["id"]), 1);
    assert_eq!(files.database.count("v"), 3 * ROWS as i64);
    // The first rows of files are remembered only by the list.
    let source = files.source();
    let report = run(&Limited::new(&source, 10), &files.target(), &small()).unwrap();
    assert_eq!(report.rows_loaded, 10);
}

#[test]
fn the_same_file_is_recognized_by_every_path_to_it() {
    let files = Directory::new();
    files.append().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("link");
    std::os::unix::fs::symlink(files.path(), &link).unwrap();
    assert_eq!(run(&files.source_at(&link), &files.target(), &small()).unwrap().files_already, 1);
    let link = elsewhere.path().join("other.parquet");
    std::os::unix::fs::symlink(files.path().join("a.parquet"), &link).unwrap();
    let source = ParquetFiles::open(&[link]).unwrap();
    assert_eq!(run(&source, &files.target(), &small()).unwrap().files_already, 1);
    files.holds_files(1);
}

#[test]
fn files_whose_names_differ_in_a_byte_that_is_not_utf8_are_different_files() {
    let files = Directory::new();
    std::fs::remove_file(files.path().join("a.parquet")).unwrap();
    let named = |name: &[u8]| files.path().join(std::ffi::OsStr::from_bytes(name));
    for (number, name) in
        [&b"caf\xe9.parquet"[..], b"caf\xe8.parquet", b"caf\\xE9.parquet"].iter().enumerate()
    {
        people(&named(name), (number * ROWS) as i64, ROWS, 1000);
        let report = files.append().unwrap();
        assert_eq!((report.files_loaded, report.files_already), (1, number as u64));
        files.holds_files(number as i64 + 1);
    }
    let server = files.database.url.parse().unwrap();
    let loads = with_control(|control| status(&server, "_sawmill", None, control)).unwrap();
    let listed = |end: &str| loads.iter().flat_map(|load| &load.files).any(|file| file.name.ends_with(end));
    assert!(
        listed("/caf\\xE8.parquet") && listed("/caf\\xE9.parquet") && listed("/caf\\\\xE9.parquet"),
        "{loads:?}"
    );
}

#[test]
fn an_interrupted_load_is_finished_before_new_files_are_loaded() {
    let files = Directory::new();
    files.append().unwrap();
    files.file("b", 1);
    files.begin(&files.source());
    assert!(files.database.count("t") > ROWS as i64);
    files.file("aa", 2);
    let report = files.append().unwrap();
    assert_eq!((report.state, report.rows), (LoadState::Resumed, 3 * ROWS as u64));
    assert_eq!((report.files_loaded, report.files_already), (2, 1));
    files.holds_files(3);
}

#[test]
fn an_interrupted_load_is_not_bypassed() {
    let files = Directory::new();
    files.file("b", 1);
    files.begin(&files.source());
    let one = ParquetFiles::open(&[files.path().join("a.parquet")]).unwrap();
    let error = run(&one, &files.target(), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Exists);
    assert!(error.what().contains("b.parquet is not among the files"), "{error}");
    assert!(error.advice().contains("forget"), "{error}");
    files.append().unwrap();
    files.holds_files(2);
}

#[test]
fn a_touched_file_of_an_earlier_list_is_compared_and_a_changed_one_refused() {
    let files = Directory::new();
    files.append().unwrap();
    files.file("b", 1);
    files.file("a", 0);
    assert_eq!(files.append_unverified().unwrap().files_already, 1);
    // As if the file had had other content when it was loaded.
    files.execute(
        "UPDATE _sawmill.units SET content_sum = repeat('0', 32) WHERE row_group = 1 \
         AND load_id = (SELECT load_id FROM _sawmill.loads ORDER BY begun LIMIT 1)",
    );
    files.file("a", 0);
    files.file("c", 2);
    let error = files.append_unverified().unwrap_err();
    assert_eq!(error.kind(), Kind::Changed);
    assert!(
        error.place().contains("a.parquet, row group 1") && error.advice().contains("--again"),
        "{error}"
    );
    files.holds_files(2);
}

#[test]
fn a_table_that_has_lost_rows_is_not_called_complete() {
    for loss in ["TRUNCATE t", "DELETE FROM t WHERE id = 77", "DELETE FROM t", "DELETE FROM t; VACUUM FULL t"]
    {
        let files = Directory::new();
        files.append().unwrap();
        let losses: Vec<&str> = loss.split("; ").collect();
        losses.iter().for_each(|loss| files.execute(loss));
        let error = files.append().unwrap_err();
        assert_eq!(error.kind(), Kind::Mismatch);
        let rows = format_grouped(files.database.count("t") as u64);
        let found = format!("the table has {rows} rows; according to the records 3,000 were loaded into it");
        assert!(error.what().contains(&found), "{loss}: {error}");
        assert!(error.advice().contains("forget") && error.advice().contains("--again"), "{error}");
        let report = run(&files.source(), &files.target(), &LoadOptions { again: true, ..small() }).unwrap();
        assert_eq!((report.state, report.rows_loaded), (LoadState::New, ROWS as u64));
        if rows == "0" {
            // The records of the missing rows are missing as well.
            assert_eq!(files.append().unwrap().state, LoadState::Complete);
            files.holds_files(1);
        }
    }
}

#[test]
fn a_new_table_that_has_lost_rows_is_not_called_complete() {
    let files = Directory::new();
    let people = files.database.target("people");
    run(&files.source(), &people, &small()).unwrap();
    files.execute("DELETE FROM people WHERE id < 5");
    let error = run(&files.source(), &people, &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Mismatch);
    assert!(error.what().contains("2,995 rows; according to the records 3,000 were loaded"), "{error}");
    assert!(error.advice().contains("drop the table"), "{error}");
    // A replacement makes it complete again.
    let replaced = people.clone().mode(Mode::Replace);
    run(&files.source(), &replaced, &small()).unwrap();
    files.execute("TRUNCATE people");
    let report = run(&files.source(), &replaced, &small()).unwrap();
    assert_eq!((report.state, files.database.count("people")), (LoadState::New, ROWS as i64));
    // Rows of others do not hide that, and are reported.
    files.execute("INSERT INTO people SELECT * FROM people LIMIT 7");
    let report = run(&files.source(), &replaced, &LoadOptions { verify: false, ..small() }).unwrap();
    assert_eq!(report.state, LoadState::Complete);
    assert!(
        report
            .notes
            .iter()
            .any(|note| note.contains("3,007 rows; according to the records 3,000 were loaded")),
        "{:?}",
        report.notes
    );
}

#[test]
fn an_interrupted_load_does_not_resume_when_its_rows_are_missing() {
    for (mode, table) in
        [(Mode::Append, "t"), (Mode::Create, "u__sawmill_loading"), (Mode::Upsert, "k__sawmill_loading")]
    {
        let files = Directory::new();
        files.execute("CREATE TABLE k (id bigint PRIMARY KEY, name text, amount float8)");
        let target = match mode {
            Mode::Append => files.target(),
            Mode::Create => files.database.target("u"),
            _ => files.database.target("k").mode(Mode::Upsert).key(vec!["id".into()]),
        };
        let (cancel, phase) = (AtomicBool::new(false), Profile::new().phase("load"));
        let source = files.source();
        let wait = halt(&phase, 300, &cancel);
        let slowed = Slowed::new(&source, &wait);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let end = Instant::now() + Duration::from_secs(20);
                while phase.rows() < 300 && Instant::now() < end {
                    std::thread::sleep(Duration::from_micros(50));
                }
                cancel.store(true, Relaxed);
            });
            let options =
                LoadOptions { degree: 1, unit_rows: 20, batch_rows: 20, append_changed: true, ..small() };
            load(&slowed, &target, &options, &Control::new(&cancel, &phase)).unwrap_err()
        });
        files.execute(&format!("TRUNCATE {table}"));
        let error = run(&source, &target, &small()).unwrap_err();
        assert_eq!(error.kind(), Kind::Mismatch, "{error}");
        assert!(error.what().contains("the table has 0 rows; "), "{error}");
        assert!(error.place().contains(table) && error.advice().contains("forget"), "{error}");
    }
}

#[test]
fn missing_merged_rows_are_reported() {
    let files = Directory::new();
    files.execute("CREATE TABLE k (id bigint PRIMARY KEY, name text, amount float8)");
    let target = files.database.target("k").mode(Mode::Upsert).key(vec!["id".into()]);
    run(&files.source(), &target, &small()).unwrap();
    files.execute("DELETE FROM k WHERE id = 4");
    let error = run(&files.source(), &target, &small()).unwrap_err();
    assert!(error.kind() == Kind::Mismatch && error.advice().contains("--again"), "{error}");
    run(&files.source(), &target, &LoadOptions { again: true, ..small() }).unwrap();
    assert_eq!(files.database.count("k"), ROWS as i64);
}

#[test]
fn a_table_that_was_dropped_and_created_again_is_filled_only_if_it_is_empty() {
    let files = Directory::new();
    files.append().unwrap();
    files.execute("CREATE TABLE kept AS TABLE t; DROP TABLE t; ALTER TABLE kept RENAME TO t");
    for _ in 0..2 {
        let error = files.append().unwrap_err();
        assert_eq!(error.kind(), Kind::Mismatch);
        assert!(error.what().contains("whether") && error.advice().contains("--again"), "{error}");
        // By the list as well as by the file.
        files.file("b", 1);
    }
    files.execute("DROP TABLE t; CREATE TABLE t (id bigint, name text, amount float8)");
    assert_eq!(files.append().unwrap().files_loaded, 2);
    files.holds_files(2);
}

#[test]
fn new_files_are_appended_to_a_table_whose_oldest_rows_were_deleted_with_a_note() {
    let files = Directory::new();
    files.append().unwrap();
    files.execute("DELETE FROM t WHERE id < 1000");
    files.file("b", 1);
    let report = files.append_unverified().unwrap();
    assert_eq!((report.files_loaded, report.files_already), (1, 1));
    assert!(
        report
            .notes
            .iter()
            .any(|note| note.contains("2,000 rows; according to the records 3,000 were loaded")),
        "{:?}",
        report.notes
    );
    assert_eq!(files.database.count("t"), 2 * ROWS as i64 - 1000);
}

#[test]
fn rows_removed_by_another_mode_are_not_remembered() {
    let files = Directory::new();
    files.append().unwrap();
    files.file("b", 1);
    let other = ParquetFiles::open(&[files.path().join("b.parquet")]).unwrap();
    for mode in [Mode::Truncate, Mode::Replace] {
        run(&other, &files.database.target("t").mode(mode), &small()).unwrap();
        let report = files.append().unwrap();
        assert_eq!((report.files_loaded, report.files_already), (1, 1), "{mode:?}");
        files.holds_files(2);
    }
}

#[test]
fn tables_of_lists_that_have_lost_rows_are_not_called_complete() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, ROWS, 1000);
    let database = Database::new();
    let source = ParquetFiles::open(&[&path]).unwrap();
    crate::tables::load(&source, database.target("t"), false, &small()).unwrap();
    database.client().batch_execute("DELETE FROM t WHERE id = 5").unwrap();
    let error = crate::tables::load(&source, database.target("t"), false, &small()).unwrap_err();
    assert!(error.kind() == Kind::Mismatch && error.what().contains("2,999 rows"), "{error}");
}

#[test]
fn a_file_with_other_content_is_refused_or_appended_with_a_note() {
    let files = Directory::new();
    files.append().unwrap();
    people(&files.path().join("a.parquet"), 5_000_000, ROWS, 500);
    let error = files.append().unwrap_err();
    assert!(
        error.kind() == Kind::Exists && error.to_string().contains("a.parquet was loaded before"),
        "{error}"
    );
    let options = LoadOptions { append_changed: true, ..small() };
    let report = run(&files.source(), &files.target(), &options).unwrap();
    assert_eq!((report.files_loaded, report.files_already), (1, 0));
    let note = report.notes.iter().find(|note| note.contains("other content")).unwrap();
    assert!(note.contains("a.parquet was loaded before") && note.contains("those rows stay"), "{note}");
    files.holds_files(2);
}

#[test]
fn a_load_followed_by_one_with_other_columns_is_complete_but_not_called_verified() {
    let files = Directory::new();
    files.append().unwrap();
    let some = files.source().select(&["id".to_owned()], &[]).unwrap();
    let error = run(&some, &files.target(), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Exists);
    run(&some, &files.target(), &LoadOptions { again: true, ..small() }).unwrap();
    let report = files.append().unwrap();
    assert_eq!(report.state, LoadState::Complete);
    assert!(report.verified.is_none());
    assert!(report.notes.iter().any(|note| note.starts_with("not verified")), "{:?}", report.notes);
}

#[test]
fn a_file_is_appended_to_a_new_table_all_of_whose_rows_are_recorded() {
    let files = Directory::new();
    files.append().unwrap();
    files.execute("DROP TABLE t");
    files.file("b", 1);
    let other = ParquetFiles::open(&[files.path().join("b.parquet")]).unwrap();
    run(&other, &files.database.target("t"), &small()).unwrap();
    let report = files.append().unwrap();
    assert_eq!((report.files_loaded, report.files_already), (1, 1));
    files.holds_files(2);
}

#[test]
fn the_status_lists_files_with_their_rows() {
    let files = Directory::new();
    files.file("b", 1);
    files.append().unwrap();
    let server = files.database.url.parse().unwrap();
    let loads = with_control(|control| status(&server, "_sawmill", None, control)).unwrap();
    let listed: Vec<(bool, Option<u64>)> =
        loads[0].files.iter().map(|file| (file.name.ends_with(".parquet"), file.rows)).collect();
    assert_eq!(listed, [(true, Some(ROWS as u64)); 2]);
}

#[test]
fn two_loads_that_share_a_file_and_begin_at_once_load_it_once() {
    let files = Directory::new();
    let one = files.source();
    files.file("b", 1);
    let both = files.source();
    let (target, options) = (files.target(), LoadOptions { verify: false, ..small() });
    let results = std::thread::scope(|scope| {
        let sources: [&ParquetFiles; 2] = [&one, &both];
        let loads = sources.map(|source| scope.spawn(|| run(source, &target, &options)));
        loads.map(|load| load.join().unwrap())
    });
    for result in results {
        if let Err(error) = result {
            assert!([Kind::Busy, Kind::Exists].contains(&error.kind()), "{error}");
        }
    }
    files.append_unverified().unwrap();
    files.holds_files(2);
}
