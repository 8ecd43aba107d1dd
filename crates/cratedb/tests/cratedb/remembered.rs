//! Files that are appended once, whatever list they come in, and tables that have lost what was loaded.

use std::path::{Path, PathBuf};

use sawmill_cratedb::{CrateDb, CrateOptions, Transport, crate_status};
use sawmill_cratedb_standin::Fault;
use sawmill_loader::{LoadOptions, LoadReport, LoadState, Mode};
use sawmill_source::{Kind, ParquetFiles, Result};

use crate::cluster::{Cluster, append, keyed, people_from, run, small, verify, with_control};

/// A directory of files, and a table that they are appended to.
struct Directory {
    cluster: Cluster,
    table: String,
    options: CrateOptions,
    directory: tempfile::TempDir,
}

const ROWS: u64 = 700;

fn keyless() -> CrateOptions {
    CrateOptions { row_key: None, at_least_once: true, ..keyed(Transport::Http) }
}

impl Directory {
    /// With the file a, of `ROWS` people.
    fn new(cluster: Cluster, options: CrateOptions) -> Self {
        let (table, directory) = (cluster.table(), tempfile::tempdir().unwrap());
        let options = CrateOptions { batch_rows: 100, ..options };
        let new = Self { cluster, table, options, directory };
        let key = match &new.options.row_key {
            Some(name) => format!("\"{name}\" TEXT PRIMARY KEY, "),
            None => String::new(),
        };
        new.sql(&format!(
            "CREATE TABLE doc.TABLE ({key}\"id\" BIGINT, \"name\" TEXT) WITH (number_of_replicas = '0')"
        ));
        new.file("a", 0);
        new
    }

    /// For rows with a row key, and without a key.
    fn of_both_kinds() -> [Self; 2] {
        [keyed(Transport::Auto), keyless()].map(|options| Self::new(Cluster::any(), options))
    }

    fn file(&self, name: &str, number: u64) -> PathBuf {
        let path = self.directory.path().join(format!("{name}.parquet"));
        people_from(&path, (number * ROWS) as i64, ROWS as i64);
        path
    }

    fn only(&self, name: &str) -> ParquetFiles {
        ParquetFiles::open(&[self.directory.path().join(format!("{name}.parquet"))]).unwrap()
    }

    fn source(&self) -> ParquetFiles {
        let files = std::fs::read_dir(self.directory.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> = files.filter(|path| is_parquet(path)).collect();
        files.sort();
        ParquetFiles::open(&files).unwrap()
    }

    fn target(&self) -> CrateDb {
        append(self.new_table())
    }

    fn new_table(&self) -> CrateDb {
        self.cluster.target(&self.table, self.options.clone())
    }

    fn append(&self) -> Result<LoadReport> {
        self.append_with(LoadOptions { verify: true, ..small() })
    }

    fn append_with(&self, options: LoadOptions) -> Result<LoadReport> {
        run(&self.source(), &self.target(), &options)
    }

    /// Runs a statement about `doc.TABLE`, the table.
    fn sql(&self, statement: &str) {
        self.cluster.sql(&statement.replace("doc.TABLE", &format!("\"doc\".\"{}\"", self.table)));
    }

    #[track_caller]
    fn holds_files(&self, files: u64) {
        assert_eq!(self.cluster.count(&self.table), files * ROWS);
    }

    /// A load that ends after the first of its units.
    fn break_off(&self, source: &ParquetFiles) {
        let standin = self.cluster.standin.as_ref().unwrap();
        standin.faults().plan((0..6).map(|_| None).chain([Some(Fault::Disappear)]));
        let options = LoadOptions { retries: 0, degree: 1, ..small() };
        run(source, &self.target(), &options).unwrap_err();
        standin.restart(0);
    }
}

fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "parquet")
}

#[test]
fn a_directory_that_grows_is_loaded_file_by_file() {
    for files in Directory::of_both_kinds() {
        let report = files.append().unwrap();
        assert_eq!((report.files_loaded, report.files_already, report.rows), (1, 0, ROWS));
        files.file("b", 1);
        for (loaded, already, rows_loaded) in [(1, 1, ROWS), (0, 2, 0)] {
            let report = files.append().unwrap();
            assert_eq!((report.files_loaded, report.files_already), (loaded, already));
            assert_eq!((report.rows, report.rows_loaded), (2 * ROWS, rows_loaded));
            assert_eq!(report.rows_there_before, 0);
            assert!(report.verified.unwrap().matches());
            files.holds_files(2);
        }
        // Before the others in the list, and among them.
        files.file("A", 2);
        files.file("aa", 3);
        let report = files.append().unwrap();
        assert_eq!((report.files_loaded, report.files_already, report.rows), (2, 2, 4 * ROWS));
        assert!(report.verified.unwrap().matches());
        let report = files.append().unwrap();
        assert_eq!((report.state, report.files_already), (LoadState::Complete, 4));
        // A part of them.
        let report =
            run(&files.only("aa"), &files.target(), &LoadOptions { verify: true, ..small() }).unwrap();
        assert_eq!((report.state, report.rows), (LoadState::Complete, ROWS));
        assert!(report.verified.unwrap().matches());
        files.holds_files(4);
    }
}

#[test]
fn files_that_made_the_table_are_not_appended_to_it() {
    for files in Directory::of_both_kinds() {
        files.sql("DROP TABLE doc.TABLE");
        run(&files.source(), &files.new_table(), &small()).unwrap();
        files.file("b", 1);
        let report = files.append().unwrap();
        assert_eq!((report.files_loaded, report.files_already, report.rows), (1, 1, 2 * ROWS));
        assert!(report.verified.unwrap().matches());
        files.holds_files(2);
    }
}

#[test]
fn what_a_replacement_has_removed_is_not_remembered() {
    for files in Directory::of_both_kinds() {
        files.append().unwrap();
        files.file("b", 1);
        run(&files.only("b"), &files.new_table().mode(Mode::Replace), &small()).unwrap();
        // The very list that was complete before, too.
        let report = run(&files.only("a"), &files.target(), &small()).unwrap();
        assert_eq!((report.files_loaded, report.rows_loaded), (1, ROWS));
        assert_eq!(files.append().unwrap().files_already, 2);
        files.holds_files(2);
    }
}

#[test]
fn files_are_loaded_once_more_where_that_is_asked_for() {
    for files in Directory::of_both_kinds() {
        files.append().unwrap();
        files.file("b", 1);
        let report = files.append_with(LoadOptions { again: true, ..small() }).unwrap();
        assert_eq!(report.files_loaded, 2);
        match files.options.at_least_once {
            true => files.holds_files(3),
            false => {
                assert_eq!((report.rows_loaded, report.rows_there_before), (ROWS, ROWS));
                files.holds_files(2);
            }
        }
        assert_eq!(files.append_with(small()).unwrap().files_already, 2);
    }
}

#[test]
fn other_columns_of_a_file_are_refused_unless_asked_for() {
    let files = Directory::new(Cluster::any(), keyless());
    files.append().unwrap();
    let mapped = |again: bool| {
        let source = files.source().select(&["id".to_owned()], &[]).unwrap();
        run(&source, &files.target(), &LoadOptions { again, ..small() })
    };
    let error = mapped(false).unwrap_err();
    assert_eq!(error.kind(), Kind::Exists);
    assert!(error.what().contains("a.parquet is in the table already"), "{error}");
    files.holds_files(1);
    assert_eq!(mapped(true).unwrap().files_loaded, 1);
    files.holds_files(2);
}

#[test]
fn a_load_that_was_broken_off_is_ended_before_the_new_files_are_loaded() {
    for options in [keyed(Transport::Http), keyless()] {
        let files = Directory::new(Cluster::standin(), options);
        files.append_with(small()).unwrap();
        files.file("b", 1);
        files.break_off(&files.only("b"));
        assert!(files.cluster.count(&files.table) > ROWS);
        files.file("aa", 2);
        let report = files.append_with(small()).unwrap();
        assert_eq!((report.state, report.rows), (LoadState::Resumed, 3 * ROWS));
        assert_eq!((report.files_loaded, report.files_already), (2, 1));
        let rows = files.cluster.count(&files.table);
        // Without a key the rows of the unit that was broken off are there twice.
        assert_eq!(rows > 3 * ROWS, files.options.at_least_once, "{rows}");
    }
}

#[test]
fn only_with_a_key_a_load_that_was_broken_off_is_loaded_around() {
    for options in [keyed(Transport::Http), keyless()] {
        let files = Directory::new(Cluster::standin(), options);
        files.file("b", 1);
        files.break_off(&files.source());
        let one = run(&files.only("a"), &files.target(), &small());
        match files.options.at_least_once {
            true => {
                let error = one.unwrap_err();
                assert_eq!(error.kind(), Kind::Exists);
                assert!(error.what().contains("b.parquet is not among the files"), "{error}");
            }
            false => {
                assert_eq!(one.unwrap().rows, ROWS);
                let report = files.append().unwrap();
                assert_eq!(report.rows, 2 * ROWS);
                assert!(report.verified.unwrap().matches());
                files.holds_files(2);
            }
        }
    }
}

#[test]
fn a_touched_file_of_an_earlier_list_is_compared_and_a_changed_one_refused() {
    for files in Directory::of_both_kinds() {
        files.append().unwrap();
        files.file("b", 1);
        files.file("a", 0);
        assert_eq!(files.append_with(small()).unwrap().files_already, 1);
        // As if the file had held something else when it was loaded.
        let units = format!("\"{}\".\"units\"", files.cluster.checkpoints());
        files.cluster.sql(&format!("REFRESH TABLE {units}"));
        let sum = "0".repeat(32);
        files.cluster.sql(&format!("UPDATE {units} SET \"content_sum\" = '{sum}' WHERE \"first_row\" = 0"));
        files.file("a", 0);
        files.file("c", 2);
        let error = files.append_with(small()).unwrap_err();
        assert_eq!(error.kind(), Kind::Changed);
        assert!(error.place().contains(".parquet, row group 0"), "{error}");
        files.holds_files(2);
    }
}

#[test]
fn a_table_that_has_lost_rows_is_not_called_complete() {
    for files in Directory::of_both_kinds() {
        files.append().unwrap();
        files.file("b", 1);
        files.append().unwrap();
        files.sql("DELETE FROM doc.TABLE WHERE \"id\" > 999");
        files.sql("REFRESH TABLE doc.TABLE");
        let error = run(&files.only("b"), &files.target(), &small()).unwrap_err();
        assert_eq!(error.kind(), Kind::Changed);
        assert!(error.what().contains("the table has 1,000 rows; it had 1,400 when"), "{error}");
        assert!(error.advice().contains("forget") && error.advice().contains("--again"), "{error}");
        // Rows may have been deleted on purpose.
        files.file("c", 2);
        let report = files.append_with(small()).unwrap();
        assert_eq!((report.files_loaded, report.files_already), (1, 2));
        assert!(
            report.notes.iter().any(|note| note.contains("1,000 rows; it had 1,400")),
            "{:?}",
            report.notes
        );
        files.sql("DELETE FROM doc.TABLE");
        files.file("d", 3);
        let error = files.append_with(small()).unwrap_err();
        assert!(error.what().contains("the table has 0 rows"), "{error}");
        // The rows are gone, and so their records are.
        run(&files.only("a"), &files.target(), &LoadOptions { again: true, ..small() }).unwrap();
        let report = files.append().unwrap();
        assert_eq!((report.files_loaded, report.files_already), (3, 1));
        assert!(report.verified.unwrap().matches());
        files.holds_files(4);
    }
}

#[test]
fn a_file_of_other_content_is_refused_or_appended_with_a_note() {
    for files in Directory::of_both_kinds() {
        files.append().unwrap();
        people_from(&files.directory.path().join("a.parquet"), 5_000, ROWS as i64 - 1);
        let error = files.append_with(small()).unwrap_err();
        assert!(error.to_string().contains("other content"), "{error}");
        assert!(!error.advice().contains("upsert"), "CrateDB has no such mode: {error}");
        let report = files.append_with(LoadOptions { append_changed: true, ..small() }).unwrap();
        assert_eq!((report.files_loaded, report.files_already), (1, 0));
        assert!(report.notes.iter().any(|note| note.contains("other content")), "{:?}", report.notes);
        assert_eq!(files.cluster.count(&files.table), 2 * ROWS - 1);
        // Both contents are on record, and either is found when it comes once more.
        files.file("a", 0);
        for _ in 0..2 {
            let options = LoadOptions { append_changed: true, verify: true, ..small() };
            let report = files.append_with(options).unwrap();
            assert_eq!((report.files_loaded, report.files_already, report.rows), (0, 1, ROWS));
            assert_eq!(files.cluster.count(&files.table), 2 * ROWS - 1);
        }
        let loads = with_control(|control| {
            crate_status(&files.cluster.server(), &files.cluster.checkpoints(), None, control)
        });
        assert_eq!(loads.unwrap().iter().map(|load| load.rows).collect::<Vec<_>>(), [ROWS - 1, ROWS]);
    }
}

#[test]
fn the_status_lists_files_with_their_rows() {
    for files in Directory::of_both_kinds() {
        files.file("b", 1);
        files.append().unwrap();
        let loads = with_control(|control| {
            crate_status(&files.cluster.server(), &files.cluster.checkpoints(), None, control)
        });
        let listed: Vec<(bool, Option<u64>)> =
            loads.unwrap()[0].files.iter().map(|file| (file.name.ends_with(".parquet"), file.rows)).collect();
        assert_eq!(listed, [(true, Some(ROWS)); 2]);
    }
}

#[test]
fn two_loads_that_share_a_file_and_begin_at_once_load_it_once() {
    for files in Directory::of_both_kinds() {
        let one = files.source();
        files.file("b", 1);
        let both = files.source();
        let (target, options) = (files.target(), small());
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
        files.append_with(small()).unwrap();
        files.holds_files(2);
        assert!(verify(&both, &files.new_table()).matches());
    }
}

#[test]
fn a_list_on_record_is_not_complete_while_an_append_of_a_changed_file_is_interrupted() {
    for options in [keyed(Transport::Http), keyless()] {
        let files = Directory::new(Cluster::standin(), options);
        files.file("b", 1);
        files.append().unwrap();
        let path = files.directory.path().join("a.parquet");
        let kept = std::fs::read(&path).unwrap();
        people_from(&path, 50_000, 2 * ROWS as i64);
        let standin = files.cluster.standin.as_ref().unwrap();
        let options = LoadOptions { retries: 0, degree: 1, append_changed: true, ..small() };
        for requests in 6.. {
            standin.faults().plan((0..requests).map(|_| None).chain([Some(Fault::Disappear)]));
            run(&files.source(), &files.target(), &options).unwrap_err();
            standin.restart(0);
            if files.cluster.count(&files.table) > 2 * ROWS {
                break;
            }
        }
        std::fs::write(&path, kept).unwrap();
        for append_changed in [false, true] {
            let error = files.append_with(LoadOptions { append_changed, ..small() }).unwrap_err();
            assert_eq!(error.kind(), Kind::Changed, "{error}");
        }
    }
}
