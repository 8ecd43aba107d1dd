//! What a load says of the table is what the table has now.

use sawmill_cratedb::{CrateOptions, Transport};
use sawmill_cratedb_standin::Fault;
use sawmill_loader::{LoadOptions, LoadState, Mode};
use sawmill_source::Kind;

use crate::cluster::{Cluster, append, keyed, people, run, small};

#[test]
fn an_append_whose_rows_were_deleted_is_not_complete() {
    let cluster = Cluster::any();
    let table = cluster.table();
    let (_a, first) = people(700);
    let (_b, second) = people(300);
    let target = cluster.target(&table, keyed(Transport::Http));
    run(&first, &target, &small()).unwrap();
    let target = append(target);
    run(&second, &target, &small()).unwrap();
    let complete = run(&second, &target, &small()).unwrap();
    assert_eq!((complete.state, complete.rows_in_table), (LoadState::Complete, Some(1_000)));
    cluster.sql(&format!("DELETE FROM doc.\"{table}\""));
    let error = run(&second, &target, &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Changed);
    assert!(error.what().contains("the table has 0 rows; it had 1000 when"), "{error}");
    assert!(error.advice().contains("--again"), "{error}");
    let again = run(&second, &target, &LoadOptions { again: true, ..small() }).unwrap();
    assert_eq!((again.state, again.rows, again.rows_in_table), (LoadState::New, 300, Some(300)));
    assert_eq!(cluster.count(&table), 300);
}

#[test]
fn a_table_of_a_complete_load_that_was_emptied_is_refused_with_what_was_found() {
    let cluster = Cluster::any();
    let table = cluster.table();
    let (_kept, source) = people(700);
    let target = cluster.target(&table, keyed(Transport::Http));
    run(&source, &target, &small()).unwrap();
    cluster.sql(&format!("DELETE FROM doc.\"{table}\""));
    let error = run(&source, &target, &small()).unwrap_err();
    assert!(error.what().contains("with 0 rows; it had 700 when this load was complete"), "{error}");
    let replaced = run(&source, &target.mode(Mode::Replace), &small()).unwrap();
    assert_eq!((replaced.state, replaced.rows_in_table), (LoadState::New, Some(700)));
}

#[test]
fn a_load_does_not_go_on_over_rows_that_are_gone() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (_kept, source) = people(3_000);
    let target = cluster.target("t", CrateOptions { batch_rows: 100, ..keyed(Transport::Http) });
    standin.faults().plan([None, None, None, None, None, None, None, Some(Fault::Disappear)]);
    run(&source, &target, &LoadOptions { retries: 1, degree: 1, ..small() }).unwrap_err();
    standin.restart(0);
    // Rows that are not refreshed are not deleted.
    cluster.count("t__sawmill_loading");
    cluster.sql("DELETE FROM doc.\"t__sawmill_loading\"");
    let error = run(&source, &target, &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Mismatch);
    assert!(error.what().contains("500 rows are recorded as loaded, the table has 0"), "{error}");
}

#[test]
fn batches_that_were_sent_twice_without_a_key_are_counted_and_named() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (_kept, source) = people(3_000);
    let keyless =
        CrateOptions { row_key: None, at_least_once: true, batch_rows: 100, ..keyed(Transport::Http) };
    let target = cluster.target("t", keyless);
    // Of the second unit two batches go in before the third is lost.
    standin.faults().plan((0..7).map(|_| None).chain([Some(Fault::DropAfter)]));
    run(&source, &target, &LoadOptions { degree: 1, ..small() }).unwrap_err();
    for state in [LoadState::Resumed, LoadState::Complete] {
        let report = run(&source, &target, &LoadOptions { degree: 1, ..small() }).unwrap();
        assert_eq!((report.state, report.rows, report.rows_in_table), (state, 3_000, Some(3_300)));
        let noted = report.notes.iter().any(|note| note.contains("sent twice") && note.contains("300 more"));
        assert_eq!(noted, state == LoadState::Resumed, "{:?}", report.notes);
    }
    assert_eq!(cluster.count("t"), 3_300);
}
