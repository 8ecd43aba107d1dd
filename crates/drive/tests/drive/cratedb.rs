//! CrateDB: the stand-in, or a real one by `SAWMILL_CRATEDB_URL`.

use std::time::Duration;

use sawmill_cratedb_standin::{Fault, StandIn};
use sawmill_drive::Address;

use crate::{driven, driven_and_then, plan};

fn address(server: &StandIn) -> Address {
    let url = std::env::var("SAWMILL_CRATEDB_URL").map(|url| url.replace("http://", "crate://"));
    Address::CrateDb(Box::new(url.unwrap_or_else(|_| server.url()).parse().unwrap()))
}

const MIX: &str = r#"
rate = 100
for = "2s"
connections = 3
overwrite = true
drop = true
[tables.drive_orders]
spec = "orders"
rows = 1500
[[operations]]
name = "insert"
weight = 3
insert = "drive_orders"
[[operations]]
name = "batch"
bulk = "drive_orders"
rows = 50
[[operations]]
name = "columns"
unnest = "drive_orders"
rows = 40
[[operations]]
name = "upsert"
upsert = "drive_orders"
rows = 3
[[operations]]
name = "update"
update = "drive_orders"
[[operations]]
name = "delete"
delete = "drive_orders"
[[operations]]
name = "select"
weight = 3
select = "drive_orders"
pick = "zipf"
"#;

#[test]
fn operations_end_well_and_every_row_is_found() {
    let server = StandIn::start(1);
    let result = driven(&plan(MIX), &address(&server), None);
    for operation in &result.operations {
        assert!(
            operation.ok > 0 && operation.errors.is_empty(),
            "{:?} {:?}",
            operation.errors,
            operation.messages
        );
    }
    assert!(result.proof[0].holds() && result.proof[0].unknown == 0, "{:?}", result.proof);
    assert!(result.proof[0].acknowledged > 1500);
}

#[test]
fn connections_that_are_opened_anew_carry_out_the_same() {
    let server = StandIn::start(1);
    for pooling in ["none", "5 operations"] {
        // A real server has the tables of all tests.
        let mix = MIX.replace("drive_orders", "drive_renewed");
        let result = driven(&plan(&format!("pooling = \"{pooling}\"\n{mix}")), &address(&server), None);
        assert_eq!(result.total.failed(), 0, "{pooling}: {:?}", result.total.messages);
        assert!(result.proof[0].holds(), "{pooling}: {:?}", result.proof);
    }
}

/// A plan of batches alone, into a table that is kept: durable on every request, or not.
fn batches(durability: &str) -> String {
    format!(
        "rate = 40\nfor = \"3s\"\nconnections = 2\noverwrite = true\n[tables.drive_batches]\nspec = \"events\"\n\
         with = \"\\\"translog.durability\\\" = '{durability}'\"\n[[operations]]\nbulk = \"drive_batches\"\nrows = 20\n"
    )
}

#[test]
fn lost_answers_are_unknown_and_refused_batches_are_failures() {
    let server = StandIn::start(1);
    let faults = [
        None,
        None,
        Some(Fault::DropAfter),
        None,
        Some(Fault::DropInTheMiddle),
        Some(Fault::DropBefore),
        None,
        Some(Fault::LostShard),
    ];
    server.faults().plan(faults);
    let plan = plan(&batches("REQUEST"));
    let Address::CrateDb(url) = address(&server) else { unreachable!() };
    let result = driven(&plan, &Address::CrateDb(url), None);
    let proof = &result.proof[0];
    assert!(proof.holds(), "{proof:?}");
    assert_eq!(result.total.failed(), 4, "{:?}", result.total.errors);
    assert!(proof.unknown >= 60 && (30..proof.unknown).contains(&proof.unknown_found), "{proof:?}");
}

#[test]
fn a_crash_loses_rows_that_were_not_durable_and_the_proof_finds_them() {
    let lost_with = |durability: &str| {
        let server = StandIn::start(1);
        let mut faults = vec![None; 30];
        faults.push(Some(Fault::Restart(Duration::from_millis(100), Duration::from_millis(100))));
        server.faults().plan(faults);
        let plan = plan(&batches(durability));
        let result = driven(&plan, &Address::CrateDb(Box::new(server.url().parse().unwrap())), None);
        result.proof[0].clone()
    };
    let durable = lost_with("REQUEST");
    assert!(durable.holds() && durable.unknown > 0, "{durable:?}");
    let asynchronous = lost_with("ASYNC");
    assert!(asynchronous.lost > 0 && !asynchronous.holds(), "{asynchronous:?}");
}

#[test]
fn a_proof_waits_for_a_server_that_is_away_after_the_last_operation() {
    let server = StandIn::start(1);
    let address = Address::CrateDb(Box::new(server.url().parse().unwrap()));
    let (stopped, stops) = std::sync::mpsc::channel();
    let result = std::thread::scope(|scope| {
        let server = &server;
        scope.spawn(move || {
            stops.recv().unwrap();
            std::thread::sleep(Duration::from_millis(300));
            server.restart(0);
        });
        driven_and_then(&address, move || {
            server.stop(0);
            stopped.send(()).unwrap();
        })
    });
    assert!(result.proof[0].holds() && result.proof[0].found > 5, "{:?}", result.proof);
}
