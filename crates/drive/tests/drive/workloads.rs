//! The plans in `fixtures/plans`: what they check holds on a real server, and does not where it swallows an update.

use std::path::Path;
use std::time::Duration;

use sawmill_drive::{DriveResult, Plan, Proof};

use crate::shared_server::SharedDatabase;
use crate::{address, driven};

/// Runs a plan of the repository for three seconds, as the server is.
fn run(server: &SharedDatabase, name: &str, isolation: &str) -> DriveResult {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/plans").join(name);
    let mut plan = Plan::from_file(&path).unwrap();
    plan.length = Some(Duration::from_secs(3));
    plan.isolation = Some(isolation.to_owned());
    driven(&plan, &address(server), None)
}

/// A server that says UPDATE 1 to every twentieth update of a table, and leaves its row as it was.
fn swallowing(table: &str) -> SharedDatabase {
    let server = SharedDatabase::new();
    let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    let sql = format!(
        "CREATE SEQUENCE turn;
         CREATE FUNCTION lie() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN IF nextval('turn') % 20 = 0 THEN RETURN OLD; END IF; RETURN NEW; END $$;
         CREATE FUNCTION made() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
           IF to_regclass('{table}') IS NOT NULL THEN
             CREATE OR REPLACE TRIGGER lie BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION lie();
           END IF;
         END $$;
         CREATE EVENT TRIGGER made ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION made();"
    );
    client.batch_execute(&sql).unwrap();
    server
}

fn broken(result: &DriveResult) -> Vec<&str> {
    let broken = result.proof.iter().filter(|proof| !proof.holds());
    broken.map(|proof| proof.table.as_str()).collect()
}

#[track_caller]
fn holds_with_retries(name: &str) {
    // On a busy machine transactions may wait for processors instead of each other.
    let checked = |result: &DriveResult| {
        assert!(result.total.errors.is_empty(), "{:?} {:?}", result.total.errors, result.total.messages);
        assert!(result.total.ok > 200, "{}", result.total.ok);
    };
    let mut results = (0..5).map(|_| run(&SharedDatabase::new(), name, "serializable")).inspect(checked);
    let result = results.find(|result| result.total.retries > 0).expect("transactions in conflict");
    assert!(result.proof.iter().all(Proof::holds), "{:?}", result.proof);
    assert!(result.proof.iter().all(|proof| proof.undeclared.is_none()), "{:?}", result.proof);
    assert_eq!(
        result.proof.iter().filter(|proof| proof.check).count(),
        3,
        "they compare what custom statements wrote"
    );
}

#[test]
fn tpc_b_holds_with_its_retries() {
    holds_with_retries("tpc-b.toml");
}

#[test]
fn new_orders_hold_with_their_retries() {
    holds_with_retries("new-order.toml");
}

#[test]
fn a_swallowed_update_of_a_branch_breaks_its_balance() {
    let result = run(&swallowing("branches"), "tpc-b.toml", "serializable");
    assert_eq!(broken(&result), ["each branch has the sum of its history"], "{:?}", result.proof);
    let check = result.proof.iter().find(|proof| proof.broken > 0).unwrap();
    assert!(check.examples[0].starts_with("returns 0, ") && check.broken == 1, "{check:?}");
}

#[test]
fn a_swallowed_update_of_a_district_breaks_the_numbers_of_its_orders() {
    let result = run(&swallowing("districts"), "new-order.toml", "serializable");
    let broken = broken(&result);
    assert!(broken.contains(&"the numbers of a district's orders have no gap"), "{:?}", result.proof);
}

#[test]
fn read_committed_gives_one_number_to_two_orders() {
    let server = SharedDatabase::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/plans/new-order.toml");
    let mut plan = Plan::from_file(&path).unwrap();
    plan.length = Some(Duration::from_secs(3));
    plan.isolation = Some("read committed".to_owned());
    plan.pace = sawmill_drive::Pace::Closed { clients: 8, think: Duration::ZERO };
    let result = driven(&plan, &address(&server), None);
    assert!(
        broken(&result).contains(&"the numbers of a district's orders have no gap"),
        "{:?}",
        result.proof
    );
}
