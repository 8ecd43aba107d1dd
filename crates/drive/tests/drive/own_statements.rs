//! The proof beside statements of the plan's own: what they declare is checked, what they do not is named.

use sawmill_drive::{DriveResult, Proof};

use crate::shared_server::SharedDatabase;
use crate::truth::server_with_trigger;
use crate::{address, driven, plan};

fn run(server: &SharedDatabase, operation: &str) -> DriveResult {
    let text = format!(
        "rate = 100\nfor = \"2s\"\n[tables.events]\nrows = 500\n[[operations]]\nname = \"read\"\nselect = \"events\"\n\
         [[operations]]\nname = \"own\"\ntable = \"events\"\n{operation}"
    );
    driven(&plan(&text), &address(server), None)
}

fn proof(operation: &str) -> Proof {
    let result = run(&SharedDatabase::new(), operation);
    assert!(result.operations[1].ok > 50, "{:?}", result.operations);
    assert_eq!(result.operations[0].failed(), 0, "{:?}", result.operations[0].messages);
    result.proof[0].clone()
}

#[test]
fn a_declared_deletion_loses_no_row() {
    let proof = proof(
        "sql = \"DELETE FROM events WHERE sawmill_row = $1\"\nparameters = [\"old.row\"]\nwrites = \"delete\"",
    );
    assert!(proof.holds() && proof.not_checked == 0 && proof.acknowledged < 450, "{proof:?}");
}

#[test]
fn a_declared_update_has_values_of_its_own_and_its_row_stays() {
    let proof = proof(
        "sql = \"UPDATE events SET sawmill_version = 7 WHERE sawmill_row = $1\"\nparameters = [\"old.row\"]\n\
         writes = \"update\"",
    );
    assert!(proof.holds() && proof.not_checked > 50, "its values are not compared: {proof:?}");
    assert_eq!(proof.found + proof.not_checked, 500, "{proof:?}");
}

#[test]
fn what_a_statement_writes_without_saying_so_is_not_checked_and_named() {
    let server = SharedDatabase::new();
    let result = run(
        &server,
        "sql = \"DELETE FROM events WHERE sawmill_row IN ($1, $1 + 1)\"\nparameters = [\"old.row\"]",
    );
    let proof = &result.proof[0];
    assert!(proof.holds() && proof.violations().is_empty(), "{proof:?}");
    assert_eq!(proof.undeclared.as_deref(), Some("own"));
    assert_eq!(proof.not_checked, 500 - proof.read_back, "{proof:?}");
}

#[test]
fn a_row_that_a_statement_changed_without_saying_so_is_read_without_an_error() {
    let proof =
        proof("sql = \"UPDATE events SET kind = 'own' WHERE sawmill_row = $1\"\nparameters = [\"old.row\"]");
    assert!(proof.holds() && proof.not_checked > 20 && proof.wrong_reads == 0, "{proof:?}");
}

#[test]
fn a_declared_insertion_that_the_server_swallows_is_lost() {
    let server =
        server_with_trigger("INSERT", "RETURN CASE WHEN NEW.sawmill_row = 503 THEN NULL ELSE NEW END;");
    let result = run(
        &server,
        "sql = \"INSERT INTO events (sawmill_row) VALUES ($1)\"\nparameters = [\"new.row\"]\nwrites = \"insert\"",
    );
    let proof = &result.proof[0];
    assert_eq!(
        (proof.lost, proof.different, proof.foreign),
        (1, 0, 0),
        "{proof:?} {:?}",
        result.total.messages
    );
}

/// A plan whose operations end the process of the server behind them.
fn ended(kind: &str) -> Proof {
    let text = format!(
        "rate = 20\nfor = \"1s\"\n[tables.events]\n[[operations]]\nname = \"own\"\n\
         let.e = {{ new = \"events\", writes = \"insert\" }}\n{kind} = [\
           {{ sql = \"INSERT INTO events (sawmill_row) VALUES (:e.row)\" }}, \
           {{ sql = \"SELECT pg_terminate_backend(pg_backend_pid())\" }}]\n"
    );
    let result = driven(&plan(&text), &address(&SharedDatabase::new()), None);
    let failed = result.total.failed() - result.total.errors.get("unstarted").unwrap_or(&0);
    assert!(failed > 5 && result.total.ok == 0, "{:?}", result.total.errors);
    let proof = result.proof[0].clone();
    assert!(proof.holds() && proof.not_checked == 0, "{proof:?}");
    assert_eq!(proof.failed + proof.unknown, failed, "{proof:?}");
    proof
}

#[test]
fn a_declared_insertion_whose_connection_is_lost_is_unknown_and_no_unchecked_row() {
    let proof = ended("steps");
    assert_eq!((proof.failed, proof.unknown_found), (0, proof.unknown), "{proof:?}");
}

#[test]
fn a_transaction_whose_connection_is_lost_before_its_commit_has_no_effect() {
    let proof = ended("transaction");
    assert_eq!((proof.unknown, proof.read_back), (0, 0), "{proof:?}");
}
