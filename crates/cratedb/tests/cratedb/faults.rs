//! Everything that can go wrong on the way, and that every row is there once afterwards.

use std::time::Duration;

use sawmill_cratedb::{CrateDb, CrateOptions, Transport};
use sawmill_cratedb_standin::{Fault, StandIn};
use sawmill_loader::{LoadOptions, LoadState};

use crate::cluster::{Cluster, keyed, people, run, small};

fn options(transport: Transport) -> CrateOptions {
    CrateOptions { batch_rows: 100, ..keyed(transport) }
}

#[test]
fn rows_are_not_rejected_because_the_table_is_blocked() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (kept, source) = people(3_000);
    let rejects = kept.path().join("rejects.ndjson");
    let target =
        cluster.target("t", CrateOptions { rejects: Some(rejects.clone()), ..options(Transport::Http) });
    standin.faults().plan([None, None, Some(Fault::Blocked)]);
    let error = run(&source, &target, &small()).unwrap_err();
    assert!(error.what().contains("the table takes no rows: ClusterBlockException"), "{error}");
    assert!(error.advice().contains("full disk"), "{error}");
    assert_eq!(std::fs::read_to_string(rejects).unwrap(), "");
    let report = run(&source, &target, &small()).unwrap();
    assert_eq!((report.rows, report.rows_rejected), (3_000, 0));
}

#[test]
fn rows_are_not_rejected_because_the_cluster_may_have_no_more_shards() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (kept, source) = people(3_000);
    let rejects = kept.path().join("rejects.ndjson");
    let target =
        cluster.target("t", CrateOptions { rejects: Some(rejects.clone()), ..options(Transport::Http) });
    standin.faults().plan([None, None].into_iter().chain([Some(Fault::TooManyShards); 100]));
    let error = run(&source, &target, &small()).unwrap_err();
    assert!(error.what().contains("the table takes no rows") && error.what().contains("shards"), "{error}");
    assert!(error.advice().contains("cluster.max_shards_per_node"), "{error}");
    assert_eq!(std::fs::read_to_string(rejects).unwrap(), "");
}

#[test]
fn batches_that_are_lost_before_in_and_after_their_work_arrive_once() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (_kept, source) = people(3_000);
    let faults = [
        Fault::DropBefore,
        Fault::DropInTheMiddle,
        Fault::DropAfter,
        Fault::Unavailable,
        Fault::Busy,
        Fault::Slow(Duration::from_millis(300)),
        Fault::LostShard,
    ];
    standin.faults().plan(faults.into_iter().flat_map(|fault| [Some(fault), None]));
    let report = run(
        &source,
        &cluster.target("t", options(Transport::Http)),
        &LoadOptions { verify: true, ..small() },
    )
    .unwrap();
    assert_eq!((report.rows, standin.faults().left()), (3_000, 0));
    assert_eq!(cluster.count("t"), 3_000);
    assert!(report.notes.iter().any(|note| note.contains("tried again")), "{:?}", report.notes);
}

#[test]
fn the_postgresql_wire_may_fail_and_http_finds_what_is_missing() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (_kept, source) = people(3_000);
    // Three in a row would leave the wire alone for good.
    let faults = [Fault::DropBefore, Fault::DropInTheMiddle, Fault::DropAfter];
    standin.pg_faults().plan(faults.into_iter().flat_map(|fault| [Some(fault), None]));
    let loading = LoadOptions { verify: true, degree: 1, ..small() };
    let report = run(&source, &cluster.target("t", options(Transport::Pg)), &loading).unwrap();
    assert_eq!((report.rows, standin.pg_faults().left()), (3_000, 0));
    assert_eq!(cluster.count("t"), 3_000);
    assert!(report.notes.iter().any(|note| note.contains("redone over HTTP")), "{:?}", report.notes);
    assert!(standin.unnests() > 20, "the wire is used again afterwards: {}", standin.unnests());
}

#[test]
fn a_server_that_stays_away_ends_the_load_and_the_same_command_finishes_it() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (_kept, source) = people(3_000);
    let target = cluster.target("t", options(Transport::Http));
    standin.faults().plan([None, None, None, None, None, None, None, Some(Fault::Disappear)]);
    let error = run(&source, &target, &LoadOptions { retries: 1, degree: 1, ..small() }).unwrap_err();
    assert!(error.place().contains(&standin.port(0).to_string()), "{error}");
    standin.restart(0);
    let report = run(&source, &target, &LoadOptions { verify: true, ..small() }).unwrap();
    assert_eq!((report.state, report.rows, report.units_resumed), (LoadState::Resumed, 3_000, 1));
    assert_eq!(cluster.count("t"), 3_000);
}

#[test]
fn a_node_that_disappears_is_left_out_and_used_again_when_it_is_back() {
    let standin = StandIn::start(3);
    let target =
        CrateDb::new(standin.url().parse().unwrap(), "t".parse().unwrap()).options(options(Transport::Http));
    let (_kept, source) = people(20_000);
    standin.faults().plan([None, None, None, None, None, None, Some(Fault::Disappear)]);
    let report = run(&source, &target, &LoadOptions { unit_rows: 1000, ..small() }).unwrap();
    assert_eq!(report.rows, 20_000);
    assert_eq!(standin.engine().rows_in("doc", "t"), Some(20_000));
    // All three took part in turn.
    assert!((0..3).all(|node| standin.connections(node) > 0));
}

#[test]
fn a_request_is_never_longer_than_allowed_and_one_that_is_refused_for_it_is_halved() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    standin.limit(20_000);
    let (_kept, source) = people(3_000);
    let wide = CrateOptions { batch_rows: 3_000, ..keyed(Transport::Http) };
    let report =
        run(&source, &cluster.target("t", wide.clone()), &LoadOptions { unit_rows: 5_000, ..small() })
            .unwrap();
    assert_eq!(report.rows, 3_000);
    assert!(standin.largest() <= 20_000);
    assert_eq!(cluster.count("t"), 3_000);
    // A batch by bytes stays below them from the start.
    let (cluster, source) = (Cluster::standin(), source);
    let standin = cluster.standin.as_ref().unwrap();
    run(
        &source,
        &cluster.target("u", wide),
        &LoadOptions { unit_rows: 5_000, batch_bytes: 8_192, ..small() },
    )
    .unwrap();
    assert!(standin.largest() < 9_000, "{}", standin.largest());
}

#[test]
fn bodies_are_compressed_where_asked_for() {
    let cluster = Cluster::any();
    let (_kept, source) = people(1_000);
    let gzip = CrateOptions { gzip: true, ..options(Transport::Http) };
    run(&source, &cluster.target(&cluster.table(), gzip), &LoadOptions { verify: true, ..small() }).unwrap();
    assert!(cluster.standin.as_ref().is_none_or(|standin| standin.compressed() >= 10));
}

#[test]
fn a_wrong_password_is_reported_without_showing_it() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    standin.require("me", "right");
    let (_kept, source) = people(1_000);
    let at = |credentials: &str| {
        format!("crate://{credentials}127.0.0.1:{}/doc?pg_port={}", standin.port(0), standin.pg_port())
    };
    let target = |url: String| {
        CrateDb::new(url.parse().unwrap(), "t".parse().unwrap()).options(options(Transport::Auto))
    };
    for wrong in ["me:secret@", "", "you:right@"] {
        let error = run(&source, &target(at(wrong)), &small()).unwrap_err();
        assert!(
            error.to_string().contains("authentication") && !error.to_string().contains("secret"),
            "{error}"
        );
    }
    run(&source, &target(at("me:right@")), &small()).unwrap();
    assert!(standin.unnests() > 0);
}

#[test]
fn a_file_that_changed_since_the_load_began_is_refused() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (kept, source) = people(3_000);
    let target = cluster.target("t", options(Transport::Http));
    standin.faults().plan([None, None, Some(Fault::Disappear)]);
    run(&source, &target, &LoadOptions { retries: 0, degree: 1, ..small() }).unwrap_err();
    standin.restart(0);
    let (other, _) = people(3_001);
    std::fs::copy(other.path().join("data.parquet"), kept.path().join("data.parquet")).unwrap();
    let changed = sawmill_source::ParquetFiles::open(&[kept.path().join("data.parquet")]).unwrap();
    let error = run(&changed, &target, &small()).unwrap_err();
    assert_eq!(error.kind(), sawmill_source::Kind::Changed);
}
