//! Figures and proofs that stay true when a server lies, refuses or is asked too much.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sawmill_drive::{DriveResult, DriverReport, Driving, Observer, Snapshot, find_max, run};

use crate::shared_server::SharedDatabase;
use crate::{address, driven, plan};

/// What the driver did, without histograms.
pub fn told(result: &DriveResult) -> String {
    let driver = &result.driver;
    format!(
        "late by server {}, pool {}, driver {}; {} spoilt; {:?}; {:?}",
        driver.late_by_server,
        driver.late_by_pool,
        driver.late_by_driver,
        driver.spoilt,
        driver.idle(),
        result.invalid_because
    )
}

/// Whether the driver did not run for a while, or its threads did not: the machine does other work.
fn is_disturbed(driver: &DriverReport) -> bool {
    !driver.idle().is_empty()
}

/// A server whose tables get a trigger as soon as they are made.
pub fn server_with_trigger(event: &str, body: &str) -> SharedDatabase {
    let server = SharedDatabase::new();
    let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    let sql = format!(
        "CREATE SEQUENCE turn;
         CREATE FUNCTION lie() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$;
         CREATE FUNCTION made() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
           EXECUTE 'CREATE TRIGGER lie BEFORE {event} ON events FOR EACH ROW EXECUTE FUNCTION lie()';
         END $$;
         CREATE EVENT TRIGGER made ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION made();"
    );
    client.batch_execute(&sql).unwrap();
    server
}

#[test]
fn every_acknowledged_update_that_a_server_swallows_is_found() {
    // It says UPDATE 1 to all of them, and keeps every other row as it was.
    let body = "IF nextval('turn') % 2 = 0 THEN RETURN OLD; END IF; RETURN NEW;";
    let server = server_with_trigger("UPDATE", body);
    let text = "rate = 200\nfor = \"3s\"\nconnections = 4\n[tables.events]\nrows = 50\n[[operations]]\nname = \"change\"\n\
                update = \"events\"\n[[operations]]\nname = \"read\"\nweight = 0.5\nselect = \"events\"\n";
    let result = driven(&plan(text), &address(&server), None);
    let proof = &result.proof[0];
    assert!(proof.updates > 200 && proof.updates == result.operations[0].ok, "{proof:?}");
    assert_eq!(proof.lost_updates, proof.updates / 2, "{proof:?}");
    assert_eq!((proof.lost, proof.different, proof.unsent_updates), (0, 0, 0), "{proof:?}");
    assert!(!proof.holds() && proof.examples[0].contains("acknowledged update"), "{proof:?}");
    let read = &result.operations[1];
    assert!(read.messages["check"].contains("a stale read"), "{:?}", read.messages);
    assert_eq!(proof.wrong_reads, read.errors["check"], "{proof:?}");
    assert!(proof.violations().iter().any(|what| what.contains("not of what was acknowledged")), "{proof:?}");
}

#[test]
fn a_deletion_that_finds_no_row_shows_that_the_row_was_lost() {
    // It says COPY to all rows before the run, and keeps every other one.
    let server =
        server_with_trigger("INSERT", "RETURN CASE WHEN NEW.sawmill_row % 2 = 0 THEN NULL ELSE NEW END;");
    let text = "rate = 200\nfor = \"1s\"\n[tables.events]\nrows = 50\n[[operations]]\ndelete = \"events\"\n";
    let result = driven(&plan(text), &address(&server), None);
    let proof = &result.proof[0];
    assert!(result.total.errors["check"] > 0, "{:?}", result.total);
    assert_eq!((proof.lost, proof.read_back), (25, 25 - result.total.ok), "{proof:?}");
}

#[test]
fn updates_that_happen_more_often_than_they_are_sent_are_found() {
    let body = "NEW.sawmill_version = NEW.sawmill_version + (nextval('turn') = 7)::int; RETURN NEW;";
    let server = server_with_trigger("UPDATE", body);
    let text = "rate = 100\nfor = \"1s\"\n[tables.events]\nrows = 50\n[[operations]]\nupdate = \"events\"\n";
    let result = driven(&plan(text), &address(&server), None);
    let proof = &result.proof[0];
    assert_eq!((proof.unsent_updates, proof.lost_updates, proof.lost), (1, 0, 0), "{proof:?}");
}

#[test]
fn what_fails_at_once_makes_no_latency_better() {
    let server = SharedDatabase::new();
    let text = "rate = 100\nfor = \"2s\"\nconnections = 30\nlimits = [\"p50 < 400ms\", \"failed-p50 < 400ms\"]\n\
                [[operations]]\nname = \"refused\"\nweight = 3\nsql = \"SELECT 1 / 0\"\n\
                [[operations]]\nname = \"slow\"\nsql = \"SELECT pg_sleep(0.5)\"\n\
                [tables.events]\n[[operations]]\nname = \"none\"\nselect = \"events\"\n";
    let result = driven(&plan(text), &address(&server), None);
    let [refused, slow, none] = result.operations.as_slice() else { panic!("three operations") };
    assert_eq!((refused.latency.percentiles.count, slow.failures.percentiles.count), (0, 0));
    assert_eq!(refused.failures.percentiles.count, refused.intended);
    assert_eq!(none.failures.percentiles.count, 0, "they were never sent");
    assert!(result.total.latency.percentiles.p50_us >= 500_000, "{:?}", result.total.latency.percentiles);
    assert!(!result.limits[0].held && result.limits[1].held, "{:?}", result.limits);
}

#[test]
fn too_few_connections_are_the_pools_doing_and_show_as_a_backlog() {
    let server = SharedDatabase::new();
    let text = "rate = 100\narrivals = \"constant\"\nfor = \"3s\"\nconnections = 1\n[[operations]]\n\
                sql = \"SELECT pg_sleep(0.03)\"\n";
    let run = || driven(&plan(text), &address(&server), None);
    let counts = |result: &DriveResult| result.valid || is_disturbed(&result.driver);
    // A run that a busy machine spoils says nothing and is made again, as by `--find-max`. A wait for the connection
    // that counted as the driver's would spoil each of them.
    let mut result = run();
    for _ in 0..2 {
        if !counts(&result) {
            result = run();
        }
    }
    let driver = &result.driver;
    assert!(driver.late_by_pool > driver.late_by_driver + driver.late_by_server, "{}", told(&result));
    assert!(counts(&result), "{}", told(&result));
    // Of 100 a second 33 are carried out.
    let backlog: Vec<u64> = result.seconds.iter().take(3).map(|second| second.backlog).collect();
    assert!(backlog[0] > 40 && backlog[1] > backlog[0] + 40 && backlog[2] > backlog[1] + 40, "{backlog:?}");
}

#[test]
fn operations_for_which_no_connection_was_ever_free_are_the_pools_doing_and_hold_no_limit() {
    let server = SharedDatabase::new();
    let text = "rate = 2000\narrivals = \"constant\"\nfor = \"1s\"\nconnections = 1\nlimits = [\"p99 < 1h\"]\n[[operations]]\n\
                sql = \"SELECT pg_sleep(0.1)\"\n";
    let result = driven(&plan(text), &address(&server), None);
    let driver = &result.driver;
    assert!(result.total.errors["unstarted"] > 1900, "{:?}", result.total.errors);
    assert!(result.valid || is_disturbed(driver), "{}", told(&result));
    assert!(driver.late_by_pool > 1900 || is_disturbed(driver), "{}", told(&result));
    assert!(
        !result.limits[0].held && result.limits[0].measured.ends_with("never started"),
        "{:?}",
        result.limits
    );
}

#[test]
fn a_condition_ends_a_run_and_its_rows_are_looked_for() {
    let server = SharedDatabase::new();
    let text = "rate = 50\nfor = \"60s\"\nabort-when = [\"errors > 20% after 1500ms\"]\n[tables.events]\n\
                [[operations]]\ninsert = \"events\"\n[[operations]]\nsql = \"SELECT 1 / 0\"\n";
    let result = driven(&plan(text), &address(&server), None);
    assert!(result.aborted.as_ref().unwrap().starts_with("errors > 20% after "), "{:?}", result.aborted);
    assert!(result.seconds.last().unwrap().at < 10.0 && result.total.rate > 5.0);
    assert!(result.proof[0].holds() && result.proof[0].found > 10, "{:?}", result.proof);
}

/// Raises the flag after the first second.
struct Cancels<'a>(&'a AtomicBool);

impl Observer for Cancels<'_> {
    fn second(&mut self, _: &Snapshot<'_>) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn an_interrupted_run_drops_no_table_that_was_not_looked_at() {
    let server = SharedDatabase::new();
    let plan = plan(
        "rate = 100\nfor = \"30s\"\ndrop = true\n[tables.events]\n[[operations]]\ninsert = \"events\"\n",
    );
    let cancel = AtomicBool::new(false);
    let mut observer = Cancels(&cancel);
    let address = address(&server);
    let driving = Driving {
        address: &address,
        server: None,
        cancel: &cancel,
        observer: &mut observer,
        command: String::new(),
    };
    assert!(run(&plan, driving).unwrap().interrupted);
    let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    let rows: i64 = client.query_one("SELECT count(*) FROM events", &[]).unwrap().get(0);
    assert!(rows > 0);
}

#[test]
fn a_part_does_not_use_the_rows_of_an_earlier_run() {
    let server = SharedDatabase::new();
    let mut plan =
        plan("rate = 100\nfor = \"500ms\"\n[tables.events]\n[[operations]]\ninsert = \"events\"\n");
    plan.part = (2, 2);
    assert!(driven(&plan, &address(&server), None).proof[0].holds());
    let cancel = AtomicBool::new(false);
    let address = address(&server);
    let driving = Driving {
        address: &address,
        server: None,
        cancel: &cancel,
        observer: &mut (),
        command: String::new(),
    };
    let error = run(&plan, driving).map(drop).unwrap_err().to_string();
    assert!(error.contains("events") && error.contains("rows of an earlier run"), "{error}");
}

#[test]
fn a_search_drops_its_tables_after_its_last_trial() {
    let server = SharedDatabase::new();
    let mut plan = plan(
        "rate = 100\narrivals = \"constant\"\nfor = \"1500ms\"\ndrop = true\nlimits = [\"rate < 150\"]\n[tables.events]\n\
         [[operations]]\ninsert = \"events\"\n",
    );
    let (cancel, address) = (AtomicBool::new(false), address(&server));
    let driving = Driving {
        address: &address,
        server: None,
        cancel: &cancel,
        observer: &mut (),
        command: String::new(),
    };
    let limits = plan.limits.clone();
    let result = find_max(&mut plan, &limits, 1, driving).unwrap();
    assert!(result.find_max.as_ref().unwrap().trials.len() > 1, "{:?}", result.find_max);
    assert!(result.total.errors.is_empty(), "{:?}", result.total.messages);
    assert!(result.proof[0].holds() && result.proof[0].found > 50, "{:?}", result.proof);
    let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    let gone: bool = client.query_one("SELECT to_regclass('events') IS NULL", &[]).unwrap().get(0);
    assert!(gone);
}
