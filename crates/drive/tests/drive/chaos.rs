//! The proof of the proof: it finds what a server loses, and nothing where it loses nothing.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sawmill_drive::DriveResult;
use sawmill_localpg::LocalPg;

use crate::shared_server::SharedDatabase;
use crate::{address, driven, driven_and_then, plan};

/// Kills all processes of a server while rows arrive.
fn killed(commit: &str) -> DriveResult {
    let mut server = LocalPg::builder()
        .setting("fsync", "on")
        .setting("synchronous_commit", commit)
        // Asynchronous commits wait this long to be written.
        .setting("wal_writer_delay", "10s")
        .start()
        .unwrap();
    let plan = plan(
        r#"
rate = 400
for = "6s"
connections = 4
chaos = "kill server every 2s"
[tables.events]
[[operations]]
name = "insert"
weight = 5
insert = "events"
[[operations]]
name = "three"
insert = "events"
rows = 3
"#,
    );
    let address = address(&server);
    driven(&plan, &address, Some(&mut server))
}

#[test]
fn acknowledged_rows_survive_kills_when_commits_wait_for_the_log() {
    let result = killed("on");
    assert!(
        result.chaos.len() >= 2 && result.chaos.iter().all(|event| event.error.is_none()),
        "{:?}",
        result.chaos
    );
    let proof = &result.proof[0];
    assert!(proof.holds(), "{proof:?}");
    assert!(proof.acknowledged > 500, "{proof:?}");
    // The kills were noticed: connections were lost, and the outcome of operations under way is unknown.
    let lost: u64 = result.total.errors.values().sum();
    assert!(lost > 0 && proof.unknown > 0, "{:?} {proof:?}", result.total.errors);
    assert!(proof.unknown_found <= proof.unknown);
}

#[test]
fn the_loss_of_acknowledged_rows_is_found_when_commits_do_not_wait() {
    let result = killed("off");
    let proof = &result.proof[0];
    assert!(proof.lost > 0, "nothing was lost with synchronous_commit=off: {proof:?}");
    assert!(!proof.holds() && proof.examples[0].contains("was acknowledged and is not there"), "{proof:?}");
    assert_eq!(proof.different + proof.foreign + proof.doubled, 0, "{proof:?}");
}

#[test]
fn a_proof_waits_for_a_server_that_is_away_after_the_last_operation() {
    let mut server = LocalPg::builder().setting("fsync", "on").start().unwrap();
    let (url, address) = (server.url(), address(&server));
    let (kill, killing) = std::sync::mpsc::channel();
    let is_back = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        let (server, is_back) = (&mut server, &is_back);
        scope.spawn(move || {
            killing.recv().unwrap();
            server.kill_and_restart().unwrap();
            is_back.store(true, Relaxed);
        });
        let answers = || postgres::Client::connect(&url, postgres::NoTls).is_ok();
        driven_and_then(&address, move || {
            kill.send(()).unwrap();
            while answers() && !is_back.load(Relaxed) {}
        })
    });
    assert!(result.proof[0].holds() && result.proof[0].found > 5, "{:?}", result.proof);
}

#[test]
fn a_proof_goes_on_when_its_connection_is_ended() {
    let server = SharedDatabase::new();
    let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    let over = AtomicBool::new(false);
    let proof = std::thread::scope(|scope| {
        let ending = scope.spawn(|| {
            let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                       WHERE datname = current_database() AND query LIKE 'COPY (SELECT%' AND state = 'active'";
            while !over.load(Relaxed) {
                if client.query_one(sql, &[]).unwrap().get::<_, i64>(0) > 0 {
                    return true;
                }
            }
            false
        });
        let text = "rate = 50\nfor = \"1s\"\n[tables.events]\nrows = \"100k\"\n[[operations]]\nname = \"insert\"\n\
                    insert = \"events\"\n";
        let result = driven(&plan(text), &address(&server), None);
        over.store(true, Relaxed);
        assert!(ending.join().unwrap(), "the connection was not ended");
        result.proof[0].clone()
    });
    assert!(proof.holds() && proof.doubled == 0, "{proof:?}");
    assert!(proof.found > 100_000 && proof.found == proof.read_back, "{proof:?}");
}
