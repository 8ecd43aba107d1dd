//! What makes a repeated row harmless, and what happens without it.

use std::sync::Arc;

use arrow_array::{Int64Array, StringArray, TimestampMillisecondArray};
use sawmill_cratedb::{CrateOptions, Transport};
use sawmill_cratedb_standin::Fault;
use sawmill_loader::{LoadOptions, LoadState, Mode};
use sawmill_source::ParquetFiles;

use crate::cluster::{Cluster, append, people, run, small, source_of};

fn own() -> CrateOptions {
    CrateOptions {
        primary_key: vec!["id".into()],
        transport: Transport::Http,
        batch_rows: 100,
        replicas: Some("0".into()),
        ..CrateOptions::default()
    }
}

#[test]
fn a_primary_key_of_the_table_does_what_a_row_key_does() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (_kept, source) = people(2_000);
    standin.faults().plan([
        Some(Fault::DropAfter),
        Some(Fault::DropInTheMiddle),
        None,
        Some(Fault::DropBefore),
    ]);
    let report = run(&source, &cluster.target("t", own()), &LoadOptions { verify: true, ..small() }).unwrap();
    assert_eq!(report.rows, 2_000);
    assert_eq!(cluster.count("t"), 2_000);
}

#[test]
fn two_rows_with_one_key_are_no_repetition() {
    let cluster = Cluster::any();
    let table = cluster.table();
    let ids = Int64Array::from_iter_values((0..300).map(|id| if id == 250 { 7 } else { id }));
    let texts = StringArray::from_iter_values((0..300).map(|id| format!("row {id}")));
    let (kept, source) = source_of(vec![("id", Arc::new(ids)), ("text", Arc::new(texts))], 1000);
    let error =
        run(&source, &cluster.target(&table, own()), &LoadOptions { degree: 1, ..small() }).unwrap_err();
    assert!(error.place().contains("row 250") && error.what().contains("4091"), "{error}");
    // The rest of that load, whose first batches are in: the row is still another one.
    let rejects = kept.path().join("rejects.ndjson");
    let options = CrateOptions { rejects: Some(rejects.clone()), ..own() };
    let report = run(&source, &cluster.target(&table, options), &small()).unwrap();
    assert_eq!((report.state, report.rows, report.rows_rejected), (LoadState::Resumed, 299, 1));
    assert_eq!(cluster.count(&table), 299);
    let text = std::fs::read_to_string(rejects).unwrap();
    assert!(text.contains("\"row\":250"), "{text}");
}

#[test]
fn without_a_key_a_batch_whose_outcome_is_unknown_is_not_sent_again() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let options = CrateOptions {
        at_least_once: true,
        batch_rows: 100,
        transport: Transport::Http,
        ..CrateOptions::default()
    };
    let (_kept, source) = people(1_000);
    let target = cluster.target("t", options);
    standin.faults().plan([None, Some(Fault::DropAfter)]);
    let error = run(&source, &target, &LoadOptions { degree: 1, ..small() }).unwrap_err();
    assert!(error.what().contains("it is unknown whether"), "{error}");
    let rows = standin.engine().rows_in("doc", "t__sawmill_loading").unwrap();
    assert_eq!(rows, 200, "the batch was sent once");
    // The same command again is what the consent is for.
    let report = run(&source, &target, &small()).unwrap();
    assert_eq!((report.state, report.rows), (LoadState::Resumed, 1_000));
    assert_eq!(cluster.count("t"), 1_200);
}

#[test]
fn without_a_key_what_did_not_reach_the_server_is_sent_again() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let options = CrateOptions {
        at_least_once: true,
        batch_rows: 100,
        transport: Transport::Http,
        ..CrateOptions::default()
    };
    let (_kept, source) = people(1_000);
    standin.faults().plan([Some(Fault::Unavailable), None, Some(Fault::Busy)]);
    run(&source, &cluster.target("t", options), &LoadOptions { verify: true, ..small() }).unwrap();
    assert_eq!(cluster.count("t"), 1_000);
}

#[test]
fn an_append_uses_the_key_that_the_table_has() {
    let cluster = Cluster::any();
    let table = cluster.table();
    cluster.sql(&format!("CREATE TABLE doc.\"{table}\" (\"id\" BIGINT PRIMARY KEY, \"name\" TEXT) WITH (number_of_replicas = '0')"));
    let (_kept, source) = people(500);
    // No option says so: the table's key is enough.
    let target = append(
        cluster.target(&table, CrateOptions { transport: Transport::Http, ..CrateOptions::default() }),
    );
    run(&source, &target, &small()).unwrap();
    assert_eq!(cluster.count(&table), 500);
    let keyed = cluster
        .target(&table, CrateOptions { row_key: Some("k".into()), ..CrateOptions::default() })
        .mode(Mode::Append);
    let error = run(&source, &keyed, &small()).unwrap_err();
    assert!(error.to_string().contains("no primary key with the column \"k\""), "{error}");
}

#[test]
fn without_a_key_a_file_is_appended_again_only_where_that_is_asked_for() {
    let cluster = Cluster::any();
    let table = cluster.table();
    let options = CrateOptions { at_least_once: true, transport: Transport::Http, ..CrateOptions::default() };
    let (directory, first) = people(300);
    run(&first, &cluster.target(&table, options.clone()), &small()).unwrap();
    let (other, _) = people(200);
    let second = directory.path().join("more.parquet");
    std::fs::copy(other.path().join("data.parquet"), &second).unwrap();
    let both = ParquetFiles::open(&[directory.path().join("data.parquet"), second.clone()]).unwrap();
    let target = append(cluster.target(&table, options));
    let report = run(&both, &target, &small()).unwrap();
    assert_eq!((report.files_loaded, report.files_already, report.rows_loaded), (1, 1, 200));
    let one = run(&ParquetFiles::open(&[second]).unwrap(), &target, &small()).unwrap();
    assert_eq!(one.state, LoadState::Complete);
    assert_eq!(cluster.count(&table), 500);
    run(&both, &target, &LoadOptions { again: true, ..small() }).unwrap();
    assert_eq!(cluster.count(&table), 1_000);
}

#[test]
fn with_a_row_key_a_list_that_grew_adds_its_new_files_alone() {
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let table = cluster.table();
        let (directory, first) = people(300);
        let target = cluster.target(&table, crate::cluster::keyed(transport));
        run(&first, &target, &small()).unwrap();
        let (other, _) = people(200);
        let second = directory.path().join("more.parquet");
        std::fs::copy(other.path().join("data.parquet"), &second).unwrap();
        let both = ParquetFiles::open(&[directory.path().join("data.parquet"), second]).unwrap();
        let report = run(&both, &append(target), &LoadOptions { verify: true, ..small() }).unwrap();
        assert_eq!((report.files_loaded, report.files_already), (1, 1));
        assert_eq!((report.rows, report.rows_loaded, report.rows_there_before), (500, 200, 0));
        assert_eq!(cluster.count(&table), 500);
        assert!(report.verified.unwrap().matches());
    }
}

#[test]
fn a_primary_key_that_the_server_computes_tells_equal_rows_from_others() {
    let cluster = Cluster::any();
    let table = cluster.table();
    cluster.sql(&format!(
        "CREATE TABLE doc.\"{table}\" (\"at\" TIMESTAMP WITH TIME ZONE, \"text\" TEXT, \"month\" TIMESTAMP WITH TIME ZONE \
         GENERATED ALWAYS AS date_trunc('month', \"at\"), PRIMARY KEY (\"month\")) WITH (number_of_replicas = '0')"
    ));
    const MONTH: i64 = 32 * 86_400_000;
    let rows = |texts: Vec<Option<&str>>| {
        let at = TimestampMillisecondArray::from_iter_values((0..texts.len() as i64).map(|i| i * MONTH));
        let at = at.with_timezone("UTC");
        source_of(vec![("at", Arc::new(at)), ("text", Arc::new(StringArray::from(texts)))], 1000)
    };
    let options = CrateOptions { primary_key: Vec::new(), ..own() };
    let load =
        |source: &ParquetFiles| run(source, &append(cluster.target(&table, options.clone())), &small());
    let (_first, source) = rows(vec![Some("a"), None]);
    assert_eq!(load(&source).unwrap().rows_loaded, 2);
    let (_second, source) = rows(vec![Some("a"), None, Some("c")]);
    let report = load(&source).unwrap();
    assert_eq!((report.rows_loaded, report.rows_there_before), (1, 2));
    let (_third, source) = rows(vec![Some("another")]);
    let error = load(&source).unwrap_err();
    assert!(error.what().contains("is in the table: month, which the server computes"), "{error}");
    assert_eq!(cluster.count(&table), 3);
}
