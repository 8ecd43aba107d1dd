//! Exactly once without a key: batch tags, whatever happens to requests and runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{Int64Array, StringArray};
use proptest::prelude::*;
use sawmill_cratedb::{CrateOptions, Transport, crate_status};
use sawmill_cratedb_standin::{Fault, StandIn};
use sawmill_loader::{LoadOptions, LoadState, Mode};
use sawmill_source::{Kind, ParquetFiles};

use crate::cluster::{
    Cluster, append, keyed, people, people_from, run, small, source_of, verify, with_control,
};

fn tagged(transport: Transport) -> CrateOptions {
    CrateOptions { transport, batch_rows: 100, replicas: Some("0".into()), ..CrateOptions::default() }
}

fn patient() -> LoadOptions {
    LoadOptions { patience: Duration::from_secs(60), ..small() }
}

fn columns(cluster: &Cluster, table: &str) -> Vec<String> {
    let statement = format!(
        "SELECT column_name FROM information_schema.columns WHERE table_name = '{table}' ORDER BY ordinal_position"
    );
    cluster.sql(&statement).iter().map(|row| row[0].as_str().unwrap().to_owned()).collect()
}

/// The table has the source's rows and columns, and nothing is left of how they came.
fn exactly(cluster: &Cluster, table: &str, source: &ParquetFiles, rows: u64) {
    assert_eq!(cluster.count(table), rows);
    assert_eq!(columns(cluster, table), ["id", "name"]);
    for other in ["loading", "sealed"] {
        assert_eq!(columns(cluster, &format!("{table}__sawmill_{other}")), [] as [&str; 0]);
    }
    assert!(verify(source, &cluster.target(table, tagged(Transport::Http))).matches());
}

#[test]
fn without_any_option_rows_arrive_exactly_once_and_the_table_has_no_key() {
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let table = cluster.table();
        let (_kept, source) = people(3_000);
        let target = cluster.target(&table, tagged(transport));
        let report = run(&source, &target, &LoadOptions { verify: true, ..small() }).unwrap();
        assert_eq!((report.rows, report.rows_in_table), (3_000, Some(3_000)));
        assert!(report.verified.unwrap().matches());
        exactly(&cluster, &table, &source, 3_000);
        // Units of 500 rows, batches of 100.
        let name = table.parse().unwrap();
        let loads = with_control(|control| {
            crate_status(&cluster.server(), &cluster.checkpoints(), Some(&name), control)
        });
        assert_eq!(loads.unwrap()[0].audited_batches, Some(30));
        assert_eq!(run(&source, &target, &small()).unwrap().state, LoadState::Complete);
        let replaced = run(&source, &target.mode(Mode::Replace), &LoadOptions { again: true, ..small() });
        assert_eq!((replaced.unwrap().state, cluster.count(&table)), (LoadState::New, 3_000));
    }
}

#[test]
fn an_append_to_a_table_without_a_key_asks_for_consent() {
    let cluster = Cluster::any();
    let table = cluster.table();
    let (_kept, source) = people(100);
    let target = cluster.target(&table, tagged(Transport::Http));
    run(&source, &target, &small()).unwrap();
    let (_more, more) = people(50);
    let error = run(&more, &append(target), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Config);
    assert!(error.to_string().contains("--at-least-once"), "{error}");
}

#[test]
fn a_source_may_have_a_column_of_the_name_of_the_tags() {
    let cluster = Cluster::any();
    let table = cluster.table();
    let values = Int64Array::from_iter_values(0..500);
    let (_kept, source) = source_of(vec![("sawmill_batch", Arc::new(values))], 1000);
    run(&source, &cluster.target(&table, tagged(Transport::Http)), &small()).unwrap();
    assert_eq!((columns(&cluster, &table), cluster.count(&table)), (vec!["sawmill_batch".to_owned()], 500));
}

#[test]
fn a_partitioned_table_has_tags_while_it_gathers_too() {
    let cluster = Cluster::any();
    let table = cluster.table();
    let parts = Int64Array::from_iter_values((0..600).map(|id| id % 3));
    let ids = Int64Array::from_iter_values(0..600);
    let (_kept, source) = source_of(vec![("id", Arc::new(ids)), ("part", Arc::new(parts))], 1000);
    let options = CrateOptions { partition_by: Some("part".into()), ..tagged(Transport::Auto) };
    run(&source, &cluster.target(&table, options), &LoadOptions { verify: true, ..small() }).unwrap();
    assert_eq!((columns(&cluster, &table).len(), cluster.count(&table)), (2, 600));
}

#[test]
fn rejected_rows_are_written_to_their_file_over_both_transports() {
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let table = cluster.table();
        let ids = Int64Array::from_iter_values(0..900);
        // CrateDB does not take these bounds.
        let values =
            Int64Array::from_iter_values((0..900).map(|id| if id % 400 == 250 { i64::MAX } else { id }));
        let names = StringArray::from_iter_values((0..900).map(|id| format!("row {id}")));
        let (kept, source) = source_of(
            vec![("id", Arc::new(ids)), ("value", Arc::new(values)), ("name", Arc::new(names))],
            1000,
        );
        let rejects = kept.path().join("rejects.ndjson");
        let options = CrateOptions { rejects: Some(rejects.clone()), ..tagged(transport) };
        let target = cluster.target(&table, options);
        let report = run(&source, &target, &LoadOptions { verify: true, ..small() }).unwrap();
        assert_eq!(
            (report.rows, report.rows_rejected, cluster.count(&table)),
            (898, 2, 898),
            "{transport:?}"
        );
        let text = std::fs::read_to_string(rejects).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("\"row\":250") && text.contains("\"row\":650"), "{text}");
    }
}

#[test]
fn a_server_that_restarts_in_mid_flight_does_not_end_a_load_without_a_key() {
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::standin();
        let standin = cluster.standin.as_ref().unwrap();
        let (_kept, source) = people(5_000);
        let faults = if transport == Transport::Pg { standin.pg_faults() } else { standin.faults() };
        let restart = Fault::Restart(Duration::from_millis(500), Duration::from_millis(700));
        faults.plan((0..12).map(|_| None).chain([Some(restart)]));
        let report = run(&source, &cluster.target("t", tagged(transport)), &patient()).unwrap();
        assert_eq!((report.rows, report.rows_in_table), (5_000, Some(5_000)));
        exactly(&cluster, "t", &source, 5_000);
    }
}

#[test]
fn a_request_that_runs_on_without_its_connection_is_ended() {
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::standin();
        let standin = cluster.standin.as_ref().unwrap();
        let (_kept, source) = people(1_000);
        let faults = if transport == Transport::Pg { standin.pg_faults() } else { standin.faults() };
        faults.plan([None, Some(Fault::Orphan(Duration::from_secs(3_600)))]);
        let began = std::time::Instant::now();
        run(&source, &cluster.target("t", tagged(transport)), &patient()).unwrap();
        assert!(began.elapsed() < Duration::from_secs(30));
        exactly(&cluster, "t", &source, 1_000);
    }
}

#[test]
fn a_server_that_does_not_list_its_jobs_is_not_trusted() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    standin.engine().list_no_jobs();
    let (_kept, source) = people(1_000);
    let target = cluster.target("t", tagged(Transport::Http));
    standin.faults().plan([None, Some(Fault::DropAfter)]);
    let error = run(&source, &target, &small()).unwrap_err();
    assert!(error.to_string().contains("stats.enabled"), "{error}");
    assert_eq!(standin.engine().rows_in("doc", "t"), None);
}

#[test]
fn a_user_who_may_not_read_the_jobs_learns_so_when_it_matters() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    standin.engine().deny_sys();
    let (_kept, source) = people(1_000);
    run(&source, &cluster.target("quiet", tagged(Transport::Http)), &patient()).unwrap();
    standin.faults().plan([None, Some(Fault::DropAfter)]);
    let began = std::time::Instant::now();
    let error = run(&source, &cluster.target("t", tagged(Transport::Http)), &patient()).unwrap_err();
    assert!(error.to_string().contains("GRANT DQL ON TABLE sys.jobs"), "{error}");
    // It does not wait for a schema that never appears.
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_server_that_cannot_drop_columns_is_refused_before_anything_is_made() {
    let cluster = Cluster::standin();
    let engine = cluster.standin.as_ref().unwrap().engine();
    engine.set_version("5.4.8");
    let (_kept, source) = people(100);
    let error = run(&source, &cluster.target("t", tagged(Transport::Http)), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Config);
    assert!(error.to_string().contains("5.4.8") && error.to_string().contains("--row-key"), "{error}");
    assert_eq!(engine.table_names(), [] as [String; 0]);
    // With a key the load needs no such thing.
    run(&source, &cluster.target("t", keyed(Transport::Http)), &small()).unwrap();
    assert_eq!(cluster.count("t"), 100);
}

/// Waits for the requests that run on after their connections.
fn all_have_arrived(standin: &StandIn) {
    let end = Instant::now() + Duration::from_secs(60);
    while standin.running_on() > 0 {
        assert!(Instant::now() < end, "a request runs for ever");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_request_that_arrives_after_the_last_audit_finds_no_table() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (_kept, source) = people(1_000);
    standin.faults().plan([Some(Fault::Late(Duration::from_millis(1_500)))]);
    run(&source, &cluster.target("t", tagged(Transport::Http)), &small()).unwrap();
    all_have_arrived(standin);
    exactly(&cluster, "t", &source, 1_000);
}

#[test]
fn a_run_that_ends_at_any_step_after_the_last_row_is_finished_by_the_next() {
    for step in
        ["RENAME TO", "GROUP BY", "\"audited\" = ?", "DROP COLUMN", "\"state\" = ?", "\"t__sawmill_sealed\""]
    {
        for fault in [None, Some(Fault::DropInTheMiddle)] {
            let cluster = Cluster::standin();
            let standin = cluster.standin.as_ref().unwrap();
            let (_kept, source) = people(1_000);
            let target = cluster.target("t", tagged(Transport::Http));
            standin.faults().plan([fault]);
            standin.restart_before(step, Duration::from_millis(300), Duration::from_millis(100));
            // The server may still be recovering when the next run begins.
            let mut runs = 0;
            while let Err(error) = run(&source, &target, &LoadOptions { retries: 0, ..small() }) {
                runs += 1;
                assert!(runs < 50, "{step}: {error}");
                std::thread::sleep(Duration::from_millis(200));
            }
            exactly(&cluster, "t", &source, 1_000);
        }
    }
}

#[test]
fn a_run_waits_for_a_rename_that_a_killed_run_left_at_the_server() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (_kept, source) = people(1_000);
    let target = cluster.target("t", tagged(Transport::Http));
    let no_patience = LoadOptions { retries: 0, patience: Duration::ZERO, ..small() };
    // The server takes its time for the rename, and the loader gets no answer.
    let rename = Duration::from_secs(4);
    standin.orphan("RENAME TO", rename);
    let began = std::time::Instant::now();
    run(&source, &target, &no_patience).unwrap_err();
    let error = run(&source, &target, &no_patience).unwrap_err();
    assert_eq!(error.kind(), Kind::Busy, "{error}");
    assert!(error.to_string().contains("RENAME TO") && error.to_string().contains("sys.jobs"), "{error}");
    assert_eq!(run(&source, &target, &patient()).unwrap().state, LoadState::Resumed);
    assert!(began.elapsed() > rename);
    exactly(&cluster, "t", &source, 1_000);
}

/// Small units share batches: files of a few rows each.
fn small_files(directory: &std::path::Path) -> ParquetFiles {
    let paths: Vec<_> = (0..40).map(|file| directory.join(format!("{file:02}.parquet"))).collect();
    paths.iter().enumerate().for_each(|(file, path)| people_from(path, file as i64 * 30, 30));
    ParquetFiles::open(&paths).unwrap()
}

fn any_fault() -> impl Strategy<Value = Option<Fault>> {
    let short = |most: u64| (1..most).prop_map(Duration::from_millis);
    prop_oneof![
        6 => Just(None),
        1 => Just(Some(Fault::DropBefore)),
        1 => Just(Some(Fault::DropInTheMiddle)),
        1 => Just(Some(Fault::DropAfter)),
        1 => Just(Some(Fault::Unavailable)),
        1 => Just(Some(Fault::LostShard)),
        1 => Just(Some(Fault::Twice)),
        1 => short(400).prop_map(|time| Some(Fault::Echo(time))),
        2 => short(400).prop_map(|time| Some(Fault::Late(time))),
        1 => short(2_000).prop_map(|time| Some(Fault::Orphan(time))),
        1 => short(60).prop_map(|time| Some(Fault::Restart(time, time))),
        // The run ends here, and the next one finishes the load.
        1 => Just(Some(Fault::Disappear)),
    ]
}

proptest! {
    // Four times as many at night: by default PROPTEST_CASES is 256.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 32,
        max_shrink_iters: 40,
        ..ProptestConfig::default()
    })]
    #[test]
    fn random_faults_leave_exactly_the_rows(
        faults in prop::collection::vec(any_fault(), 1..30),
        by_pg in any::<bool>(),
        tiny in any::<bool>(),
        replace in any::<bool>(),
        by_key in any::<bool>(),
        keeps_shards_open in any::<bool>(),
    ) {
        let cluster = Cluster::standin();
        let standin: &StandIn = cluster.standin.as_ref().unwrap();
        let (kept, source) = people(1_200);
        let source = if tiny { small_files(kept.path()) } else { source };
        if keeps_shards_open {
            standin.engine().keep_shards_open();
        }
        let options = tagged(if by_pg { Transport::Pg } else { Transport::Http });
        let primary_key = if by_key { vec!["id".into()] } else { Vec::new() };
        let target = cluster.target("t", CrateOptions { primary_key, ..options });
        let target = if replace { target.mode(Mode::Replace) } else { target };
        standin.faults().plan(faults.iter().copied());
        standin.pg_faults().plan(faults.iter().rev().copied());
        let loading = LoadOptions { patience: Duration::from_millis(1_500), ..small() };
        let mut runs = 0;
        while let Err(error) = run(&source, &target, &loading) {
            runs += 1;
            prop_assert!(runs < 40, "{error}");
            // A node that disappeared is started again.
            if std::net::TcpStream::connect(cluster.http_address()).is_err() {
                standin.restart(0);
            }
        }
        all_have_arrived(standin);
        exactly(&cluster, "t", &source, 1_200);
    }
}
