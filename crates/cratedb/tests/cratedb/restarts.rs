//! A server that restarts during a load is waited for.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use sawmill_cratedb::{CrateOptions, Transport};
use sawmill_cratedb_standin::Fault;
use sawmill_loader::{LoadOptions, LoadReport, load};
use sawmill_profile::Profile;
use sawmill_source::{Control, Kind, ParquetFiles};

use crate::cluster::{Cluster, append, keyed, people, run, small, with_control};

fn patient() -> LoadOptions {
    LoadOptions { patience: Duration::from_secs(60), retries: 0, ..small() }
}

fn run_saying(source: &ParquetFiles, target: &sawmill_cratedb::CrateDb) -> (LoadReport, Vec<String>) {
    let lines = Mutex::new(Vec::new());
    let say = |line: &str| lines.lock().unwrap().push(line.to_owned());
    let (cancel, profile) = (AtomicBool::new(false), Profile::new());
    let phase = profile.phase("load");
    let options = LoadOptions { verify: true, ..patient() };
    let report = load(source, target, &options, &Control::new(&cancel, &phase).with_notices(&say)).unwrap();
    (report, lines.into_inner().unwrap())
}

#[test]
fn a_server_that_restarts_in_mid_load_is_waited_for_over_both_transports() {
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::standin();
        let standin = cluster.standin.as_ref().unwrap();
        let (_kept, source) = people(5_000);
        let target = cluster.target("t", CrateOptions { batch_rows: 100, ..keyed(transport) });
        let faults = if transport == Transport::Pg { standin.pg_faults() } else { standin.faults() };
        let restart = Fault::Restart(Duration::from_millis(1_500), Duration::from_millis(1_500));
        faults.plan((0..12).map(|_| None).chain([Some(restart)]));
        let (report, lines) = run_saying(&source, &target);
        assert_eq!((report.rows, report.rows_in_table), (5_000, Some(5_000)));
        assert_eq!(cluster.count("t"), 5_000);
        assert!(lines.iter().any(|line| line.contains("waiting for the server, up to 60 s")), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("the server answers again after")), "{lines:?}");
        assert_eq!(lines.len(), 2, "{lines:?}");
    }
}

#[test]
fn a_first_contact_fails_at_once_where_nothing_listens() {
    let cluster = Cluster::standin();
    cluster.standin.as_ref().unwrap().stop(0);
    while std::net::TcpStream::connect(cluster.http_address()).is_ok() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let (_kept, source) = people(10);
    let started = Instant::now();
    let error = run(&source, &cluster.target("t", keyed(Transport::Auto)), &patient()).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert!(error.what().contains("cannot connect"), "{error}");
}

#[test]
fn a_table_that_does_not_exist_is_an_error_at_once() {
    let cluster = Cluster::standin();
    let (_kept, source) = people(10);
    let started = Instant::now();
    let error = run(&source, &append(cluster.target("t", keyed(Transport::Auto))), &patient()).unwrap_err();
    assert_eq!(error.kind(), Kind::Schema);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

const SHORT: Duration = Duration::from_millis(600);

#[test]
fn a_server_that_restarts_before_the_table_gets_its_name_is_asked_again() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (_kept, source) = people(1_000);
    standin.restart_before("RENAME TO", SHORT, SHORT * 2);
    let (report, _) = run_saying(&source, &cluster.target("t", keyed(Transport::Http)));
    assert_eq!(report.rows, 1_000);
    assert_eq!(standin.engine().rows_in("doc", "t"), Some(1_000));
    assert_eq!(standin.engine().rows_in("doc", "t__sawmill_loading"), None);
}

#[test]
fn without_a_key_rows_that_did_not_reach_the_postgresql_wire_go_over_http() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (_kept, source) = people(2_000);
    let keyless =
        CrateOptions { row_key: None, at_least_once: true, batch_rows: 100, ..keyed(Transport::Auto) };
    // The server restarts between two batches: all that was sent was answered.
    standin.restart_before("INSERT INTO \"t_checkpoints\".\"units\"", SHORT, Duration::ZERO);
    let target = cluster.target("t", keyless);
    let report = run(&source, &target, &LoadOptions { degree: 1, ..patient() }).unwrap();
    assert_eq!((report.rows, cluster.count("t")), (2_000, 2_000));
}

#[test]
fn rows_that_a_crash_took_are_missed_at_the_end() {
    let with = vec![("translog.durability".to_owned(), "async".to_owned())];
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (_kept, source) = people(3_000);
    let options = CrateOptions { batch_rows: 100, with, ..keyed(Transport::Http) };
    let target = cluster.target("t", options);
    standin.faults().plan((0..12).map(|_| None).chain([Some(Fault::Restart(SHORT, SHORT))]));
    for _ in 0..2 {
        let error = run(&source, &target, &patient()).unwrap_err();
        assert_eq!(error.kind(), Kind::Mismatch);
        assert!(error.what().contains("the table has ") && error.what().contains("ASYNC"), "{error}");
        assert!(error.advice().contains("sawmill load forget"), "{error}");
    }
    assert_eq!(standin.engine().rows_in("doc", "t"), None);
    with_control(|control| target.forget(false, control)).unwrap();
    assert_eq!(run(&source, &target, &patient()).unwrap().rows_in_table, Some(3_000));
}

#[test]
fn rows_of_others_do_not_hide_those_that_a_crash_took() {
    let with = vec![("translog.durability".to_owned(), "async".to_owned())];
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let options = CrateOptions { batch_rows: 100, with, ..keyed(Transport::Http) };
    let (_first, first) = people(10);
    run(&first, &cluster.target("t", options.clone()), &small()).unwrap();
    let (_kept, source) = people(3_000);
    let target = append(cluster.target("t", options));
    standin.faults().plan((0..12).map(|_| None).chain([Some(Fault::Restart(SHORT, SHORT))]));
    run(&source, &target, &patient()).unwrap_err();
    let others: Vec<String> = (0..3_000).map(|id| format!("('another {id}', {id})")).collect();
    cluster.sql(&format!("INSERT INTO doc.t (\"sawmill_row_key\", \"id\") VALUES {}", others.join(", ")));
    let error = run(&source, &target, &patient()).unwrap_err();
    assert_eq!(error.kind(), Kind::Mismatch);
    assert!(error.what().contains(" of them; its translog.durability is ASYNC"), "{error}");
    with_control(|control| target.forget(false, control)).unwrap();
    run(&source, &target, &patient()).unwrap();
    assert_eq!(cluster.count("t"), 6_010);
}

#[test]
fn rows_of_a_complete_load_are_on_disk_whatever_the_durability() {
    let with = vec![("translog.durability".to_owned(), "async".to_owned())];
    let cluster = Cluster::any();
    let table = cluster.table();
    let (_kept, source) = people(1_000);
    let target = cluster.target(&table, CrateOptions { with, ..keyed(Transport::Http) });
    run(&source, &target, &small()).unwrap();
    if let Some(standin) = &cluster.standin {
        standin.engine().crash();
    }
    assert_eq!(cluster.count(&table), 1_000);
}

#[test]
fn a_table_that_is_made_during_a_load_stays_as_it_is() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (_kept, source) = people(1_000);
    let target = cluster.target("t", CrateOptions { batch_rows: 100, ..keyed(Transport::Http) });
    std::thread::scope(|scope| {
        let hold = standin.faults().hold_after(1);
        let loading = scope.spawn(|| run(&source, &target, &small()));
        while standin.faults().left() > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        cluster.sql("CREATE TABLE \"doc\".\"t\" (\"other\" TEXT)");
        drop(hold);
        let error = loading.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), Kind::Exists, "{error}");
        assert!(error.what().contains("was made while the load ran"), "{error}");
    });
    assert_eq!(
        cluster.sql("SELECT column_name FROM information_schema.columns WHERE table_name = 't'").len(),
        1
    );
    cluster.sql("DROP TABLE \"doc\".\"t\"");
    assert_eq!(run(&source, &target, &small()).unwrap().rows_in_table, Some(1_000));
}
