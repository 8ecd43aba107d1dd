//! Clients of a closed loop: whatever happens to one, its rows are accounted for and the others go on.

use sawmill_localpg::LocalPg;

use crate::shared_server::SharedDatabase;
use crate::{address, driven, plan};

const SHORT: &str = r#"
clients = 6
for = "2s"
limits = ["errors < 0.1%"]
[tables.events]
rows = 2000
[[operations]]
name = "insert"
weight = 5
insert = "events"
[[operations]]
name = "few"
insert = "events"
rows = 3
prepared = false
[[operations]]
name = "read"
weight = 3
select = "events"
pick = "zipf"
[[operations]]
name = "change"
update = "events"
pick = "latest"
[[operations]]
name = "remove"
delete = "events"
"#;

#[test]
fn every_operation_ends_well_and_every_row_is_found() {
    let server = SharedDatabase::new();
    let result = driven(&plan(SHORT), &address(&server), None);
    assert_eq!(result.run.loop_kind, "closed");
    assert!(result.total.errors.is_empty(), "{:?} {:?}", result.total.errors, result.operations);
    assert!(result.operations.iter().all(|operation| operation.ok > 50), "{:?}", result.operations);
    assert!(result.proof[0].holds() && result.proof[0].unknown == 0, "{:?}", result.proof);
    assert!(result.limits.iter().all(|limit| limit.held), "{:?}", result.limits);
}

#[test]
fn clients_go_on_after_the_server_was_killed() {
    let mut server = LocalPg::builder().setting("fsync", "on").start().unwrap();
    let address = address(&server);
    let text = SHORT.replace("for = \"2s\"", "for = \"7s\"\nchaos = \"kill server every 3s\"");
    let result = driven(&plan(&text), &address, Some(&mut server));
    assert!(!result.chaos.is_empty() && result.chaos.iter().all(|event| event.error.is_none()));
    let (proof, errors) = (&result.proof[0], &result.total.errors);
    assert!(proof.holds(), "{proof:?}");
    assert!(errors.values().sum::<u64>() > 0, "the kill was not noticed");
    let (killed, is_back) = (result.chaos[0].at, result.chaos[0].at + result.chaos[0].took);
    let since = |time| result.seconds.iter().filter(move |second| second.at - second.length >= time);
    let all: f64 = since(killed).map(|second| second.achieved * second.length).sum();
    assert!(all >= 6.0, "clients did not come back: {errors:?}");
    // On a busy machine the server may need all the time to recover.
    let back_at_work = since(is_back).any(|second| second.achieved > 100.0);
    assert!(back_at_work || is_back > 4.0, "clients did not come back: {errors:?}");
}

#[test]
fn a_conflict_is_tried_again_and_counted() {
    let server = SharedDatabase::new();
    let text = r#"
clients = 8
for = "2s"
isolation = "serializable"
retries = 20
[tables.events]
rows = 20
[[operations]]
name = "change"
update = "events"
pick = { zipf = 1.5 }
[[operations]]
name = "count"
sql = "UPDATE events SET sawmill_row = sawmill_row WHERE sawmill_row < 3 AND $1::bigint >= 0"
table = "events"
parameters = ["new.sawmill_row"]
"#;
    let text = text.replace("pick = { zipf = 1.5 }", "pick = \"zipf\"\nskew = 1.5");
    let result = driven(&plan(&text), &address(&server), None);
    let retries: u64 = result.operations.iter().map(|operation| operation.retries).sum();
    assert!(retries > 0, "{:?}", result.operations);
    assert!(result.total.ok > 100, "{:?}", result.operations);
    assert!(result.proof[0].holds(), "{:?}", result.proof);
}

#[test]
fn a_server_that_stands_still_is_waited_for_and_what_takes_too_long_is_unknown() {
    let mut server = LocalPg::builder().start().unwrap();
    let address = address(&server);
    let text = SHORT.replace("for = \"2s\"", "for = \"4s\"\nchaos = \"stop server for 1s every 1500ms\"");
    let result = driven(&plan(&text), &address, Some(&mut server));
    // All clients waited for about a second: what a closed loop shows of it.
    assert!(result.total.latency.percentiles.max_us > 800_000, "{:?}", result.total.latency.percentiles);
    assert!(result.total.errors.is_empty() && result.proof[0].holds(), "{:?}", result.total.errors);
}

#[test]
fn operations_that_find_no_row_do_not_keep_others_waiting() {
    let server = SharedDatabase::new();
    let text = r#"
clients = 4
for = "1s"
[tables.events]
[tables.orders]
[[operations]]
name = "read nothing"
weight = 50
select = "orders"
pick = "latest"
[[operations]]
name = "insert"
insert = "events"
"#;
    let result = driven(&plan(text), &address(&server), None);
    assert!(result.total.errors["no-row"] > 0);
    let insert = result.operations.iter().find(|operation| operation.name == "insert").unwrap();
    assert!(insert.ok > 100, "{insert:?}");
    assert!(result.proof.iter().all(sawmill_drive::Proof::holds), "{:?}", result.proof);
}
