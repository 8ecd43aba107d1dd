//! PostgreSQL: every kind of operation, and latencies that a stalled server cannot hide.

use std::io::{Read, Write};
use std::time::Duration;

use sawmill_drive::DriveResult;
use sawmill_localpg::LocalPg;

use crate::shared_server::SharedDatabase;
use crate::truth::told;
use crate::{address, driven, plan};

const EVERYTHING: &str = r#"
rate = 300
for = "3s"
connections = 4
seed = 7
limits = ["errors < 0.1%", "p50 < 10s"]

[tables.orders]
rows = 2000

[tables.events]

[[operations]]
name = "insert"
weight = 20
insert = "orders"

[[operations]]
name = "plain"
weight = 10
insert = "events"
prepared = false

[[operations]]
name = "rows"
weight = 10
insert = "orders"
rows = 20

[[operations]]
name = "copy"
weight = 5
copy = "events"
rows = 500

[[operations]]
name = "columns"
weight = 5
unnest = "events"
rows = 100

[[operations]]
name = "columns once"
weight = 5
unnest = "orders"
rows = 7
prepared = false

[[operations]]
name = "upsert"
weight = 10
upsert = "orders"
rows = 3

[[operations]]
name = "update"
weight = 10
update = "orders"
pick = "zipf"

[[operations]]
name = "delete"
weight = 5
delete = "orders"

[[operations]]
name = "select"
weight = 20
select = "orders"
pick = "latest"
skew = 1.1

[[operations]]
name = "sql"
weight = 5
sql = "SELECT count(*) FROM orders WHERE customer_id = $1 AND status = $2"
table = "orders"
parameters = ["old.customer_id", "new.status"]
expect = 1

[[operations]]
name = "both"
weight = 5
transaction = [{ insert = "orders" }, { insert = "events", rows = 2 }, { select = "orders" }]
"#;

#[test]
fn every_kind_of_operation_ends_well_and_every_row_is_found() {
    let server = SharedDatabase::new();
    let result = driven(&plan(EVERYTHING), &address(&server), None);
    for operation in &result.operations {
        assert!(operation.ok > 0, "{operation:?}");
        assert!(
            operation.errors.is_empty(),
            "{}: {:?} {:?}",
            operation.name,
            operation.errors,
            operation.messages
        );
        assert_eq!(operation.latency.percentiles.count, operation.intended);
        assert!(operation.latency.percentiles.p99_us >= operation.service.percentiles.p50_us);
    }
    let orders = &result.proof[1];
    assert_eq!(orders.table, "orders");
    for proof in &result.proof {
        assert!(proof.holds() && proof.unknown == 0 && proof.failed == 0, "{proof:?}");
        assert_eq!(proof.acknowledged, proof.found);
    }
    assert!(orders.acknowledged > 2000);
    // What the server holds is what the proof read.
    let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    let count: i64 = client.query_one("SELECT count(*) FROM orders", &[]).unwrap().get(0);
    assert_eq!(count as u64, orders.read_back);
    assert!(result.limits.iter().all(|limit| limit.held), "{:?}", result.limits);
    let ok: u64 = result.operations.iter().map(|operation| operation.ok).sum();
    assert_eq!(ok, result.total.ok);
    // About 900 were due: six standard deviations of a Poisson process.
    assert!(result.total.intended.abs_diff(900) < 180, "{}", result.total.intended);
    let text = serde_json::to_string(&result).unwrap();
    assert_eq!(
        serde_json::from_str::<sawmill_drive::DriveResult>(&text).unwrap().total.intended,
        result.total.intended
    );
}

#[test]
fn the_proof_finds_rows_that_others_removed_changed_or_added() {
    let server = SharedDatabase::new();
    let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    // A rule of the server loses rows that it acknowledges.
    let plan = plan(
        r#"
rate = 100
for = "1s"
[tables.orders]
rows = 1024
[[operations]]
name = "break"
sql = "WITH gone AS (DELETE FROM orders WHERE sawmill_row = 10), other AS (UPDATE orders SET email = 'x' WHERE sawmill_row = 11) INSERT INTO orders (sawmill_row, id, customer_id, status) VALUES (99999, 1, 1, 'x') ON CONFLICT DO NOTHING"
writes = "nothing"
"#,
    );
    let result = driven(&plan, &address(&server), None);
    let proof = &result.proof[0];
    let there: i64 = client.query_one("SELECT count(*) FROM orders", &[]).unwrap().get(0);
    assert_eq!(there, 1024, "{:?}", result.operations[0].messages);
    assert_eq!((proof.lost, proof.different, proof.foreign), (1, 1, 1), "{proof:?}");
    assert!(!proof.holds() && proof.examples.len() == 3);
}

#[test]
fn a_table_that_cannot_be_read_back_leaves_the_figures() {
    let server = SharedDatabase::new();
    let text = "rate = 100\nfor = \"1s\"\ndrop = true\n[tables.devices]\nrows = 9\n[[operations]]\ninsert = \"devices\"\n\
                weight = 9\n[[operations]]\nname = \"rename\"\nsql = \"ALTER TABLE devices RENAME TO elsewhere\"\n";
    let result = driven(&plan(text), &address(&server), None);
    let proof = &result.proof[0];
    assert!(proof.unchecked.as_ref().unwrap().contains("devices") && !proof.holds(), "{proof:?}");
    assert!(result.total.ok > 0 && proof.violations().is_empty());
    let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    let kept: i64 = client.query_one("SELECT count(*) FROM elsewhere", &[]).unwrap().get(0);
    assert!(kept > 0);
}

/// Waits until a table exists and has rows.
fn wait_for_rows(server: &SharedDatabase, table: &str) {
    let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    let rows = format!("SELECT 1 FROM {table} LIMIT 1");
    while !client.query(&rows, &[]).is_ok_and(|found| !found.is_empty()) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_second_run_that_drops_the_table_is_named_by_the_first() {
    let server = SharedDatabase::new();
    let of = |time: &str, seed: u64| {
        let operation = "[tables.devices]\n[[operations]]\ninsert = \"devices\"\n";
        plan(&format!("rate = 100\nfor = \"{time}\"\nseed = {seed}\noverwrite = true\n{operation}"))
    };
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| driven(&of("5s", 1), &address(&server), None));
        wait_for_rows(&server, "devices");
        let second = driven(&of("1s", 2), &address(&server), None);
        (first.join().unwrap(), second)
    });
    let (first, second) = (&first.proof[0], &second.proof[0]);
    assert!(first.replaced && first.lost + first.different > 0 && !first.holds(), "{first:?}");
    // The table of the second run is its own, with rows of the first.
    assert!(!second.replaced && second.lost == 0, "{second:?}");
}

#[test]
fn errors_are_counted_by_their_code_and_break_the_limit() {
    let server = SharedDatabase::new();
    let plan = plan(
        r#"
rate = 100
for = "2s"
timeout = "2s"
connections = 20
limits = ["errors < 0.1%"]
[tables.orders]
[[operations]]
name = "divide"
sql = "SELECT 1 / 0"
[[operations]]
name = "sleep"
weight = 0.1
sql = "SELECT pg_sleep(10)"
[[operations]]
name = "none"
select = "orders"
[[operations]]
name = "many"
sql = "SELECT generate_series(1, 3)"
expect = 2
"#,
    );
    let result = driven(&plan, &address(&server), None);
    let kinds: Vec<Vec<&String>> = result.operations.iter().map(|it| it.errors.keys().collect()).collect();
    assert_eq!(kinds, [["22012"], ["timeout"], ["no-row"], ["check"]]);
    assert!(
        result
            .operations
            .iter()
            .all(|operation| operation.ok == 0 && operation.failed() == operation.intended)
    );
    assert!(!result.limits[0].held);
}

/// A server that stops for a second in a run of ten at 200 a second: about 200 operations have to wait, from a
/// second down to nothing. A tenth of all is affected, so that the 99th percentile is the tenth part of the stall
/// before its end: 0.9 s.
#[test]
fn a_stall_shows_in_the_latency_as_arithmetic_says() {
    let mut server = LocalPg::start().unwrap();
    let plan = plan(
        r#"
rate = 200
arrivals = "constant"
for = "10s"
connections = 4
overwrite = true
chaos = "stop server for 1s every 6s"
[tables.orders]
[[operations]]
name = "insert"
insert = "orders"
"#,
    );
    let address = address(&server);
    let mut run = || driven(&plan, &address, Some(&mut server));
    let is_quiet =
        |result: &DriveResult| result.driver.pauses == 0 && result.total.service.histogram.above(20_000) < 20;
    let mut result = run();
    for _ in 0..2 {
        if !is_quiet(&result) {
            result = run();
        }
    }
    assert_eq!(result.chaos.len(), 1, "{:?}", result.chaos);
    // On a busy machine the server stops for longer, and works off what waited for longer.
    let longer = (result.chaos[0].took - 1.0).max(0.0);
    let latency = &result.total.latency;
    let affected = latency.histogram.above(200_000) as f64 - longer * 200.0;
    let most = if is_quiet(&result) { 220.0 } else { 2000.0 };
    assert!((120.0..=most).contains(&affected), "{affected} waited for more than 0.2 s of the stall");
    let p99 = latency.percentiles.p99_us as f64 / 1e6 - longer;
    let most = if is_quiet(&result) { 1.1 } else { 10.0 };
    assert!((0.8..most).contains(&p99), "{:?}", latency.percentiles);
    // Without intended starts four operations would have waited, and the percentile would not have moved.
    let service = &result.total.service;
    assert!(!is_quiet(&result) || service.histogram.above(200_000) <= 8, "{:?}", service.percentiles);
    assert!(result.total.errors.is_empty() && result.proof[0].holds());
    assert_eq!(result.total.intended, 2000);
    // On a busy machine the driver is late, too, and slow answers fill the pool: the result then says whose it is not.
    let driver = &result.driver;
    let others = driver.late_by_driver + driver.late_by_pool;
    match result.valid {
        true => assert!(driver.late_by_server > 120.max(2 * others), "{}", told(&result)),
        false => assert!(result.invalid_because[0].contains("is the driver's"), "{}", told(&result)),
    }
}

/// The numbers of the server's processes that carried out operations.
fn processes(pooling: &str) -> (i64, u64) {
    let server = SharedDatabase::new();
    let text = format!(
        "rate = 100\nfor = \"2s\"\nconnections = 2\npooling = \"{pooling}\"\n[tables.orders]\n[[operations]]\n\
         insert = \"orders\"\nweight = 4\n[[operations]]\nsql = \"INSERT INTO pids VALUES (pg_backend_pid())\"\n"
    );
    let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    client.batch_execute("CREATE TABLE pids (pid integer)").unwrap();
    let result = driven(&plan(&text), &address(&server), None);
    // On a busy machine a login may take longer than the time between two operations.
    assert!(result.total.errors.keys().all(|kind| kind == "unstarted"), "{:?}", result.total.messages);
    assert!(result.proof[0].holds() && result.proof[0].unknown == 0, "{:?}", result.proof);
    let asked = result.operations[1].ok;
    (client.query_one("SELECT count(DISTINCT pid) FROM pids", &[]).unwrap().get(0), asked)
}

#[test]
fn connections_are_kept_or_opened_anew_as_the_plan_says() {
    let (kept, asked) = processes("kept");
    assert!(kept <= 2 && asked > 10, "{kept} processes for {asked} operations");
    let (none, asked) = processes("none");
    assert_eq!(none as u64, asked, "each operation has a connection of its own");
    let (renewed, _) = processes("20 operations");
    assert!((4..=16).contains(&renewed), "{renewed} processes for about 200 operations");
    let (timed, _) = processes("300ms");
    assert!((4..=20).contains(&timed), "{timed} processes in two seconds");
}

#[test]
fn a_plan_that_does_not_wait_for_lost_connections_fails_their_operations() {
    let failed = |reconnect: &str| {
        let mut server = LocalPg::start().unwrap();
        let text = format!(
            "rate = 200\nfor = \"4s\"\nconnections = 2\nreconnect = \"{reconnect}\"\n\
             chaos = \"kill server every 1500ms\"\n[tables.events]\n[[operations]]\ninsert = \"events\"\n"
        );
        let address = address(&server);
        let result = driven(&plan(&text), &address, Some(&mut server));
        assert!(result.proof[0].unknown_found <= result.proof[0].unknown, "{:?}", result.proof);
        result.total.errors.get("connect").copied().unwrap_or(0)
    };
    assert!(failed("never") > 5, "operations of the time in which the server is away");
    assert_eq!(failed("20s every 10ms up to 200ms"), 0, "all wait until it is there again");
}

#[test]
fn the_driver_measures_what_it_can_do_itself() {
    let server = SharedDatabase::new();
    let text = "rate = 50\nfor = \"1s\"\n[tables.orders]\nrows = 500\n[[operations]]\ninsert = \"orders\"\n\
                [[operations]]\nselect = \"orders\"\n";
    let result = driven(&plan(text), &address(&server), None);
    let capacity = result.driver.capacity.unwrap();
    assert!(capacity > 1_000.0, "{capacity}");
    // The measurement left no traces.
    assert_eq!(result.proof[0].acknowledged, 500 + result.operations[0].ok);
    assert_eq!(result.proof[0].read_back, result.proof[0].found);
}

#[test]
fn parts_share_the_rate_and_each_proves_its_own_rows() {
    let server = SharedDatabase::new();
    let part = |k: u64| {
        let mut plan = plan(
            "rate = 200\narrivals = \"constant\"\nfor = \"2s\"\n[tables.orders]\n[[operations]]\ninsert = \"orders\"",
        );
        plan.part = (k, 2);
        plan
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let run = |k| {
            let address = address(&server);
            scope.spawn(move || driven(&part(k), &address, None))
        };
        [1, 2].map(run).into_iter().map(|run| run.join().unwrap()).collect()
    });
    for result in &results {
        assert_eq!((result.total.intended, result.total.ok), (200, 200));
        assert!(result.proof[0].holds() && result.proof[0].found == 200, "{:?}", result.proof);
    }
}

#[test]
fn a_part_uses_the_table_that_another_one_creates_at_the_same_moment() {
    let server = SharedDatabase::new();
    let of = |table: &str| {
        let operation =
            format!("[tables.{table}]\nspec = \"events\"\n[[operations]]\ninsert = \"{table}\"\n");
        plan(&format!("rate = 100\nfor = \"100ms\"\n{operation}"))
    };
    driven(&of("first"), &address(&server), None);
    let mut other = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    other.batch_execute("BEGIN; CREATE TABLE second (LIKE first INCLUDING ALL)").unwrap();
    let mut part = of("second");
    part.part = (1, 2);
    let result = std::thread::scope(|scope| {
        let run = scope.spawn(|| driven(&part, &address(&server), None));
        let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
                     AND datname = current_database() AND query LIKE 'CREATE TABLE%')";
        let mut watching = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
        while !watching.query_one(waits, &[]).unwrap().get::<_, bool>(0) {
            assert!(!run.is_finished(), "it did not wait");
            std::thread::sleep(Duration::from_millis(5));
        }
        other.batch_execute("COMMIT").unwrap();
        run.join().unwrap()
    });
    assert!(result.proof[0].holds() && result.proof[0].found > 0, "{:?}", result.proof);
}

/// The address of the server behind a proxy, which sends every other of the messages `from` as `to`.
pub fn rewriting(server: &SharedDatabase, from: &'static [u8], to: &'static [u8]) -> sawmill_drive::Address {
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (url, port) = (server.url(), proxy.local_addr().unwrap().port());
    let (head, place) = url.rsplit_once('@').unwrap();
    let (place, name) = place.split_once('/').unwrap();
    let (place, own) = (place.to_owned(), format!("{head}@127.0.0.1:{port}/{name}"));
    std::thread::spawn(move || {
        for client in proxy.incoming() {
            let (mut client, mut server) = (client.unwrap(), std::net::TcpStream::connect(&place).unwrap());
            let (mut answers, mut back) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
            std::thread::spawn(move || {
                let (mut bytes, mut known) = ([0; 65536], 0);
                while let Ok(length @ 1..) = client.read(&mut bytes) {
                    let sent = &bytes[..length];
                    known += usize::from(sent == from);
                    server.write_all(if sent == from && known % 2 == 1 { to } else { sent }).unwrap();
                }
            });
        }
    });
    sawmill_drive::Address::Postgres(Box::new(own.parse().unwrap()))
}

#[test]
fn a_commit_that_is_answered_with_rollback_is_a_failure_and_no_lost_row() {
    let server = SharedDatabase::new();
    // As a server answers a COMMIT whose transaction has failed.
    let address = rewriting(&server, b"Q\0\0\0\x0bCOMMIT\0", b"Q\0\0\0\x0dROLLBACK\0");
    let plan = plan(
        "rate = 100\nfor = \"1s\"\n[tables.events]\n[[operations]]\ntransaction = [{ insert = \"events\" }]\n",
    );
    let result = driven(&plan, &address, None);
    let (operation, proof) = (&result.operations[0], &result.proof[0]);
    assert!(operation.errors["40000"] > 20 && operation.ok > 20, "{operation:?}");
    assert!(operation.messages["40000"].contains("COMMIT was answered with ROLLBACK"), "{operation:?}");
    assert!(proof.holds() && proof.found == operation.ok && proof.failed > 20, "{proof:?}");
}

#[test]
fn a_login_that_gets_no_answer_says_so() {
    let folder = tempfile::tempdir().unwrap();
    // They take connections, and never answer.
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let _unix = std::os::unix::net::UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
    let hosts = [
        format!("127.0.0.1:{}/db?", tcp.local_addr().unwrap().port()),
        format!("/db?host={}&", folder.path().display()),
    ];
    for host in hosts {
        let url = format!("postgres://me@{host}connect_timeout=2");
        let address = sawmill_drive::Address::Postgres(Box::new(url.parse().unwrap()));
        let cancel = std::sync::atomic::AtomicBool::new(false);
        let driving = sawmill_drive::Driving {
            address: &address,
            server: None,
            cancel: &cancel,
            observer: &mut (),
            command: String::new(),
        };
        let plan = plan("[tables.events]\n[[operations]]\ninsert = \"events\"\n");
        let error = sawmill_drive::run(&plan, driving).map(drop).unwrap_err().to_string();
        assert!(error.contains("no answer within 2 s") && error.contains("database \"db\""), "{error}");
    }
}
