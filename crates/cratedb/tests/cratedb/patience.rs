//! Answers that do not come: a server that still works is waited for, and a dead connection is replaced.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sawmill_cratedb::{CrateDb, CrateOptions, Transport};
use sawmill_cratedb_standin::{Fault, StandIn};
use sawmill_loader::{LoadOptions, LoadReport, load};
use sawmill_profile::Profile;
use sawmill_source::{Control, Result, Source};

use crate::cluster::{Cluster, keyed, people, small};

const PATIENCE: Duration = Duration::from_millis(400);
const ROWS: i64 = 3_000;

/// Rows with a key of their own, or with tags.
fn ways() -> Vec<(Transport, CrateOptions)> {
    [Transport::Http, Transport::Pg]
        .into_iter()
        .flat_map(|transport| {
            let tagged = CrateOptions { row_key: None, ..keyed(transport) };
            [keyed(transport), tagged].map(|options| (transport, CrateOptions { batch_rows: 100, ..options }))
        })
        .collect()
}

fn standin(cluster: &Cluster) -> &StandIn {
    cluster.standin.as_ref().unwrap()
}

/// Plans faults for the batches of a transport.
fn plan(cluster: &Cluster, transport: Transport, faults: &[Option<Fault>]) {
    let standin = standin(cluster);
    let planned = if transport == Transport::Pg { standin.pg_faults() } else { standin.faults() };
    planned.plan(faults.iter().copied());
}

/// Loads with the patience; also returns the notices.
fn loaded(source: &dyn Source, target: &CrateDb) -> (Result<LoadReport>, Vec<String>) {
    let (cancel, phase) = (AtomicBool::new(false), Profile::new().phase("load"));
    let notices = Mutex::new(Vec::new());
    let note = |line: &str| notices.lock().unwrap().push(line.to_owned());
    let options = LoadOptions { patience: PATIENCE, verify: true, degree: 2, ..small() };
    let report = load(source, target, &options, &Control::new(&cancel, &phase).with_notices(&note));
    (report, notices.into_inner().unwrap())
}

#[test]
fn a_batch_that_takes_longer_than_the_patience_is_waited_for() {
    for (transport, options) in ways() {
        let cluster = Cluster::standin();
        let (_kept, source) = people(ROWS);
        plan(&cluster, transport, &[None, None, Some(Fault::Slow(PATIENCE * 4))]);
        let (report, notices) = loaded(&source, &cluster.target("t", options));
        let report = report.unwrap();
        let asked = notices.iter().filter(|line| line.contains("the server works on it (sys.jobs)")).count();
        assert!(asked >= 2, "{transport:?}: {notices:?}");
        assert!(report.verified.unwrap().matches());
        let again = |note: &&sawmill_loader::Note| note.contains("tried again") || note.contains("redone");
        assert_eq!(report.notes.iter().find(again), None, "{transport:?}");
        assert_eq!(cluster.count("t"), ROWS as u64);
    }
}

#[test]
fn a_batch_whose_answer_is_swallowed_is_a_lost_connection_and_its_rows_are_there_once() {
    for (transport, options) in ways() {
        let cluster = Cluster::standin();
        let (_kept, source) = people(ROWS);
        plan(&cluster, transport, &[None, None, Some(Fault::Silent), None, None, Some(Fault::Silent)]);
        let (report, notices) = loaded(&source, &cluster.target("t", options));
        let report = report.unwrap_or_else(|error| panic!("{transport:?}: {error} {notices:?}"));
        assert!(report.verified.unwrap().matches());
        let faults = [standin(&cluster).faults(), standin(&cluster).pg_faults()];
        assert_eq!(faults.map(|faults| faults.left()), [0, 0]);
        assert_eq!(cluster.count("t"), ROWS as u64);
    }
}

#[test]
fn a_server_that_hides_its_jobs_is_not_waited_for() {
    let cluster = Cluster::standin();
    let (_kept, source) = people(ROWS);
    standin(&cluster).engine().list_no_jobs();
    plan(&cluster, Transport::Http, &[None, Some(Fault::Slow(PATIENCE * 4))]);
    let options = CrateOptions { batch_rows: 100, ..keyed(Transport::Http) };
    let (report, notices) = loaded(&source, &cluster.target("t", options));
    let report = report.unwrap();
    assert!(report.notes.iter().any(|note| note.contains("tried again")), "{:?}", report.notes);
    assert!(!notices.iter().any(|line| line.contains("works on it")), "{notices:?}");
    assert_eq!(cluster.count("t"), ROWS as u64);
}

#[test]
fn the_jobs_are_listed_as_by_the_real_server() {
    let cluster = Cluster::any();
    let rows = cluster.sql("SELECT id, stmt, started, node, username FROM sys.jobs");
    let own = rows.iter().find(|row| row[1].as_str().is_some_and(|text| text.contains("username"))).unwrap();
    assert_eq!(own[0].as_str().unwrap().len(), 36);
    assert!(own[2].as_i64().unwrap() > 1_700_000_000_000);
    assert!(own[3]["id"].is_string() && own[3]["name"].is_string());
    assert!(own[4].is_string());
}
