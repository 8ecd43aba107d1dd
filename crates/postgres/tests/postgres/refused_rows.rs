//! The cost of rows that the server refuses: a few statements each, whether it names them or not.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use sawmill_loader::{LoadOptions, Mode, RejectOptions};
use sawmill_source::ParquetFiles;

use crate::database::{Database, run, small};
use crate::fixture::file_of;

struct Refused {
    database: Database,
    source: ParquetFiles,
    rejects: PathBuf,
    _directory: tempfile::TempDir,
}

/// A file of these ids, and a table.
fn file(table: &str, ids: impl Iterator<Item = i64>) -> Refused {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    let (directory, path) = file_of(vec![("id", ids)], 100_000);
    // Other tests would also begin transactions.
    let database = Database::alone();
    database.client().batch_execute(table).unwrap();
    let rejects = path.with_file_name("rejects.parquet");
    Refused { source: ParquetFiles::open(&[path]).unwrap(), database, rejects, _directory: directory }
}

impl Refused {
    /// Loads into `t`. Returns the rejected rows and the number of transactions and subtransactions that the server
    /// began: each statement that was tried again is one.
    fn load(&self) -> (u64, i64) {
        let rejects = RejectOptions { path: self.rejects.clone(), most: None };
        let target = self.database.target("t").mode(Mode::Append).rejects(Some(rejects));
        let options =
            LoadOptions { degree: 1, unit_rows: 100_000, batch_rows: 4096, verify: false, ..small() };
        let tried = || {
            self.database.client().query_one("SELECT pg_current_xact_id()::text::bigint", &[]).unwrap().get(0)
        };
        let before: i64 = tried();
        let report = run(&self.source, &target, &options).unwrap();
        (report.rows_rejected, tried() - before)
    }
}

#[test]
fn rows_that_violate_a_foreign_key_are_tried_once_each_where_all_do() {
    let table = "CREATE TABLE parent (id bigint PRIMARY KEY); \
                 CREATE TABLE t (id bigint REFERENCES parent)";
    let refused = file(table, 0..3000);
    let (rejected, tried) = refused.load();
    assert_eq!(rejected, 3000);
    assert!(tried < 3000 * 5 / 4, "{tried} tries for 3000 rows");
}

#[test]
fn a_row_that_the_server_names_is_not_sent_alone() {
    let refused = file("CREATE TABLE t (id bigint CHECK (id % 10 <> 3))", 0..3000);
    let (rejected, tried) = refused.load();
    assert_eq!((rejected, refused.database.count("t")), (300, 2700));
    assert!(tried < 300 * 3, "{tried} tries for 300 rows");
    let refused = file("CREATE TABLE t (id bigint CHECK (id < 0))", 0..3000);
    let (rejected, tried) = refused.load();
    assert!(rejected == 3000 && tried < 3000 * 5 / 4, "{tried} tries for {rejected} rows");
}

#[test]
fn a_row_that_conflicts_with_a_refused_row_alone_is_loaded() {
    // The second 5 is a duplicate of the first one, which the foreign key refuses when the rows before it are sent.
    let table = "CREATE TABLE parent (id bigint PRIMARY KEY); INSERT INTO parent SELECT generate_series(0, 99); \
                 CREATE TABLE t (id bigint REFERENCES parent, key bigint GENERATED ALWAYS AS (id % 1000) STORED UNIQUE)";
    let refused = file(table, [1, 2, 1005, 3, 5, 4].into_iter());
    assert_eq!(refused.load().0, 1);
    assert_eq!(refused.database.count("t WHERE id IN (1, 2, 3, 4, 5)"), 5);
}
