//! Loads that begin at the same moment in an empty database.

use std::sync::Barrier;

use sawmill_loader::LoadReport;
use sawmill_source::{Kind, ParquetFiles, Result};

use crate::database::{Database, run, small};
use crate::fixture::people;

/// Loads of a file each, begun together; the table of each by its number.
fn together(
    database: &Database,
    loads: usize,
    table: impl Fn(usize) -> String + Sync,
) -> Vec<Result<LoadReport>> {
    let directory = tempfile::tempdir().unwrap();
    let barrier = Barrier::new(loads);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..loads)
            .map(|number| {
                let path = directory.path().join(format!("{number}.parquet"));
                people(&path, 0, 1200, 400);
                let source = ParquetFiles::open(&[path]).unwrap();
                let (barrier, table) = (&barrier, &table);
                scope.spawn(move || {
                    barrier.wait();
                    run(&source, &database.target(&table(number)), &small())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn loads_into_different_tables_all_succeed_before_the_schema_of_records_exists() {
    for _ in 0..5 {
        let database = Database::new();
        let results = together(&database, 5, |number| format!("people{number}"));
        for (number, result) in results.into_iter().enumerate() {
            assert!(result.unwrap().verified.unwrap().matches());
            assert_eq!(database.count(&format!("people{number}")), 1200);
        }
    }
}

#[test]
fn one_of_several_loads_that_create_the_same_table_succeeds_and_the_others_report_why_not() {
    for _ in 0..8 {
        let database = Database::new();
        let results = together(&database, 4, |_| "people".to_owned());
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
        for error in results.into_iter().filter_map(Result::err) {
            assert!([Kind::Exists, Kind::Busy].contains(&error.kind()), "{error}");
            let known = [
                "another load into this table is unfinished",
                "another load into this table is running",
                "the table already exists",
            ];
            assert!(known.iter().any(|known| error.what().contains(known)), "{error}");
            assert!(!error.advice().is_empty());
        }
        assert_eq!(database.count("people"), 1200);
    }
}
