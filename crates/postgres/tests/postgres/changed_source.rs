//! Files whose content has changed since they were loaded, with the same names, lengths and footers.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use sawmill_loader::{LoadOptions, LoadState, Mode, RejectOptions, load};
use sawmill_postgres::Postgres;
use sawmill_profile::Profile;
use sawmill_source::{Control, Error, Kind, ParquetFiles, Source};

use crate::database::{Database, run, small};
use crate::fixture::file_of;
use crate::slowed::{Slowed, halt};

const ROWS: i64 = 20_000;
/// Rows of a row group.
const GROUP: usize = 5000;

/// `id bigint, word text`, without anything in the footer that depends on the values; `word` depends on the
/// row.
fn write(path: &Path, word: impl Fn(i64) -> String) {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..ROWS))),
        ("word", Arc::new(StringArray::from_iter_values((0..ROWS).map(word)))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_enabled(false)
        .set_max_row_group_row_count(Some(GROUP));
    // In place, as a program that opens and truncates the file.
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn original(path: &Path) {
    write(path, |id| format!("word {id:05}"));
}

/// One value of the third row group differs.
fn changed(path: &Path) {
    write(path, |id| format!("{} {id:05}", if id == 12_345 { "WORD" } else { "word" }));
}

struct Words {
    database: Database,
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl Words {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("words.parquet");
        original(&path);
        Self { database: Database::new(), path, _directory: directory }
    }

    fn source(&self) -> ParquetFiles {
        ParquetFiles::open(&[&self.path]).unwrap()
    }

    fn target(&self, mode: Mode) -> Postgres {
        let table = "CREATE TABLE IF NOT EXISTS t (id bigint PRIMARY KEY, word text)";
        if !matches!(mode, Mode::Create) {
            self.database.client().batch_execute(table).unwrap();
        }
        let key = if mode == Mode::Upsert { vec!["id".to_owned()] } else { Vec::new() };
        self.database.target("t").mode(mode).key(key)
    }

    /// Loads until about this many more rows are committed.
    fn begin(&self, target: &Postgres, rows: u64) {
        let (cancel, phase) = (AtomicBool::new(false), Profile::new().phase("load"));
        let source = self.source();
        let wait = halt(&phase, rows, &cancel);
        let slowed = Slowed::new(&source, &wait);
        let error = std::thread::scope(|scope| {
            scope.spawn(|| {
                let end = Instant::now() + Duration::from_secs(20);
                while phase.rows() < rows && Instant::now() < end {
                    std::thread::sleep(Duration::from_micros(100));
                }
                cancel.store(true, Relaxed);
            });
            let options = LoadOptions { degree: 1, unit_rows: 500, ..options() };
            load(&slowed, target, &options, &Control::new(&cancel, &phase)).unwrap_err()
        });
        assert_eq!(error.kind(), Kind::Cancelled, "{error}");
    }

    /// How many rows have other words than the original.
    fn strange(&self) -> i64 {
        self.database.count("t WHERE word NOT LIKE 'word %'")
    }
}

fn options() -> LoadOptions {
    LoadOptions { verify: false, ..small() }
}

#[track_caller]
fn names_the_row_group(error: &Error) {
    assert_eq!(error.kind(), Kind::Changed, "{error}");
    assert!(error.place().ends_with("words.parquet, row group 2"), "{error}");
    assert!(error.what().contains("5000 rows") || error.what().contains("rows with content sum"), "{error}");
    assert!(error.advice().contains("restore the file") && error.advice().contains("forget"), "{error}");
}

#[test]
fn the_files_of_these_tests_have_the_same_footers() {
    let words = Words::new();
    let before = words.source();
    changed(&words.path);
    assert_eq!(words.source().files()[0].fingerprint, before.files()[0].fingerprint);
    assert_eq!(words.source().files()[0].bytes, before.files()[0].bytes);
}

#[test]
fn an_interrupted_load_is_not_finished_with_other_content() {
    for mode in [Mode::Create, Mode::Append, Mode::Truncate, Mode::Replace, Mode::Upsert] {
        let words = Words::new();
        let target = words.target(mode);
        // Two row groups and part of the third.
        words.begin(&target, 13_000);
        changed(&words.path);
        for verify in [false, true] {
            let error = run(&words.source(), &target, &LoadOptions { verify, ..options() }).unwrap_err();
            names_the_row_group(&error);
        }
        original(&words.path);
        let report = run(&words.source(), &target, &small()).unwrap();
        assert_eq!((report.state, report.rows), (LoadState::Resumed, ROWS as u64), "{mode:?}");
        assert!(report.verified.unwrap().matches());
        assert_eq!((words.database.count("t"), words.strange()), (ROWS, 0));
    }
}

#[test]
fn a_complete_load_of_a_file_that_has_changed_is_not_called_complete() {
    for (mode, verify) in [(Mode::Create, false), (Mode::Create, true), (Mode::Append, false)] {
        let words = Words::new();
        let target = words.target(mode);
        run(&words.source(), &target, &small()).unwrap();
        changed(&words.path);
        let error = run(&words.source(), &target, &LoadOptions { verify, ..options() }).unwrap_err();
        names_the_row_group(&error);
        assert!(error.advice().contains("--again"), "{error}");
        original(&words.path);
        let report = run(&words.source(), &target, &small()).unwrap();
        assert_eq!((report.state, report.rows), (LoadState::Complete, ROWS as u64));
    }
}

#[test]
fn modes_that_replace_rows_load_the_new_content() {
    for mode in [Mode::Replace, Mode::Truncate, Mode::Upsert] {
        let words = Words::new();
        let target = words.target(mode);
        run(&words.source(), &target, &small()).unwrap();
        changed(&words.path);
        let report = run(&words.source(), &target, &small()).unwrap();
        assert_eq!((report.state, report.rows_loaded), (LoadState::New, ROWS as u64), "{mode:?}");
        assert!(
            report.notes.iter().any(|note| note.contains("loaded from the beginning")),
            "{:?}",
            report.notes
        );
        assert_eq!((words.database.count("t"), words.strange()), (ROWS, 1));
    }
}

#[test]
fn an_interrupted_load_that_replaces_rows_begins_again_with_corrected_and_with_more_files() {
    for mode in [Mode::Replace, Mode::Truncate, Mode::Upsert] {
        let words = Words::new();
        let target = words.target(mode);
        words.begin(&target, 13_000);
        write(&words.path, |id| format!("{} {id:05}", if id == 12_345 { "a longer word" } else { "word" }));
        words.begin(&target, 13_000);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(Int64Array::from(vec![ROWS]))),
            ("word", Arc::new(StringArray::from(vec!["word of a new file"]))),
        ];
        let (_kept, more) = file_of(columns, 10);
        let source = ParquetFiles::open(&[&words.path, &more]).unwrap();
        let report = run(&source, &target, &small()).unwrap();
        assert_eq!((report.state, report.rows_loaded), (LoadState::New, ROWS as u64 + 1), "{mode:?}");
        assert!(report.verified.unwrap().matches());
        assert_eq!((words.database.count("t"), words.strange()), (ROWS + 1, 1));
        assert!(!words.database.has("t__sawmill_loading"));
        assert_eq!(words.database.count("_sawmill.loads"), 1, "{mode:?}");
        assert_eq!(run(&source, &target, &small()).unwrap().state, LoadState::Complete);
    }
}

#[test]
fn a_new_table_that_was_begun_is_made_from_the_beginning_when_there_are_more_files() {
    let words = Words::new();
    let target = words.target(Mode::Create);
    words.begin(&target, 13_000);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from(vec![ROWS]))),
        ("word", Arc::new(StringArray::from(vec!["word of a new file"]))),
    ];
    let (_kept, more) = file_of(columns, 10);
    // Without the file of the load that was begun its rows would be lost.
    let error = run(&ParquetFiles::open(&[&more]).unwrap(), &target, &small()).unwrap_err();
    assert!(error.what().contains("is unfinished"), "{error}");
    let report = run(&ParquetFiles::open(&[&words.path, &more]).unwrap(), &target, &small()).unwrap();
    assert_eq!((report.state, report.rows_loaded), (LoadState::New, ROWS as u64 + 1));
    assert!(report.verified.unwrap().matches());
    assert_eq!((words.database.count("t"), words.database.count("_sawmill.loads")), (ROWS + 1, 1));
}

#[test]
fn the_new_content_is_appended_on_request() {
    let words = Words::new();
    words.database.client().batch_execute("CREATE TABLE t (id bigint, word text)").unwrap();
    let target = words.database.target("t").mode(Mode::Append);
    run(&words.source(), &target, &small()).unwrap();
    changed(&words.path);
    let again = LoadOptions { again: true, ..small() };
    let report = run(&words.source(), &target, &again).unwrap();
    assert_eq!((report.state, report.rows_loaded), (LoadState::New, ROWS as u64));
    assert!(report.verified.unwrap().matches());
    assert_eq!((words.database.count("t"), words.strange()), (2 * ROWS, 1));
}

#[test]
fn a_file_that_was_touched_or_copied_is_the_same() {
    let words = Words::new();
    let target = words.target(Mode::Create);
    words.begin(&target, 6000);
    File::options().write(true).open(&words.path).unwrap().set_modified(SystemTime::now()).unwrap();
    words.begin(&target, 2000);
    let copy = words.path.with_extension("copy");
    std::fs::copy(&words.path, &copy).unwrap();
    std::fs::rename(&copy, &words.path).unwrap();
    let report = run(&words.source(), &target, &options()).unwrap();
    assert_eq!((report.state, report.rows), (LoadState::Resumed, ROWS as u64));
    original(&words.path);
    let report = run(&words.source(), &target, &options()).unwrap();
    assert_eq!((report.state, report.rows_loaded), (LoadState::Complete, 0));
}

#[test]
fn compared_content_is_trusted_until_the_file_is_touched() {
    let words = Words::new();
    let target = words.target(Mode::Create);
    std::thread::sleep(Duration::from_millis(2100));
    run(&words.source(), &target, &small()).unwrap();
    // The source is compared with the records only if it needs to be.
    let spoil = "UPDATE _sawmill.units SET content_sum = repeat('0', 32) WHERE row_group = 2";
    words.database.client().batch_execute(spoil).unwrap();
    assert_eq!(run(&words.source(), &target, &options()).unwrap().state, LoadState::Complete);
    names_the_row_group(&run(&words.source(), &target, &small()).unwrap_err());
    File::options().write(true).open(&words.path).unwrap().set_modified(SystemTime::now()).unwrap();
    names_the_row_group(&run(&words.source(), &target, &options()).unwrap_err());
}

#[test]
fn a_file_that_is_rewritten_while_it_is_loaded_is_refused_though_its_time_was_set_back() {
    let words = Words::new();
    let source = words.source();
    let modified = words.path.metadata().unwrap().modified().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    changed(&words.path);
    File::options().write(true).open(&words.path).unwrap().set_modified(modified).unwrap();
    assert_eq!(source.check_unchanged().unwrap_err().kind(), Kind::Changed);
    let error = run(&source, &words.target(Mode::Create), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Changed);
    assert!(error.place().contains("words.parquet"), "{error}");
    assert!(!words.database.has("t"));
    // The same if another file replaces it.
    let source = words.source();
    let copy = words.path.with_extension("copy");
    original(&copy);
    std::fs::rename(&copy, &words.path).unwrap();
    assert_eq!(source.check_unchanged().unwrap_err().kind(), Kind::Changed);
}

#[test]
fn rejected_rows_are_left_out_of_the_comparison() {
    let words = Words::new();
    let table = "CREATE TABLE t (id integer CHECK (id % 1000 <> 77), word text)";
    words.database.client().batch_execute(table).unwrap();
    let rejects = RejectOptions { path: words.path.with_file_name("rejects.parquet"), most: None };
    let target = words.database.target("t").mode(Mode::Append);
    let report = run(&words.source(), &target.clone().rejects(Some(rejects.clone())), &small()).unwrap();
    assert_eq!(report.rows_rejected, 20);
    original(&words.path);
    for target in [target.clone(), target.clone().rejects(Some(rejects))] {
        let report = run(&words.source(), &target, &options()).unwrap();
        assert_eq!((report.state, report.rows_rejected), (LoadState::Complete, 20));
    }
    changed(&words.path);
    names_the_row_group(&run(&words.source(), &target, &options()).unwrap_err());
}
