//! Corrected files whose rows take the place of those that they had, and the time of a load.

use std::path::PathBuf;
use std::time::Duration;

use sawmill_cratedb::{CrateDb, CrateOptions, Transport};
use sawmill_cratedb_standin::{Fault, StandIn};
use sawmill_loader::{LoadOptions, LoadReport};
use sawmill_source::{Error, LineageColumns, ParquetFiles, Source, Traced};

use crate::cluster::{Cluster, append, keyed, people, people_from, run, small, verify};

/// The files a and b, loaded into a table with the column `source`.
struct Nights {
    cluster: Cluster,
    table: String,
    options: CrateOptions,
    folder: tempfile::TempDir,
}

/// Options, and what the table has for them before its other columns: a row key, a key of its own, no key.
fn keys() -> [(CrateOptions, &'static str, &'static str); 3] {
    let options = || CrateOptions { batch_rows: 100, ..keyed(Transport::Http) };
    let without = || CrateOptions { row_key: None, ..options() };
    [
        (options(), "\"sawmill_row_key\" TEXT PRIMARY KEY, ", ""),
        (without(), "", " PRIMARY KEY"),
        (CrateOptions { at_least_once: true, ..without() }, "", ""),
    ]
}

fn replacing() -> LoadOptions {
    LoadOptions { replace_changed: true, verify: true, ..small() }
}

impl Nights {
    fn new(cluster: Cluster, (options, before, of_id): (CrateOptions, &str, &str)) -> Self {
        let (table, folder) = (cluster.table(), tempfile::tempdir().unwrap());
        cluster.sql(&format!(
            "CREATE TABLE \"doc\".\"{table}\" ({before}\"id\" BIGINT{of_id}, \"name\" TEXT, \"source\" TEXT) \
             WITH (number_of_replicas = '0')"
        ));
        let nights = Self { cluster, table, options, folder };
        nights.write("a", 0, 700);
        nights.write("b", 700, 700);
        nights.load(&["a", "b"], &small()).unwrap();
        nights
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.parquet"))
    }

    fn write(&self, name: &str, first: i64, rows: i64) {
        people_from(&self.path(name), first, rows);
    }

    fn load(&self, names: &[&str], options: &LoadOptions) -> Result<LoadReport, Error> {
        let paths: Vec<PathBuf> = names.iter().map(|name| self.path(name)).collect();
        self.load_source(&ParquetFiles::open(&paths).unwrap(), options)
    }

    fn load_source(&self, files: &dyn Source, options: &LoadOptions) -> Result<LoadReport, Error> {
        let columns = LineageColumns { file: Some("source".to_owned()), row: None };
        let target = append(self.cluster.target(&self.table, self.options.clone()));
        let target = target.lineage(columns.file.clone(), None);
        run(&Traced::new(files, columns).unwrap(), &target, options)
    }

    /// The rows of the files a and b.
    fn rows(&self) -> [u64; 2] {
        let all = self.cluster.count(&self.table);
        let of = |name: &str| {
            let (table, path) = (&self.table, self.path(name).display().to_string());
            let count = format!("SELECT count(*) FROM \"doc\".\"{table}\" WHERE \"source\" = '{path}'");
            self.cluster.sql(&count)[0][0].as_u64().unwrap()
        };
        let [a, b] = ["a", "b"].map(of);
        assert_eq!(a + b, all, "each row has its file");
        [a, b]
    }

    /// All is in the table once, and known.
    #[track_caller]
    fn are_complete(&self, rows: [u64; 2]) {
        assert_eq!(self.rows(), rows);
        let report = self.load(&["a", "b"], &replacing()).unwrap();
        assert_eq!((report.files_already, report.files_loaded, report.rows), (2, 0, rows[0] + rows[1]));
        assert!(report.verified.unwrap().matches());
    }

    /// A run that ends when the server goes away before it has this statement.
    fn break_off(&self, text: &str) {
        self.standin().restart_before(text, Duration::from_millis(50), Duration::ZERO);
        let options = LoadOptions { retries: 0, degree: 1, ..replacing() };
        self.load(&["a", "b"], &options).unwrap_err();
        while !self.standin().is_up(0) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn standin(&self) -> &StandIn {
        self.cluster.standin.as_ref().unwrap()
    }
}

#[test]
fn the_rows_of_a_corrected_file_replace_those_that_it_had() {
    for key in keys() {
        let nights = Nights::new(Cluster::any(), key);
        nights.are_complete([700, 700]);
        nights.write("a", 0, 500);
        let error = nights.load(&["a", "b"], &small()).unwrap_err();
        assert!(error.what().contains("was loaded before with other content"), "{error}");
        assert_eq!(nights.rows(), [700, 700]);
        let report = nights.load(&["a", "b"], &replacing()).unwrap();
        assert_eq!((report.files_loaded, report.files_already, report.rows), (1, 1, 1_200));
        assert!(report.verified.unwrap().matches());
        let note = format!("500 rows of {} replaced 700 rows that it had", nights.path("a").display());
        assert!(report.notes.iter().any(|found| **found == *note), "{:?}", report.notes);
        nights.are_complete([500, 700]);
        // The earlier content is another correction, and so is a file without some of its rows.
        for rows in [700, 10] {
            nights.write("a", 0, rows);
            nights.load(&["a", "b"], &small()).unwrap_err();
            nights.load(&["a", "b"], &replacing()).unwrap();
            nights.are_complete([rows as u64, 700]);
        }
    }
}

#[test]
fn a_corrected_file_with_the_same_footer_is_replaced() {
    for key in keys() {
        let nights = Nights::new(Cluster::any(), key);
        // The second time it is the load of the first correction that has other content.
        for (from, to) in [(350_i64, 100_000_i64), (100_000, 200_000)] {
            let mut bytes = std::fs::read(nights.path("a")).unwrap();
            let at = bytes.windows(8).position(|value| value == from.to_le_bytes()).unwrap();
            bytes[at..at + 8].copy_from_slice(&to.to_le_bytes());
            std::fs::write(nights.path("a"), bytes).unwrap();
            let error = nights.load(&["a", "b"], &small()).unwrap_err();
            assert!(error.what().contains("no longer what was loaded"), "{error}");
            nights.load(&["a", "b"], &replacing()).unwrap();
            let of_ids =
                format!("SELECT count(*) FROM \"doc\".\"{}\" WHERE \"id\" IN ({from}, {to})", nights.table);
            assert_eq!(nights.cluster.sql(&of_ids)[0][0].as_u64(), Some(1));
            nights.are_complete([700, 700]);
        }
    }
}

#[test]
fn a_replacement_that_ends_at_any_statement_is_finished_by_the_same_command() {
    let steps = [
        "DO UPDATE SET",
        "\"fingerprints\" = ?",
        "DELETE FROM \"doc\"",
        "SET \"rows\" = ?",
        "INSERT INTO \"doc\"",
        "\"units\" (\"load_id\"",
        "SET \"state\" = ?",
    ];
    for key in keys() {
        for step in steps {
            let nights = Nights::new(Cluster::standin(), key.clone());
            nights.write("a", 0, 500);
            nights.break_off(step);
            // No other command takes it for an ordinary load.
            let error = nights.load(&["a", "b"], &LoadOptions { append_changed: true, ..small() });
            assert!(step == "DO UPDATE SET" || error.is_err(), "{step}");
            if step == "DO UPDATE SET" {
                continue;
            }
            let error = nights.load(&["b"], &replacing()).unwrap_err();
            assert!(error.what().contains("is not finished"), "{step}: {error}");
            nights.load(&["a", "b"], &replacing()).unwrap();
            nights.are_complete([500, 700]);
        }
    }
}

#[test]
fn a_file_that_changes_again_after_a_broken_replacement_has_its_last_rows() {
    for key in keys() {
        for rows in [300, 700] {
            let nights = Nights::new(Cluster::standin(), key.clone());
            nights.write("a", 0, 500);
            nights.break_off("SET \"state\" = ?");
            nights.write("a", 0, rows);
            nights.load(&["a", "b"], &replacing()).unwrap();
            nights.are_complete([rows as u64, 700]);
        }
    }
}

#[test]
fn a_deletion_whose_answer_got_lost_takes_no_new_rows() {
    for key in keys() {
        let nights = Nights::new(Cluster::standin(), key);
        nights.write("a", 0, 500);
        nights.standin().orphan("DELETE FROM \"doc\"", Duration::from_millis(600));
        let patient = LoadOptions { patience: Duration::from_secs(30), ..replacing() };
        nights.load(&["a", "b"], &patient).unwrap();
        assert_eq!(nights.standin().running_on(), 0);
        nights.are_complete([500, 700]);
    }
}

#[test]
fn the_server_writes_the_time_of_the_load() {
    for transport in [Transport::Http, Transport::Pg] {
        for row_key in [None, Some("sawmill_row_key".to_owned())] {
            let (cluster, with_key) = (Cluster::any(), row_key.is_some());
            let table = cluster.table();
            let options = CrateOptions { row_key, ..keyed(transport) };
            let stamped = |target: CrateDb| target.lineage(None, Some("loaded_at".to_owned()));
            let (_kept, source) = people(600);
            let target = stamped(cluster.target(&table, options.clone()));
            assert!(target.ddl(&source).unwrap().contains("\"loaded_at\" TIMESTAMP WITH TIME ZONE DEFAULT"));
            let verified = LoadOptions { verify: true, ..small() };
            assert!(run(&source, &target, &verified).unwrap().verified.unwrap().matches());
            assert!(verify(&source, &target).matches());
            if with_key {
                let (_kept, more) = people(50);
                run(&more, &append(stamped(cluster.target(&table, options))), &verified).unwrap();
            }
            let recent =
                format!("SELECT count(*) FROM \"doc\".\"{table}\" WHERE \"loaded_at\" > 1577836800000");
            let rows = cluster.count(&table);
            assert_eq!(rows, if with_key { 650 } else { 600 });
            assert_eq!(cluster.sql(&recent)[0][0].as_u64(), Some(rows));
        }
    }
}

#[test]
fn a_table_without_a_column_for_the_time_of_the_load_is_refused() {
    let cluster = Cluster::any();
    let (table, (_kept, source)) = (cluster.table(), people(10));
    run(&source, &cluster.target(&table, keyed(Transport::Http)), &small()).unwrap();
    let (_kept, more) = people(20);
    let appended = |column: &str| {
        let target = append(cluster.target(&table, keyed(Transport::Http)));
        run(&more, &target.lineage(None, Some(column.to_owned())), &small()).unwrap_err()
    };
    let error = appended("loaded_at");
    assert!(
        error.what().contains("is not in the table") && error.to_string().contains("ADD COLUMN"),
        "{error}"
    );
    assert!(appended("name").what().contains("is TEXT in the table"));
    let target =
        cluster.target(&cluster.table(), keyed(Transport::Http)).lineage(None, Some("name".to_owned()));
    let error = run(&source, &target, &small()).unwrap_err();
    assert!(error.what().contains("--loaded-at-column"), "{error}");
    assert_eq!(cluster.count(&table), 10);
}

#[test]
fn an_interrupted_append_goes_on_after_its_file_has_changed() {
    for keys in keys() {
        let nights = Nights::new(Cluster::standin(), keys);
        let standin = nights.cluster.standin.as_ref().unwrap();
        nights.write("c", 2_000, 700);
        let all = ["a", "b", "c"];
        standin.faults().plan((0..6).map(|_| None).chain([Some(Fault::Disappear)]));
        nights.load(&all, &LoadOptions { retries: 0, degree: 1, ..small() }).unwrap_err();
        standin.restart(0);
        nights.write("c", 2_100, 650);
        let error = nights.load(&all, &small()).unwrap_err();
        assert!(error.advice().contains("stay there after sawmill load forget"), "{error}");
        for loaded in [650, 0] {
            assert_eq!(nights.load(&all, &replacing()).unwrap().rows_loaded, loaded);
            assert_eq!(nights.cluster.count(&nights.table), 1_400 + 650);
        }
        // Without --changed replace, too: all files are on record.
        assert_eq!(nights.load(&all, &small()).unwrap().rows_loaded, 0);
    }
}

#[test]
fn rows_that_a_load_with_other_columns_added_are_not_replaced() {
    for key in keys() {
        let nights = Nights::new(Cluster::any(), key);
        nights.write("a", 0, 500);
        let ids = ParquetFiles::open(&[nights.path("a")]).unwrap().select(&["id".to_owned()], &[]).unwrap();
        let error = nights.load_source(&ids, &replacing()).unwrap_err();
        assert!(error.what().contains("cannot be replaced"), "{error}");
        assert_eq!(nights.rows(), [700, 700]);
    }
}
