//! What one statement of an operation reads is used by the next ones.

use std::path::Path;

use sawmill_cratedb_standin::StandIn;
use sawmill_drive::{Address, DriveResult, Plan};

use crate::shared_server::SharedDatabase;
use crate::{address, driven, plan};

/// A run with a table of numbers, and one operation.
fn run(operation: &str) -> DriveResult {
    let server = SharedDatabase::new();
    let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    client.batch_execute("CREATE TABLE numbers (id int, n int8); INSERT INTO numbers VALUES (1, 7)").unwrap();
    let text = format!(
        "rate = 100\nfor = \"1s\"\nconnections = 2\n[tables.events]\nrows = 10\n[[operations]]\nname = \"own\"\n{operation}"
    );
    driven(&plan(&text), &address(&server), None)
}

#[test]
fn a_value_that_was_read_is_written_within_one_transaction() {
    let result = run(r#"
let.event = { old = "events" }
transaction = [
    { sql = "SELECT n, 'it''s :n'::text FROM numbers WHERE id = 1 FOR UPDATE", into = ["n int8", "said text"] },
    { sql = "UPDATE numbers SET n = :n + 1 WHERE id = 1 AND :said = 'it''s :n'", expect = 1 },
    { sql = "SELECT n FROM numbers WHERE id = 1", into = ["after int8"] },
    { sql = "SELECT 1 WHERE :after = :n + 1 AND :event.row < 10", expect = 1 },
]
[[checks]]
name = "the number has grown by one with each operation"
sql = "SELECT n FROM numbers WHERE n < 20"
"#);
    assert!(result.total.errors.is_empty() && result.total.ok > 20, "{:?}", result.total.messages);
    assert!(result.proof.iter().all(sawmill_drive::Proof::holds), "{:?}", result.proof);
}

#[test]
fn an_operation_that_reads_no_value_fails_and_says_why() {
    let cases = [
        ("SELECT n FROM numbers WHERE id = 2", "0 rows where one is read"),
        ("SELECT generate_series(1, 3)::int8", "3 rows where one is read"),
        ("SELECT NULL::int8", "n has no value: NULL was read"),
        ("SELECT 'x'::text", "n has no value: text was read where bigint is declared"),
        ("SELECT FROM numbers", "n has no value: the row has too few columns"),
    ];
    for kind in ["steps", "transaction"] {
        let operation = |sql| {
            format!("{kind} = [{{ sql = \"{sql}\", into = [\"n int8\"] }}, {{ sql = \"SELECT :n\" }}]\n")
        };
        let operations: Vec<String> = cases.iter().map(|(sql, _)| operation(sql)).collect();
        let result = run(&operations.join("[[operations]]\n"));
        for (own, (_, message)) in result.operations.iter().zip(cases) {
            assert_eq!((own.ok, own.errors.get("variable")), (0, Some(&own.intended)), "{:?}", own.messages);
            assert!(own.messages["variable"].contains(message), "{:?}", own.messages);
        }
    }
}

#[test]
fn steps_without_a_transaction_are_not_taken_back() {
    let result = run("steps = [{ insert = \"events\" }, { sql = \"SELECT 1 / 0\" }]\n");
    let (own, proof) = (&result.operations[0], &result.proof[0]);
    assert_eq!(own.errors.get("22012"), Some(&own.intended), "{:?}", own.errors);
    assert!(
        proof.holds() && proof.unknown == own.intended && proof.unknown_found == own.intended,
        "{proof:?}"
    );
}

#[track_caller]
fn refused(operation: &str, parts: &[&str]) {
    let text = format!("[tables.events]\n[[operations]]\n{operation}");
    let error = Plan::from_toml(&text, "shop.toml", Path::new(".")).unwrap_err().to_string();
    parts.iter().for_each(|part| assert!(error.contains(part), "{part:?} is not in {error:?}"));
}

#[test]
fn mistakes_are_named_with_what_is_known() {
    refused("sql = \"SELECT :x\"\n", &[":x is not known there", "line 3", "`sql`", "`into`"]);
    refused(
        "let.e = { old = \"events\" }\nsql = \"SELECT :e.colour\"\n",
        &[":e.colour is not known", "there are :e.row", ":e.event_id"],
    );
    refused(
        "sql = \"SELECT 1\"\ninto = [\"n\"]\n",
        &["\"n\" does not declare a variable", "balance int8", "timestamptz"],
    );
    refused("sql = \"SELECT 1\"\ninto = [\"n int4\"]\nexpect = 1\n", &["`expect` beside `into`"]);
    refused("let.e = { old = \"event\" }\nsql = \"SELECT 1\"\n", &["no table \"event\"", "events"]);
    refused("let.e = { new = \"events\", writes = \"delete\" }\nsql = \"SELECT 1\"\n", &["nothing, insert"]);
    refused(
        "steps = [{ sql = \"SELECT :n\" }, { sql = \"SELECT 1\", into = [\"n int4\"] }]\n",
        &[":n is not"],
    );
}

#[test]
fn steps_of_cratedb_use_what_earlier_ones_have_read() {
    let server = StandIn::start(1);
    let address = Address::CrateDb(Box::new(server.url().parse().unwrap()));
    let of = |into: &str| {
        let text = format!(
            r#"
rate = 50
for = "1s"
connections = 1
overwrite = true
[tables.drive_steps]
spec = "devices"
rows = 10
[[operations]]
name = "copy"
let.from = {{ old = "drive_steps" }}
let.to = {{ new = "drive_steps", writes = "insert" }}
steps = [
    {{ sql = "SELECT sawmill_row, sawmill_version FROM drive_steps WHERE sawmill_row = :from.row", into = {into} }},
    {{ sql = "INSERT INTO drive_steps (sawmill_row, sawmill_version) VALUES (:to.row, :version)", expect = 1 }},
]
"#
        );
        driven(&plan(&text), &address, None)
    };
    let result = of(r#"["number int8", "version int8"]"#);
    assert!(result.total.errors.is_empty() && result.total.ok > 20, "{:?}", result.total.messages);
    let proof = &result.proof[0];
    assert!(proof.holds() && (proof.found, proof.not_checked) == (10, result.total.ok), "{proof:?}");
    let result = of(r#"["number int8", "version text"]"#);
    assert_eq!(
        result.total.errors.get("variable"),
        Some(&result.total.intended),
        "{:?}",
        result.total.errors
    );
}
