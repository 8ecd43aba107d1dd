//! Rows of one load with the same primary key: the table has one of them, the others are rejected.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray};
use sawmill_cratedb::{CrateOptions, Transport};
use sawmill_cratedb_standin::Fault;
use sawmill_loader::{LoadOptions, LoadState};
use sawmill_source::Kind;
use serde_json::Value;

use crate::cluster::{Cluster, append, run, small, source_of};

fn named(transport: Transport, rejects: Option<&Path>) -> CrateOptions {
    CrateOptions {
        primary_key: vec!["name".into()],
        transport,
        batch_rows: 100,
        rejects: rejects.map(Path::to_owned),
        replicas: Some("0".into()),
        ..CrateOptions::default()
    }
}

/// 2,000 rows in two row groups, whose names repeat: 200 rows of the first group occur again in the second, 100 of
/// them with the same values. Three consecutive rows are equal.
fn repeating() -> Vec<(&'static str, ArrayRef)> {
    let name = |i: i64| match i {
        1_200..1_400 => i - 1_000,
        1_501 | 1_502 => 1_500,
        i => i,
    };
    let number = |i: i64| match i {
        1_200..1_300 => i - 1_000,
        1_501 | 1_502 => 1_500,
        i => i,
    };
    vec![
        ("name", Arc::new(StringArray::from_iter_values((0..2_000).map(|i| format!("n{}", name(i)))))),
        ("number", Arc::new(Int64Array::from_iter_values((0..2_000).map(number)))),
    ]
}

fn rejected(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Each name is in the table or, once or twice, among the rejected rows.
fn assert_each_name_is_there_once(cluster: &Cluster, table: &str, rejects: &Path) {
    assert_eq!(cluster.count(table), 1_798);
    let rejected = rejected(rejects);
    assert_eq!(rejected.len(), 202);
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for row in &rejected {
        let reason = row["reason"].as_str().unwrap();
        let name = row["values"][0].as_str().unwrap();
        assert!(
            reason.contains("primary key") && reason.contains(&format!("\"name\" = \"{name}\"")),
            "{row}"
        );
        *names.entry(name.to_owned()).or_default() += 1;
    }
    assert_eq!(names.remove("n1500"), Some(2));
    assert_eq!(names.into_values().collect::<Vec<_>>(), [1; 200]);
}

#[test]
fn equal_rows_beside_a_row_without_a_key_are_rejected_over_every_transport() {
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let table = cluster.table();
        let names = StringArray::from(vec![Some("b"), None, Some("b"), Some("c")]);
        let (kept, source) = source_of(
            vec![("name", Arc::new(names)), ("n", Arc::new(Int64Array::from(vec![2, 2, 2, 3])))],
            1000,
        );
        let rejects = kept.path().join("rejects.ndjson");
        let target = cluster.target(&table, named(transport, Some(&rejects)));
        let report = run(&source, &target, &LoadOptions { verify: true, ..small() }).unwrap();
        assert_eq!((report.rows, report.rows_rejected, cluster.count(&table)), (2, 2, 2));
        assert!(report.verified.unwrap().matches());
        let mut rows: Vec<u64> = rejected(&rejects).iter().map(|row| row["row"].as_u64().unwrap()).collect();
        rows.sort_unstable();
        assert_eq!(rows, [1, 2]);
    }
}

#[test]
fn of_rows_with_one_key_in_several_requests_and_connections_one_is_loaded() {
    for (transport, degree) in
        [(Transport::Http, 1), (Transport::Http, 4), (Transport::Pg, 1), (Transport::Pg, 4)]
    {
        let cluster = Cluster::any();
        let table = cluster.table();
        let (kept, source) = source_of(repeating(), 1000);
        let rejects = kept.path().join("rejects.ndjson");
        let target = cluster.target(&table, named(transport, Some(&rejects)));
        let options = LoadOptions { verify: true, degree, ..small() };
        let report = run(&source, &target, &options).unwrap();
        assert_eq!((report.rows, report.rows_rejected), (1_798, 202), "{transport:?}");
        assert!(report.verified.unwrap().matches());
        assert_each_name_is_there_once(&cluster, &table, &rejects);
        let again = run(&source, &target, &options).unwrap();
        assert_eq!((again.state, again.rows, again.rows_rejected), (LoadState::Complete, 1_798, 202));
    }
}

#[test]
fn without_a_file_for_them_equal_rows_end_the_load_with_their_places_and_key() {
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let table = cluster.table();
        let names = (0..1_500).map(|i| format!("n{}", if i == 1_300 { 20 } else { i }));
        let numbers = (0..1_500).map(|i| if i == 1_300 { 20 } else { i });
        let (kept, source) = source_of(
            vec![
                ("name", Arc::new(StringArray::from_iter_values(names))),
                ("number", Arc::new(Int64Array::from_iter_values(numbers))),
            ],
            1000,
        );
        let options = LoadOptions { degree: 1, ..small() };
        let error = run(&source, &cluster.target(&table, named(transport, None)), &options).unwrap_err();
        assert_eq!(error.kind(), Kind::Value, "{error}");
        assert!(error.place().contains("data.parquet, row group 1, row 300"), "{error}");
        assert!(error.what().contains("\"name\" = \"n20\""), "{error}");
        assert!(error.advice().contains("--rejects"), "{error}");
        // What the error advises ends the load.
        let rejects = kept.path().join("rejects.ndjson");
        let target = cluster.target(&table, named(transport, Some(&rejects)));
        let report = run(&source, &target, &LoadOptions { verify: true, ..small() }).unwrap();
        assert_eq!((report.state, report.rows, report.rows_rejected), (LoadState::Resumed, 1_499, 1));
        assert_eq!((cluster.count(&table), rejected(&rejects).len()), (1_499, 1));
    }
}

#[test]
fn a_row_that_was_sent_twice_after_a_lost_answer_is_not_taken_for_an_equal_one() {
    let cluster = Cluster::standin();
    let faults = cluster.standin.as_ref().unwrap().faults();
    let (kept, source) = source_of(repeating(), 1000);
    let rejects = kept.path().join("rejects.ndjson");
    let lost = |number: usize| (number % 3 == 1).then_some(Fault::DropAfter);
    faults.plan((0..40).map(lost));
    let target = cluster.target("t", named(Transport::Http, Some(&rejects)));
    let report = run(&source, &target, &LoadOptions { verify: true, retries: 8, ..small() }).unwrap();
    assert_eq!((report.rows, report.rows_rejected), (1_798, 202));
    assert!(report.verified.unwrap().matches());
    assert_each_name_is_there_once(&cluster, "t", &rejects);
}

#[test]
fn a_load_that_was_broken_off_ends_with_one_row_of_each_key() {
    for after in [3, 9, 14, 18] {
        let cluster = Cluster::standin();
        let standin = cluster.standin.as_ref().unwrap();
        let (kept, source) = source_of(repeating(), 1000);
        let rejects = kept.path().join("rejects.ndjson");
        let target = cluster.target("t", named(Transport::Http, Some(&rejects)));
        standin.faults().plan((0..after).map(|_| None).chain([Some(Fault::Disappear)]));
        run(&source, &target, &LoadOptions { retries: 0, ..small() }).unwrap_err();
        standin.restart(0);
        let report = run(&source, &target, &LoadOptions { verify: true, ..small() }).unwrap();
        assert_eq!((report.state, report.rows, report.rows_rejected), (LoadState::Resumed, 1_798, 202));
        assert!(report.verified.unwrap().matches());
        assert_each_name_is_there_once(&cluster, "t", &rejects);
    }
}

#[test]
fn an_append_that_goes_on_does_not_miss_the_rows_that_are_equal_to_others() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    cluster.sql("CREATE TABLE doc.\"t\" (\"name\" TEXT PRIMARY KEY, \"number\" BIGINT)");
    let names = (0..1_000).map(|i| format!("n{}", i / 2));
    let (_kept, source) = source_of(
        vec![
            ("name", Arc::new(StringArray::from_iter_values(names))),
            ("number", Arc::new(Int64Array::from_iter_values((0..1_000).map(|i| i / 2)))),
        ],
        1000,
    );
    let options = CrateOptions { transport: Transport::Http, batch_rows: 100, ..CrateOptions::default() };
    let target = append(cluster.target("t", options));
    standin.faults().plan((0..7).map(|_| None).chain([Some(Fault::Disappear)]));
    run(&source, &target, &LoadOptions { retries: 0, degree: 1, ..small() }).unwrap_err();
    standin.restart(0);
    let report = run(&source, &target, &small()).unwrap();
    assert_eq!((report.state, report.rows, cluster.count("t")), (LoadState::Resumed, 1_000, 500));
}
