//! Many small files are sent and recorded together, each row with its file's key.

use std::path::PathBuf;

use sawmill_cratedb::{CrateOptions, Transport, crate_status};
use sawmill_cratedb_standin::Fault;
use sawmill_loader::{LoadOptions, LoadState, Mode};
use sawmill_source::{Kind, ParquetFiles};

use crate::cluster::{Cluster, append, keyed, people_from, run, small, with_control};

/// `files` files of 10 people each.
fn tiny(directory: &tempfile::TempDir, files: i64) -> ParquetFiles {
    let path = |file: i64| directory.path().join(format!("{file:03}.parquet"));
    (0..files).for_each(|file| people_from(&path(file), file * 10, 10));
    ParquetFiles::open(&(0..files).map(path).collect::<Vec<PathBuf>>()).unwrap()
}

fn verifying() -> LoadOptions {
    LoadOptions { degree: 1, verify: true, ..small() }
}

#[test]
fn small_files_share_requests_and_are_known_one_by_one() {
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let (table, directory) = (cluster.table(), tempfile::tempdir().unwrap());
        let source = tiny(&directory, 50);
        let target = cluster.target(&table, CrateOptions { batch_rows: 200, ..keyed(transport) });
        let report = run(&source, &target, &verifying()).unwrap();
        assert_eq!((report.rows, report.units, report.files_loaded), (500, 50, 50));
        assert!(report.verified.unwrap().matches());
        if let Some(standin) = &cluster.standin {
            assert_eq!(standin.bulks() + standin.unnests(), 3);
        }
        let loads =
            with_control(|control| crate_status(&cluster.server(), &cluster.checkpoints(), None, control));
        assert!(loads.unwrap()[0].files.iter().all(|file| file.rows == Some(10)));
        let some = ParquetFiles::open(&[directory.path().join("007.parquet")]).unwrap();
        let report = run(&some, &append(target), &verifying()).unwrap();
        assert_eq!((report.state, report.files_already), (LoadState::Complete, 1));
    }
}

#[test]
fn a_batch_of_small_files_that_is_lost_is_sent_again_and_the_load_goes_on_after_an_end() {
    for (last, options) in
        [(Fault::DropAfter, small()), (Fault::Disappear, LoadOptions { retries: 0, ..small() })]
    {
        let cluster = Cluster::standin();
        let standin = cluster.standin.as_ref().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let source = tiny(&directory, 50);
        let target = cluster.target("t", CrateOptions { batch_rows: 100, ..keyed(Transport::Http) });
        standin.faults().plan([None, None, Some(last)]);
        let first = run(&source, &target, &LoadOptions { degree: 1, ..options });
        if first.is_err() {
            standin.restart(0);
        }
        let report = run(&source, &target, &verifying()).unwrap();
        let state = if first.is_ok() { LoadState::Complete } else { LoadState::Resumed };
        assert_eq!((report.state, report.rows), (state, 500));
        if first.is_err() {
            assert_eq!(report.units_resumed, 20);
        }
        assert!(report.verified.unwrap().matches());
        assert_eq!(cluster.count("t"), 500);
    }
}

#[test]
fn a_refused_row_among_small_files_is_of_its_own_file() {
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let (table, directory) = (cluster.table(), tempfile::tempdir().unwrap());
        cluster.sql(&format!(
            "CREATE TABLE doc.\"{table}\" (\"sawmill_row_key\" TEXT PRIMARY KEY, \"id\" BIGINT, \"name\" VARCHAR(7)) \
             WITH (number_of_replicas = '0')"
        ));
        // `name 100` and later ones are too long; every third person has no name.
        let source = tiny(&directory, 12);
        let options = CrateOptions { batch_rows: 200, ..keyed(transport) };
        let target = cluster.target(&table, options.clone()).mode(Mode::Append);
        let error = run(&source, &target, &verifying()).unwrap_err();
        assert_eq!(error.kind(), Kind::Value);
        assert!(error.place().contains("010.parquet, row group 0, row 0"), "{error}");
        let rejects = directory.path().join("rejects.ndjson");
        let options = CrateOptions { rejects: Some(rejects.clone()), ..options };
        let target = cluster.target(&table, options).mode(Mode::Append);
        let report = run(&source, &target, &verifying()).unwrap();
        assert_eq!((report.rows, report.rows_rejected), (106, 14));
        assert!(report.verified.unwrap().matches());
        let text = std::fs::read_to_string(rejects).unwrap();
        assert_eq!(text.lines().filter(|line| line.contains("010.parquet")).count(), 7);
        assert_eq!(text.lines().filter(|line| line.contains("011.parquet")).count(), 7);
        let again = run(&source, &target, &verifying()).unwrap();
        assert_eq!((again.state, again.rows_rejected), (LoadState::Complete, 14));
        assert!(!again.notes.iter().any(|note| note.contains("not looked at")), "{:?}", again.notes);
    }
}

#[test]
fn a_load_of_one_small_file_asks_the_server_few_things() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    // The first load makes the tables of records.
    for (table, most) in [("first", 33), ("second", 28)] {
        let directory = tempfile::tempdir().unwrap();
        let options = CrateOptions { transport: Transport::Http, ..CrateOptions::default() };
        let before = standin.statements();
        run(&tiny(&directory, 1), &cluster.target(table, options), &LoadOptions { degree: 1, ..small() })
            .unwrap();
        let asked = standin.statements() - before;
        assert!(asked <= most, "{asked} statements beside the rows");
    }
}
