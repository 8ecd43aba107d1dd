//! Rows of files that meet a condition: the same row has the same row key whatever the condition.

use sawmill_cratedb::{CrateOptions, Transport};
use sawmill_loader::{LoadOptions, LoadReport, LoadState, Mode};
use sawmill_source::{Kind, ParquetFiles, Result};

use crate::cluster::{Cluster, append, keyed, people_from, run, small, with_control};

/// A table and a file of 3,000 people in row groups of 1,000.
struct Filtering {
    cluster: Cluster,
    table: String,
    transport: Transport,
    directory: tempfile::TempDir,
}

impl Filtering {
    fn new(transport: Transport) -> Self {
        let cluster = Cluster::any();
        let new =
            Self { table: cluster.table(), cluster, transport, directory: tempfile::tempdir().unwrap() };
        people_from(&new.path(), 0, 3_000);
        new
    }

    fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("data.parquet")
    }

    fn load(&self, condition: &str, mode: Mode) -> Result<LoadReport> {
        self.load_with(condition, mode, LoadOptions { verify: true, ..small() })
    }

    fn load_with(&self, condition: &str, mode: Mode, options: LoadOptions) -> Result<LoadReport> {
        let files = ParquetFiles::open(&[self.path()]).unwrap();
        let options_of_table = CrateOptions { batch_rows: 100, ..keyed(self.transport) };
        let target = self.cluster.target(&self.table, options_of_table).mode(mode);
        let condition = condition.parse().unwrap();
        let filtered = with_control(|control| files.filtered(condition, control)).unwrap();
        run(&filtered, &target, &options)
    }

    fn keys_of(&self, condition: &str) -> Vec<String> {
        let table = format!("\"doc\".\"{}\"", self.table);
        self.cluster.sql(&format!("REFRESH TABLE {table}"));
        let rows = self.cluster.sql(&format!(
            "SELECT \"sawmill_row_key\" FROM {table} WHERE {condition} ORDER BY \"sawmill_row_key\""
        ));
        rows.iter().map(|row| row[0].as_str().unwrap().split_once('-').unwrap().1.to_owned()).collect()
    }
}

#[test]
fn a_file_is_appended_in_parts_by_conditions_and_verified_each_time() {
    for transport in [Transport::Http, Transport::Pg] {
        let parts = Filtering::new(transport);
        let report = parts.load("id >= 1500 and id < 2500", Mode::Create).unwrap();
        assert_eq!((report.rows, report.rows_loaded), (1_000, 1_000));
        assert_eq!(parts.keys_of("\"id\" = 1999"), ["1-999"]);
        let report = parts.load("id < 1000 or id > 2900", Mode::Append).unwrap();
        assert_eq!((report.rows, report.rows_loaded, report.rows_there_before), (1_099, 1_099, 0));
        assert!(report.verified.unwrap().matches());
        assert_eq!(parts.keys_of("\"id\" = 2999"), ["2-999"]);
        // Rows that two parts share are stored once.
        let report = parts.load("id >= 500 and id < 2000", Mode::Append).unwrap();
        assert_eq!((report.rows, report.rows_loaded, report.rows_there_before), (1_500, 500, 1_000));
        assert!(report.verified.unwrap().matches());
        assert_eq!(parts.cluster.count(&parts.table), 2_599);
        // A part that is complete can be looked up, but not distinguished from the others.
        let report = parts.load("id < 1000 or id > 2900", Mode::Append).unwrap();
        assert_eq!((report.state, report.verified.is_none()), (LoadState::Complete, true));
        assert!(report.notes.iter().any(|note| note.starts_with("not verified")), "{:?}", report.notes);
        // All of it, with the keys that a load without a condition gives.
        let whole = ParquetFiles::open(&[parts.path()]).unwrap();
        let target = append(parts.cluster.target(&parts.table, keyed(transport)));
        let report = run(&whole, &target, &LoadOptions { verify: true, ..small() }).unwrap();
        assert_eq!((report.rows, report.rows_loaded, report.rows_there_before), (3_000, 401, 2_599));
        assert!(report.verified.unwrap().matches());
        assert_eq!(parts.cluster.count(&parts.table), 3_000);
    }
}

#[test]
fn a_refused_row_is_named_by_its_place_in_the_row_group() {
    for transport in [Transport::Http, Transport::Pg] {
        let parts = Filtering::new(transport);
        let table = format!("\"doc\".\"{}\"", parts.table);
        parts.cluster.sql(&format!(
            "CREATE TABLE {table} (\"sawmill_row_key\" TEXT PRIMARY KEY, \"id\" BIGINT, \"name\" VARCHAR(8)) \
             WITH (number_of_replicas = '0')"
        ));
        let error = parts.load("id >= 990 and id <= 1001 and id <> 999", Mode::Append).unwrap_err();
        assert_eq!(error.kind(), Kind::Value);
        assert!(error.place().ends_with("row group 1, row 0"), "{error}");
    }
}
