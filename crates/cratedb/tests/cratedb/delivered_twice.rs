//! Requests that reach the server twice, as through a proxy that tries again or by CrateDB's own retry: no row is wrong,
//! none is refused, and every figure of the report is one of the table.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use arrow_array::{Int64Array, StringArray};
use sawmill_cratedb::{CrateDb, CrateOptions, Transport};
use sawmill_cratedb_standin::Fault;
use sawmill_loader::{LoadOptions, LoadReport, LoadState, load};
use sawmill_profile::Profile;
use sawmill_source::{Control, ParquetFiles};

use crate::cluster::{Cluster, append, people, people_from, run, small, source_of, verify};

const KEYS: [Key; 3] = [Key::Row, Key::Primary, Key::None];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Key {
    Row,
    Primary,
    None,
}

fn options(key: Key, transport: Transport, rejects: Option<&Path>) -> CrateOptions {
    CrateOptions {
        row_key: (key == Key::Row).then(|| "sawmill_row_key".into()),
        primary_key: if key == Key::Primary { vec!["id".into()] } else { Vec::new() },
        transport,
        batch_rows: 100,
        rejects: rejects.map(Path::to_owned),
        replicas: Some("0".into()),
        ..CrateOptions::default()
    }
}

fn verifying() -> LoadOptions {
    LoadOptions { verify: true, ..small() }
}

/// Has every third request arrive twice, over both transports.
fn deliver_twice(cluster: &Cluster) {
    let standin = cluster.standin.as_ref().unwrap();
    let faults = || (0..60).map(|number| (number % 3 == 1).then_some(Fault::Twice));
    standin.faults().plan(faults());
    standin.pg_faults().plan(faults());
}

/// The report of a load, and the rows that its phase counted for the line of the report.
fn counted(source: &ParquetFiles, target: &CrateDb, options: &LoadOptions) -> (LoadReport, u64) {
    let (cancel, profile) = (AtomicBool::new(false), Profile::new());
    let phase = profile.phase("load");
    let report = load(source, target, options, &Control::new(&cancel, &phase)).unwrap();
    (report, phase.rows())
}

#[test]
fn a_new_table_has_each_row_once_and_none_is_rejected() {
    for (key, transport) in KEYS.into_iter().flat_map(|key| [(key, Transport::Http), (key, Transport::Pg)]) {
        for with_rejects in [false, true] {
            let case = format!("{key:?}, {transport:?}, {with_rejects}");
            let cluster = Cluster::standin();
            let (kept, source) = people(3_000);
            let rejects = kept.path().join("rejects.ndjson");
            let target =
                cluster.target("t", options(key, transport, with_rejects.then_some(rejects.as_path())));
            deliver_twice(&cluster);
            let (report, of_phase) = counted(&source, &target, &verifying());
            assert_eq!((report.rows, report.rows_loaded, of_phase), (3_000, 3_000, 3_000), "{case}");
            assert_eq!((report.rows_rejected, report.rows_there_before), (0, 0), "{case}");
            assert!(report.verified.unwrap().matches(), "{case}");
            assert_eq!(cluster.count("t"), 3_000, "{case}");
            assert_eq!(std::fs::read_to_string(&rejects).unwrap_or_default(), "", "{case}");
            // The row that a transport carried is one of the table, however often it was sent.
            let line = report.notes.iter().map(ToString::to_string).find(|note| note.contains("transport"));
            let line = line.unwrap();
            let numbers = line.split(';').next().unwrap().split([' ', ':']);
            let numbers = numbers.filter_map(|word| word.replace(',', "").parse::<u64>().ok());
            assert_eq!(numbers.sum::<u64>(), 3_000, "{case}: {line}");
        }
    }
}

#[test]
fn a_load_whose_every_request_arrives_twice_ends_and_goes_on_once_they_do_not() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (_kept, source) = people(1_000);
    let target = cluster.target("t", options(Key::None, Transport::Http, None));
    // Twelve rounds of ten requests; the load gives up in the eleventh.
    standin.faults().plan((0..120).map(|_| Some(Fault::Twice)));
    let error = run(&source, &target, &small()).unwrap_err();
    assert!(error.what().contains("arrive twice") && error.advice().contains("--row-key"), "{error}");
    let report = loop {
        // The loads before have used up the remaining faults by then.
        match run(&source, &target, &verifying()) {
            Ok(report) => break report,
            Err(error) => assert!(standin.faults().left() > 0, "{error}"),
        }
    };
    assert_eq!((report.state, report.rows, cluster.count("t")), (LoadState::Resumed, 1_000, 1_000));
    assert!(report.verified.unwrap().matches());
}

#[test]
fn equal_rows_are_rejected_all_the_same() {
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::standin();
        // Each id of the second thousand is there in the first one, or in the same request.
        let id = |i: i64| if i % 250 == 7 && i > 0 { i - i % 2 * 7 } else { i };
        let ids: Vec<i64> = (0..3_000).map(|i| if i == 1_500 { 3 } else { id(i) }).collect();
        let different = 3_000 - ids.iter().collect::<std::collections::BTreeSet<_>>().len() as u64;
        let names = StringArray::from_iter_values(ids.iter().map(|id| format!("name {id}")));
        let (kept, source) =
            source_of(vec![("id", Arc::new(Int64Array::from(ids))), ("name", Arc::new(names))], 1000);
        let rejects = kept.path().join("rejects.ndjson");
        let target = cluster.target("t", options(Key::Primary, transport, Some(&rejects)));
        deliver_twice(&cluster);
        let report = run(&source, &target, &verifying()).unwrap();
        assert!(different > 5);
        assert_eq!((report.rows, report.rows_rejected), (3_000 - different, different), "{transport:?}");
        assert!(report.verified.unwrap().matches());
        let rejected = std::fs::read_to_string(&rejects).unwrap().lines().count() as u64;
        assert_eq!((cluster.count("t"), rejected), (3_000 - different, different));
    }
}

#[test]
fn an_append_counts_and_verifies_its_rows_as_loaded() {
    for (key, transport) in
        [Key::Row, Key::Primary].into_iter().flat_map(|key| [(key, Transport::Http), (key, Transport::Pg)])
    {
        let case = format!("{key:?}, {transport:?}");
        let cluster = Cluster::standin();
        let (kept, source) = people(1_000);
        let earlier = kept.path().join("earlier.parquet");
        people_from(&earlier, 5_000, 700);
        let target = cluster.target("t", options(key, transport, None));
        run(&ParquetFiles::open(&[earlier]).unwrap(), &target, &small()).unwrap();
        deliver_twice(&cluster);
        let report = run(&source, &append(target), &verifying()).unwrap();
        assert_eq!((report.rows, report.rows_loaded, report.rows_there_before), (1_000, 1_000, 0), "{case}");
        assert!(report.verified.unwrap().matches(), "{case}");
        assert_eq!(cluster.count("t"), 1_700, "{case}");
        assert!(
            report.notes.iter().any(|note| note.contains("came while the load ran: a request arrived twice")),
            "{case}: {:?}",
            report.notes
        );
    }
}

#[test]
fn a_row_that_is_there_with_other_values_is_still_refused() {
    let cluster = Cluster::standin();
    cluster.sql("CREATE TABLE doc.\"t\" (\"id\" BIGINT PRIMARY KEY, \"name\" TEXT)");
    cluster.sql("INSERT INTO doc.\"t\" (\"id\", \"name\") VALUES (777, 'another')");
    let (_kept, source) = people(1_000);
    deliver_twice(&cluster);
    let target = append(cluster.target("t", options(Key::Primary, Transport::Http, None)));
    let error = run(&source, &target, &small()).unwrap_err();
    assert!(error.what().contains("another row with this primary key"), "{error}");
    assert!(error.place().contains("row 777"), "{error}");
}

#[test]
fn without_a_key_the_report_says_how_many_rows_are_there_twice() {
    let cluster = Cluster::standin();
    let (_kept, source) = people(1_000);
    let keyless = CrateOptions { at_least_once: true, ..options(Key::None, Transport::Http, None) };
    cluster.standin.as_ref().unwrap().faults().plan([None, Some(Fault::Twice)]);
    let report = run(&source, &cluster.target("t", keyless), &small()).unwrap();
    assert_eq!((report.rows, report.rows_in_table), (1_000, Some(1_100)));
    let noted = |note: &sawmill_loader::Note| note.contains("arrived twice") && note.contains("100 more");
    assert!(report.notes.iter().any(noted), "{:?}", report.notes);
}

#[test]
fn a_second_delivery_that_is_still_running_is_ended_or_waited_for() {
    // Some versions close the shards of a table that is renamed, others do not, and KILL may end nothing.
    for (transport, open, unstoppable) in [Transport::Http, Transport::Pg]
        .into_iter()
        .flat_map(|transport| [(transport, false, false), (transport, true, false), (transport, true, true)])
    {
        let case = format!("{transport:?}, {open}, {unstoppable}");
        let cluster = Cluster::standin();
        let standin = cluster.standin.as_ref().unwrap();
        if open {
            standin.engine().keep_shards_open();
        }
        let time = match unstoppable {
            true => {
                standin.engine().end_no_jobs();
                Duration::from_millis(1_500)
            }
            false => Duration::from_secs(3_600),
        };
        let faults = if transport == Transport::Pg { standin.pg_faults() } else { standin.faults() };
        faults.plan([None, None, Some(Fault::Echo(time))]);
        let (_kept, source) = people(1_000);
        let target = cluster.target("t", options(Key::None, transport, None));
        let loading = LoadOptions { patience: Duration::from_secs(60), ..verifying() };
        let report = run(&source, &target, &loading).unwrap();
        assert_eq!((report.state, report.rows), (LoadState::New, 1_000), "{case}");
        // Nothing that could still arrive is left running.
        assert_eq!(cluster.sql("SELECT id, stmt FROM sys.jobs").len(), 1, "{case}");
        assert_eq!(cluster.count("t"), 1_000, "{case}");
        assert!(verify(&source, &target).matches(), "{case}");
    }
}
