//! The proof of the proof: it finds what a server loses, and nothing where it loses nothing.

use sawmill_drive::DriveResult;
use sawmill_localpg::LocalPg;

use crate::{address, driven, plan};

/// Kills all processes of a server while rows arrive.
fn killed(commit: &str) -> DriveResult {
    let mut server = LocalPg::builder()
        .setting("fsync", "on")
        .setting("synchronous_commit", commit)
        // What is committed asynchronously waits this long to be written.
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
    // The kills were noticed: connections were lost, and what was under way is unknown.
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
