//! What a load says of the table is what the table has now.

use sawmill_cratedb::{CrateOptions, Transport};
use sawmill_cratedb_standin::Fault;
use sawmill_loader::{LoadOptions, LoadState, Mode, Note};
use sawmill_source::{Kind, ParquetFiles};

use crate::cluster::{Cluster, append, keyed, people, people_from, run, small};

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
    assert!(error.what().contains("the table has 0 rows; it had 1,000 when"), "{error}");
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

#[test]
fn a_complete_append_is_verified_even_if_its_first_run_was_not() {
    for (key, at_least_once) in [(" PRIMARY KEY", false), ("", true)] {
        let cluster = Cluster::any();
        let table = cluster.table();
        cluster.sql(&format!(
            "CREATE TABLE doc.\"{table}\" (\"id\" BIGINT{key}, \"name\" TEXT) WITH (number_of_replicas = '0')"
        ));
        let options = CrateOptions { at_least_once, transport: Transport::Http, ..CrateOptions::default() };
        let target = append(cluster.target(&table, options));
        let directory = tempfile::tempdir().unwrap();
        let files = [("a", 0, 700), ("b", 700, 300)].map(|(name, first, rows)| {
            let path = directory.path().join(name);
            people_from(&path, first, rows);
            ParquetFiles::open(&[path]).unwrap()
        });
        files.iter().for_each(|file| drop(run(file, &target, &small()).unwrap()));
        let verified = LoadOptions { verify: true, ..small() };
        for (file, others) in files.iter().zip([300, 700]) {
            let report = run(file, &target, &verified).unwrap();
            assert_eq!(report.state, LoadState::Complete);
            assert_eq!(report.verified.unwrap().rows_of_others, others);
        }
        cluster.sql(&format!("UPDATE doc.\"{table}\" SET \"name\" = 'another' WHERE \"id\" = 77"));
        let error = run(&files[0], &target, &verified).unwrap_err();
        // With a key, the rows are looked for one by one.
        let differs = match at_least_once {
            true => "the table does not hold what the files hold",
            false => "the table lacks 1 row of the files, or has others under their keys",
        };
        assert!(error.what().contains(differs), "{error}");
        // A row that no load has brought.
        cluster.sql(&format!("INSERT INTO doc.\"{table}\" (\"id\") VALUES (-1)"));
        let report = run(&files[0], &target, &verified).unwrap();
        assert_eq!((report.state, report.verified), (LoadState::Complete, None));
        let noted = |note: &Note| matches!(note, Note::OtherRows(what) if what.contains("other rows than those on record"));
        assert!(report.notes.iter().any(noted), "{:?}", report.notes);
    }
}
