//! Rows that the table has already are not loaded: they are counted, and compared with the source's.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch, TimestampMillisecondArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use sawmill_cratedb::{CrateDb, CrateOptions, Transport};
use sawmill_cratedb_standin::Fault;
use sawmill_loader::{LoadOptions, LoadState, Mode};
use sawmill_source::{Kind, ParquetFiles};

use crate::cluster::{Cluster, append, keyed, people, people_from, run, small, source_of, verify};

/// A file whose length and footer do not depend on the values: `id` and `value`, which is `value(id)`.
fn written(path: &Path, rows: i64, value: impl Fn(i64) -> i64) -> ParquetFiles {
    let columns = [
        ("id", Arc::new(Int64Array::from_iter_values(0..rows)) as arrow_array::ArrayRef),
        ("value", Arc::new(Int64Array::from_iter_values((0..rows).map(value)))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_enabled(false)
        .set_max_row_group_row_count(Some(1_000))
        .build();
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    ParquetFiles::open(&[path]).unwrap()
}

fn verifying() -> LoadOptions {
    LoadOptions { verify: true, ..small() }
}

#[test]
fn a_row_key_that_is_there_with_other_values_is_an_error_that_names_the_row() {
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let (table, directory) = (cluster.table(), tempfile::tempdir().unwrap());
        let path = directory.path().join("data.parquet");
        let target = cluster.target(&table, CrateOptions { batch_rows: 200, ..keyed(transport) });
        run(&written(&path, 1_500, |id| id), &target, &small()).unwrap();
        let changed = written(&path, 1_500, |id| if id == 1_234 { 7 } else { id });
        // Compared with the file's record, and row by row if the file is to be loaded once more.
        let error = run(&changed, &append(target.clone()), &small()).unwrap_err();
        assert!(error.kind() == Kind::Changed && error.place().contains("row group 1"), "{error}");
        let again = LoadOptions { again: true, ..small() };
        let error = run(&changed, &append(target), &again).unwrap_err();
        assert_eq!(error.kind(), Kind::Value, "{error}");
        assert!(error.what().contains("a row with this row key and other values is in the table"), "{error}");
        assert!(error.place().contains("row group 1, row 234"), "{error}");
    }
}

#[test]
fn rows_that_are_there_are_counted_as_such_and_only_the_others_are_loaded() {
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let table = cluster.table();
        let (_kept, source) = people(1_500);
        let target = cluster.target(&table, CrateOptions { batch_rows: 200, ..keyed(transport) });
        run(&source, &target, &small()).unwrap();
        let target = append(target);
        let report = run(&source, &target, &LoadOptions { again: true, ..verifying() }).unwrap();
        assert_eq!((report.rows, report.rows_loaded, report.rows_there_before), (1_500, 0, 1_500));
        assert!(
            report.notes.iter().any(|note| note.contains("1,500 rows were in the table before")),
            "{:?}",
            report.notes
        );
        assert!(report.verified.unwrap().matches());
        cluster.count(&table);
        cluster.sql(&format!("DELETE FROM \"doc\".\"{table}\" WHERE \"id\" > 1149"));
        let report = run(&source, &target, &LoadOptions { again: true, ..verifying() }).unwrap();
        assert_eq!((report.rows, report.rows_loaded, report.rows_there_before), (1_500, 350, 1_150));
        assert_eq!(cluster.count(&table), 1_500);
        // Other rows of the table do not matter, and no earlier run needs to have been verified.
        let (_other, other) = people(300);
        run(&other, &target, &small()).unwrap();
        let complete = run(&source, &target, &verifying()).unwrap();
        assert_eq!(complete.state, LoadState::Complete);
        assert!(complete.verified.unwrap().matches());
    }
}

#[test]
fn an_append_by_the_key_of_the_table_takes_rows_that_are_there_for_what_they_are() {
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let table = cluster.table();
        cluster.sql(&format!(
            "CREATE TABLE doc.\"{table}\" (\"id\" BIGINT PRIMARY KEY, \"name\" TEXT) WITH (number_of_replicas = '0')"
        ));
        let (_kept, source) = people(1_000);
        let options = CrateOptions { batch_rows: 100, transport, ..CrateOptions::default() };
        let target = append(cluster.target(&table, options));
        run(&source, &target, &verifying()).unwrap();
        let again = run(&source, &target, &LoadOptions { again: true, ..verifying() }).unwrap();
        assert_eq!((again.rows, again.rows_loaded, again.rows_there_before), (1_000, 0, 1_000));
        assert!(again.verified.unwrap().matches());
        let complete = run(&source, &target, &verifying()).unwrap();
        assert!(complete.state == LoadState::Complete && complete.verified.unwrap().matches());
        assert!(verify(&source, &target).matches());
        // Another row under the same key is refused.
        cluster.sql(&format!("UPDATE \"doc\".\"{table}\" SET \"name\" = 'another' WHERE \"id\" = 77"));
        let error = run(&source, &target, &LoadOptions { again: true, ..small() }).unwrap_err();
        assert!(
            error.what().contains("another row with this primary key") && error.place().contains("row 77"),
            "{error}"
        );
    }
}

#[test]
fn all_runs_of_an_append_load_as_many_rows_as_the_table_gains() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    cluster.sql("CREATE TABLE doc.\"t\" (\"id\" BIGINT PRIMARY KEY, \"name\" TEXT)");
    let options = CrateOptions { batch_rows: 100, transport: Transport::Http, ..CrateOptions::default() };
    let target = append(cluster.target("t", options));
    let ((_few, few), (_kept, source)) = (people(300), people(1_500));
    run(&few, &target, &small()).unwrap();
    // The first unit has 5 batches, of which the second run sends all.
    standin.faults().plan((0..4).map(|_| None).chain([Some(Fault::Disappear)]));
    run(&source, &target, &LoadOptions { retries: 0, degree: 1, ..small() }).unwrap_err();
    standin.restart(0);
    let report = run(&source, &target, &small()).unwrap();
    assert_eq!((report.rows, report.rows_loaded, report.rows_there_before), (1_500, 1_200, 300));
    assert_eq!(cluster.count("t"), 1_500);
}

#[test]
fn a_load_does_not_go_on_with_a_file_that_holds_something_else_now() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.parquet");
    // The first unit has 5 batches: it is recorded in the second case alone.
    for (batches, kind) in [(2, Kind::Value), (7, Kind::Changed)] {
        let target = cluster.target("t", CrateOptions { batch_rows: 100, ..keyed(Transport::Http) });
        standin.faults().plan((0..batches).map(|_| None).chain([Some(Fault::Disappear)]));
        let first = written(&path, 1_500, |id| id);
        run(&first, &target, &LoadOptions { retries: 0, degree: 1, ..small() }).unwrap_err();
        standin.restart(0);
        let changed = written(&path, 1_500, |id| id + 1);
        let error = run(&changed, &target, &LoadOptions { degree: 1, ..small() }).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.place().contains("row group 0"), "{error}");
        let report = run(&written(&path, 1_500, |id| id), &target, &verifying()).unwrap();
        assert_eq!((report.state, report.rows), (LoadState::Resumed, 1_500));
        cluster.sql("DROP TABLE \"doc\".\"t\"");
    }
}

#[test]
fn a_complete_load_of_a_file_that_holds_something_else_now_is_not_complete() {
    let cluster = Cluster::any();
    let (table, directory) = (cluster.table(), tempfile::tempdir().unwrap());
    let path = directory.path().join("data.parquet");
    let target = cluster.target(&table, keyed(Transport::Http)).mode(Mode::Replace);
    run(&written(&path, 1_500, |id| id), &target, &small()).unwrap();
    let again = run(&written(&path, 1_500, |id| id), &target, &small()).unwrap();
    assert_eq!(again.state, LoadState::Complete);
    let changed = written(&path, 1_500, |id| id + 1);
    let report = run(&changed, &target, &small()).unwrap();
    assert_eq!((report.state, report.rows), (LoadState::New, 1_500));
    assert!(verify(&changed, &target).matches());
}

/// A table with its own key that holds the people 0 to 999, and a file of the people 750 to 1749.
fn overlapping(cluster: &Cluster, table: &str, path: &Path) -> ParquetFiles {
    cluster.sql(&format!(
        "CREATE TABLE doc.\"{table}\" (\"id\" BIGINT PRIMARY KEY, \"name\" TEXT) WITH (number_of_replicas = '0')"
    ));
    let first = path.with_file_name("first.parquet");
    people_from(&first, 0, 1_000);
    let options = CrateOptions { transport: Transport::Http, ..CrateOptions::default() };
    run(&ParquetFiles::open(&[first]).unwrap(), &append(cluster.target(table, options)), &small()).unwrap();
    people_from(path, 750, 1_000);
    ParquetFiles::open(&[path]).unwrap()
}

#[test]
fn an_append_that_finds_some_of_its_rows_by_the_tables_key_is_verified_over_every_transport() {
    for transport in [Transport::Http, Transport::Pg, Transport::Auto] {
        let cluster = Cluster::any();
        let (table, directory) = (cluster.table(), tempfile::tempdir().unwrap());
        let source = overlapping(&cluster, &table, &directory.path().join("data.parquet"));
        let options = CrateOptions { batch_rows: 200, transport, ..CrateOptions::default() };
        let target = append(cluster.target(&table, options));
        let report = run(&source, &target, &verifying()).unwrap();
        assert_eq!((report.rows, report.rows_loaded, report.rows_there_before), (1_000, 750, 250));
        assert!(report.verified.unwrap().matches());
        assert_eq!(cluster.count(&table), 1_750);
        let complete = run(&source, &target, &verifying()).unwrap();
        assert!(complete.state == LoadState::Complete && complete.verified.unwrap().matches());
    }
}

#[test]
fn rows_that_were_there_are_known_after_a_load_was_broken_off() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let source = overlapping(&cluster, "t", &directory.path().join("data.parquet"));
    let options = CrateOptions { batch_rows: 100, transport: Transport::Http, ..CrateOptions::default() };
    let target = append(cluster.target("t", options));
    // The first unit has the rows that were there.
    standin.faults().plan((0..7).map(|_| None).chain([Some(Fault::Disappear)]));
    run(&source, &target, &LoadOptions { retries: 0, degree: 1, ..verifying() }).unwrap_err();
    standin.restart(0);
    let report = run(&source, &target, &verifying()).unwrap();
    assert_eq!((report.state, report.rows), (LoadState::Resumed, 1_000));
    assert!(report.verified.unwrap().matches());
    assert_eq!(cluster.count("t"), 1_750);
}

#[test]
fn rows_that_differ_in_a_generated_column_of_the_key_are_told_apart() {
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let table = cluster.table();
        cluster.sql(&format!(
            "CREATE TABLE doc.\"{table}\" (\"id\" BIGINT, \"at\" TIMESTAMP WITHOUT TIME ZONE, \"number\" BIGINT, \
             \"month\" GENERATED ALWAYS AS date_trunc('month', \"at\"), PRIMARY KEY (\"id\", \"month\")) \
             WITH (number_of_replicas = '0')"
        ));
        // 50 ids in each of 12 months.
        let month = |row: i64| row / 50 * 31 * 86_400_000;
        let (_kept, source) = source_of(
            vec![
                ("id", Arc::new(Int64Array::from_iter_values((0..600).map(|row| row % 50)))),
                ("at", Arc::new(TimestampMillisecondArray::from_iter_values((0..600).map(month)))),
                ("number", Arc::new(Int64Array::from_iter_values(0..600))),
            ],
            1_000,
        );
        let options = CrateOptions { batch_rows: 100, transport, ..CrateOptions::default() };
        let target = append(cluster.target(&table, options));
        run(&source, &target, &small()).unwrap();
        let again = LoadOptions { again: true, ..verifying() };
        let report = run(&source, &target, &again).unwrap();
        assert_eq!((report.rows, report.rows_loaded, report.rows_there_before), (600, 0, 600));
        assert!(report.verified.unwrap().matches());
        cluster.sql(&format!("UPDATE doc.\"{table}\" SET \"number\" = -1 WHERE \"number\" = 357"));
        cluster.count(&table);
        let error = run(&source, &target, &again).unwrap_err();
        assert!(error.what().contains("another row with this primary key is in the table"), "{error}");
        assert!(error.place().ends_with("row 357"), "{error}");
    }
}

/// A table with the primary key `id` and these rows, and an append to it.
fn with_own_key(cluster: &Cluster, rows: &str) -> (String, CrateDb) {
    let table = cluster.table();
    cluster.sql(&format!("CREATE TABLE \"doc\".\"{table}\" (\"id\" BIGINT PRIMARY KEY, \"value\" BIGINT)"));
    cluster.sql(&format!("INSERT INTO \"doc\".\"{table}\" (\"id\", \"value\") VALUES {rows}"));
    let options = CrateOptions { batch_rows: 1_000, transport: Transport::Http, ..CrateOptions::default() };
    let target = append(cluster.target(&table, options));
    (table, target)
}

#[test]
fn equal_rows_of_a_file_are_verified_as_the_one_row_that_the_table_has() {
    let columns = |ids: &[i64]| Arc::new(Int64Array::from(ids.to_vec())) as arrow_array::ArrayRef;
    let ids = [1, 2, 3, 2, 4, 77];
    for others in ["(99, 7)", "(99, 7), (2, 2)", "(77, 77)"] {
        let (_kept, source) = source_of(vec![("id", columns(&ids)), ("value", columns(&ids))], 1_000);
        let cluster = Cluster::any();
        let (table, target) = with_own_key(&cluster, others);
        for state in [LoadState::New, LoadState::Complete] {
            let report = run(&source, &target, &verifying()).unwrap();
            assert_eq!(report.state, state);
            if state == LoadState::New {
                let verified = report.verified.unwrap();
                assert_eq!((verified.source.rows, verified.target.rows), (5, 5), "{others}");
                assert_eq!(verified.rows_of_others, cluster.count(&table) - 5, "{others}");
                let note = "1 row was equal to an earlier one of the files";
                assert!(report.notes.iter().any(|found| found.starts_with(note)), "{:?}", report.notes);
            }
        }
    }
}

#[test]
fn rows_whose_key_was_there_are_verified_by_it_if_requests_arrive_twice_too() {
    let directory = tempfile::tempdir().unwrap();
    let source = written(&directory.path().join("data.parquet"), 3_000, |id| id);
    let options = LoadOptions { degree: 1, unit_rows: 1_000, ..verifying() };
    let cluster = Cluster::standin();
    let (table, target) = with_own_key(&cluster, "(5, 5), (9999, 1)");
    cluster.standin.as_ref().unwrap().faults().plan([Some(Fault::Twice)]);
    let verified = run(&source, &target, &options).unwrap().verified.unwrap();
    assert!(verified.matches() && verified.rows_of_others == 1, "{verified:?}");
    assert_eq!(cluster.count(&table), 3_001);
}
