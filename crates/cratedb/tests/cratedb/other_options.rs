//! Options that decide what a load stores are part of its identity.

use std::path::Path;
use std::sync::{Arc, Barrier};

use arrow_array::{ArrayRef, BinaryArray, Int64Array, StringArray, TimestampMicrosecondArray};
use sawmill_cratedb::{Binary, CrateOptions, Dates, LongText, Timestamps, Transport};
use sawmill_cratedb_standin::Fault;
use sawmill_loader::{LoadOptions, LoadReport, LoadState, Mode};
use sawmill_source::{Kind, ParquetFiles, Result};
use tempfile::TempDir;

use crate::cluster::{Cluster, append, keyed, people, people_from, run, small, source_of};

/// Whole milliseconds, in microseconds.
fn moments() -> (TempDir, ParquetFiles) {
    let at = TimestampMicrosecondArray::from_iter_values((0..300).map(|i| i * 1_000));
    source_of(vec![("at", Arc::new(at))], 1000)
}

fn stored(timestamps: Timestamps) -> CrateOptions {
    CrateOptions { timestamps, ..keyed(Transport::Http) }
}

#[test]
fn a_table_that_was_loaded_with_another_type_is_not_complete_already() {
    let cluster = Cluster::any();
    let (table, (_kept, source)) = (cluster.table(), moments());
    let text = cluster.target(&table, stored(Timestamps::Text));
    run(&source, &text, &small()).unwrap();
    let bigint = cluster.target(&table, stored(Timestamps::Bigint));
    let error = run(&source, &bigint, &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Exists);
    assert!(error.what().contains("--timestamps was text and is bigint now"), "{error}");
    // An option that does not matter to these columns may differ.
    let dates = CrateOptions { dates: Dates::Text, ..stored(Timestamps::Text) };
    let again = run(&source, &cluster.target(&table, dates), &small()).unwrap();
    assert_eq!(again.state, LoadState::Complete);
    let report = run(&source, &bigint.mode(Mode::Replace), &small()).unwrap();
    assert_eq!(report.state, LoadState::New);
    assert_eq!(cluster.sql(&format!("SELECT at FROM doc.\"{table}\" ORDER BY at LIMIT 2"))[1][0], 1_000);
    // A table is replaced by one of another layout.
    let shards = CrateOptions { shards: Some(3), ..stored(Timestamps::Bigint) };
    let report = run(&source, &cluster.target(&table, shards).mode(Mode::Replace), &small()).unwrap();
    assert_eq!(report.state, LoadState::New);
}

#[test]
fn an_append_of_files_that_were_loaded_in_another_form_is_refused() {
    let cluster = Cluster::any();
    let table = cluster.table();
    cluster.sql(&format!(
        "CREATE TABLE doc.\"{table}\" (\"sawmill_row_key\" TEXT PRIMARY KEY, \"b\" TEXT) WITH (number_of_replicas = '0')"
    ));
    let (_kept, source) = source_of(vec![("b", Arc::new(BinaryArray::from_vec(vec![b"one", b"two"])))], 1000);
    let with = |binary| append(cluster.target(&table, CrateOptions { binary, ..keyed(Transport::Http) }));
    run(&source, &with(Binary::Base64), &small()).unwrap();
    let error = run(&source, &with(Binary::Hex), &small()).unwrap_err();
    assert!(error.what().contains("--binary was base64 and is hex now"), "{error}");
    assert_eq!(run(&source, &with(Binary::Base64), &small()).unwrap().state, LoadState::Complete);
    // Beside a new file, too, and after a load that made the table.
    let (_kept, both) = {
        let (kept, other) = source_of(vec![("b", Arc::new(BinaryArray::from_vec(vec![b"three"])))], 1000);
        let paths = [&source, &other].map(|files| sawmill_source::Source::files(files)[0].name.clone());
        (kept, ParquetFiles::open(&paths).unwrap())
    };
    let error = run(&both, &with(Binary::Hex), &small()).unwrap_err();
    assert!(error.what().contains("--binary was base64 and is hex now"), "{error}");
    assert_eq!(run(&both, &with(Binary::Base64), &small()).unwrap().rows, 3);
}

/// A row that is too long for an index among others.
fn with_long_text(at: i64) -> (TempDir, ParquetFiles) {
    let texts = (0..1_500).map(|i| if i == at { "x".repeat(40_000) } else { format!("t{i}") });
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..1_500))),
        ("text", Arc::new(StringArray::from_iter_values(texts))),
    ];
    source_of(columns, 1000)
}

fn by_id(long_text: LongText, primary_key: &[&str], shards: Option<u32>) -> CrateOptions {
    CrateOptions {
        long_text,
        shards,
        primary_key: primary_key.iter().map(|name| (*name).to_owned()).collect(),
        transport: Transport::Http,
        batch_rows: 100,
        replicas: Some("0".into()),
        ..CrateOptions::default()
    }
}

#[test]
fn a_begun_table_without_rows_is_made_anew_with_the_options_of_now() {
    let cluster = Cluster::any();
    let (table, (_kept, source)) = (cluster.table(), with_long_text(0));
    let one = LoadOptions { degree: 1, ..small() };
    let target = cluster.target(&table, by_id(LongText::Error, &["id"], None));
    run(&source, &target, &one).unwrap_err();
    let target = cluster.target(&table, by_id(LongText::Error, &["id", "text"], Some(2)));
    run(&source, &target, &one).unwrap_err();
    let target = cluster.target(&table, by_id(LongText::Noindex, &["id"], Some(2)));
    let report = run(&source, &target, &one).unwrap();
    assert_eq!((report.state, report.rows, cluster.count(&table)), (LoadState::New, 1_500, 1_500));
    let loads = cluster.sql(&format!("SELECT state FROM \"{}\".\"loads\"", cluster.checkpoints()));
    assert_eq!(loads.len(), 1, "no record is left of the loads before");
}

#[test]
fn a_begun_table_with_rows_names_the_options_that_differ_and_the_ways_out() {
    let cluster = Cluster::any();
    let (table, (_kept, source)) = (cluster.table(), with_long_text(1_400));
    let one = LoadOptions { degree: 1, ..small() };
    let begun = cluster.target(&table, by_id(LongText::Error, &["id"], None));
    run(&source, &begun, &one).unwrap_err();
    for (options, differs) in [
        (by_id(LongText::Noindex, &["id"], None), "--long-text was error and is noindex now"),
        (by_id(LongText::Error, &["id", "text"], None), "--primary-key was id and is id,text now"),
        (by_id(LongText::Error, &["id"], Some(3)), "--shards was not given and is 3 now"),
    ] {
        let error = run(&source, &cluster.target(&table, options), &one).unwrap_err();
        assert_eq!(error.kind(), Kind::Exists, "{error}");
        assert!(error.what().ends_with(differs), "{error}");
        let forget =
            format!("sawmill load forget --to crate://{}/doc --table doc.{table}", cluster.http_address());
        assert!(error.advice().contains(&forget), "{}", error.advice());
    }
    // The first way out.
    let rejects = CrateOptions {
        rejects: Some(_kept.path().join("rejects.ndjson")),
        ..by_id(LongText::Error, &["id"], None)
    };
    let report = run(&source, &cluster.target(&table, rejects), &one).unwrap();
    assert_eq!((report.state, report.rows, report.rows_rejected), (LoadState::Resumed, 1_499, 1));
}

/// A table of people without a key.
fn people_table(cluster: &Cluster) -> String {
    let table = cluster.table();
    cluster.sql(&format!(
        "CREATE TABLE doc.\"{table}\" (\"id\" BIGINT, \"name\" TEXT) WITH (number_of_replicas = '0')"
    ));
    table
}

/// An append of these columns of a file; none means all.
fn append_columns(cluster: &Cluster, table: &str, path: &Path, columns: &[&str]) -> Result<LoadReport> {
    let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    let source = ParquetFiles::open(&[path]).unwrap().select(&columns, &[]).unwrap();
    let options =
        CrateOptions { row_key: None, at_least_once: true, batch_rows: 100, ..keyed(Transport::Http) };
    run(&source, &append(cluster.target(table, options)), &LoadOptions { retries: 0, degree: 1, ..small() })
}

#[test]
fn appends_of_a_file_that_begin_at_once_with_other_options_load_it_once() {
    let cluster = Cluster::any();
    let (kept, _) = people(300);
    let path = kept.path().join("data.parquet");
    for _ in 0..8 {
        let table = people_table(&cluster);
        let start = Barrier::new(2);
        let load = |columns: &[&str]| {
            start.wait();
            append_columns(&cluster, &table, &path, columns)
        };
        let both = std::thread::scope(|scope| {
            let first = scope.spawn(|| load(&[]));
            [load(&["id"]), first.join().unwrap()]
        });
        for error in both.iter().filter_map(|result| result.as_ref().err()) {
            assert!(matches!(error.kind(), Kind::Busy | Kind::Exists), "{error}");
        }
        let rows = both.iter().flatten().map(|report| report.rows_loaded).sum::<u64>();
        assert!(rows == 300 && cluster.count(&table) == rows, "{both:?}");
    }
}

#[test]
fn an_append_that_ended_before_its_first_row_does_not_block_others() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (kept, _) = people(300);
    let path = kept.path().join("data.parquet");
    // It ends without a row: the same file may come with other options, and the first command then finds its rows.
    let table = people_table(&cluster);
    standin.faults().plan([Some(Fault::DropBefore)]);
    append_columns(&cluster, &table, &path, &[]).unwrap_err();
    assert_eq!(append_columns(&cluster, &table, &path, &["id"]).unwrap().rows_loaded, 300);
    let error = append_columns(&cluster, &table, &path, &[]).unwrap_err();
    assert!(error.what().contains("they would be duplicated"), "{error}");
    assert_eq!(cluster.count(&table), 300);
    // A corrected file, too.
    let table = people_table(&cluster);
    standin.faults().plan([Some(Fault::DropBefore)]);
    append_columns(&cluster, &table, &path, &[]).unwrap_err();
    people_from(&path, 1_000, 300);
    assert_eq!(append_columns(&cluster, &table, &path, &[]).unwrap().rows_loaded, 300);
    assert_eq!(cluster.count(&table), 300);
    // Rows that no record names are there.
    let table = people_table(&cluster);
    standin.faults().plan([Some(Fault::DropAfter)]);
    append_columns(&cluster, &table, &path, &[]).unwrap_err();
    let error = append_columns(&cluster, &table, &path, &["id"]).unwrap_err();
    assert!(error.what().contains("is in the table already"), "{error}");
    people_from(&path, 2_000, 300);
    append_columns(&cluster, &table, &path, &[]).unwrap_err();
    assert_eq!(cluster.count(&table), 100);
}

#[test]
fn a_new_table_that_was_begun_is_made_from_the_beginning_when_there_are_more_files() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (kept, _) = people(3_000);
    let paths = [kept.path().join("data.parquet"), kept.path().join("more.parquet")];
    people_from(&paths[1], 3_000, 100);
    let target = cluster.target("t", CrateOptions { batch_rows: 100, ..keyed(Transport::Http) });
    standin.faults().plan((0..7).map(|_| None).chain([Some(Fault::DropAfter)]));
    let one = LoadOptions { retries: 0, degree: 1, ..small() };
    run(&ParquetFiles::open(&paths[..1]).unwrap(), &target, &one).unwrap_err();
    assert!(cluster.count("t__sawmill_loading") > 0);
    // Without the file of the load that was begun its rows would be lost.
    let error = run(&ParquetFiles::open(&paths[1..]).unwrap(), &target, &one).unwrap_err();
    assert!(error.what().contains("is not finished"), "{error}");
    let report = run(&ParquetFiles::open(&paths).unwrap(), &target, &small()).unwrap();
    assert_eq!((report.state, report.rows_loaded, cluster.count("t")), (LoadState::New, 3_100, 3_100));
    let loads = cluster.sql(&format!("SELECT state FROM \"{}\".\"loads\"", cluster.checkpoints()));
    assert_eq!(loads.len(), 1);
}
