//! Several operations have one row at a time: they wait, fail and are tried again, and the proof still holds.

use crate::postgres::rewriting;
use crate::shared_server::SharedDatabase;
use crate::truth::server_with_trigger;
use crate::{address, driven, plan};

#[test]
fn serializable_updates_of_hot_rows_fail_are_tried_again_and_are_all_there() {
    let server = SharedDatabase::new();
    let text = "clients = 8\nfor = \"3s\"\nisolation = \"serializable\"\nretries = 100\n[tables.events]\nrows = 100\n\
                [[operations]]\nname = \"change\"\nupdate = \"events\"\npick = \"zipf\"\nskew = 1.2\n";
    let result = driven(&plan(text), &address(&server), None);
    let (change, proof) = (&result.operations[0], &result.proof[0]);
    assert!(change.retries > 10 && change.retried > 10, "{change:?}");
    assert!(change.ok > 200 && change.errors.is_empty(), "{:?}", change.errors);
    assert!(proof.holds() && proof.updates == change.ok && proof.found == 100, "{proof:?}");
}

#[test]
fn a_failure_that_is_not_tried_again_is_an_error_and_no_update() {
    let server = SharedDatabase::new();
    let text = "clients = 8\nfor = \"2s\"\nisolation = \"repeatable read\"\nretries = 0\n[tables.events]\nrows = 1\n\
                [[operations]]\nname = \"change\"\nupdate = \"events\"\npick = \"zipf\"\n";
    let result = driven(&plan(text), &address(&server), None);
    let (change, proof) = (&result.operations[0], &result.proof[0]);
    assert!(change.errors["40001"] > 10 && change.errors.len() == 1, "{:?}", change.errors);
    assert!(proof.holds() && proof.updates == change.ok && proof.unknown == 0, "{proof:?}");
}

#[test]
fn a_row_that_is_busy_is_no_reason_to_do_nothing() {
    let server = SharedDatabase::new();
    // Each keeps the only row for 20 ms: the others wait for its lock.
    let text = "rate = 24\narrivals = \"bursts of 8\"\nfor = \"3s\"\nconnections = 8\n[tables.events]\nrows = 1\n\
                [[operations]]\nname = \"change\"\n\
                transaction = [{ update = \"events\" }, { sql = \"SELECT pg_sleep(0.02)\" }]\n";
    let result = driven(&plan(text), &address(&server), None);
    let (change, proof) = (&result.operations[0], &result.proof[0]);
    assert!(change.errors.is_empty() && change.ok > 40, "{change:?}");
    assert!(change.service.percentiles.max_us > 60_000, "{:?}", change.service.percentiles);
    assert!(proof.holds() && proof.updates == change.ok, "{proof:?}");
}

#[test]
fn an_update_of_a_hot_row_that_a_server_swallows_is_found() {
    let body = "IF nextval('turn') % 10 = 0 THEN RETURN OLD; END IF; RETURN NEW;";
    let server = server_with_trigger("UPDATE", body);
    let text = "clients = 8\nfor = \"2s\"\n[tables.events]\nrows = 3\n[[operations]]\nname = \"change\"\n\
                update = \"events\"\npick = \"zipf\"\n";
    let result = driven(&plan(text), &address(&server), None);
    let proof = &result.proof[0];
    assert!(proof.updates > 200 && proof.updates == result.operations[0].ok, "{proof:?}");
    assert_eq!((proof.lost_updates, proof.lost, proof.different), (proof.updates / 10, 0, 0), "{proof:?}");
}

#[test]
fn a_hot_row_with_a_part_of_an_update_is_found() {
    // The row gets the new version and keeps one of its values.
    let body = "NEW.event_id = OLD.event_id; RETURN NEW;";
    let server = server_with_trigger("UPDATE", body);
    let text = "clients = 8\nfor = \"1s\"\n[tables.events]\nrows = 20\n[[operations]]\nname = \"change\"\n\
                update = \"events\"\npick = \"zipf\"\n";
    let result = driven(&plan(text), &address(&server), None);
    let proof = &result.proof[0];
    assert!(proof.different > 0 && proof.lost_updates + proof.unsent_updates == 0, "{proof:?}");
}

#[test]
fn updates_upserts_and_deletions_of_the_same_rows_leave_what_was_acknowledged() {
    let server = SharedDatabase::new();
    let text = r#"
clients = 8
for = "3s"
retries = 20
[tables.events]
rows = 20
[[operations]]
name = "insert"
weight = 3
insert = "events"
[[operations]]
name = "update"
weight = 5
update = "events"
pick = "latest"
[[operations]]
name = "upsert"
weight = 2
upsert = "events"
[[operations]]
name = "delete"
delete = "events"
pick = "latest"
[[operations]]
name = "read"
weight = 3
select = "events"
pick = "latest"
"#;
    for upsert in [true, false] {
        let text =
            if upsert { text.to_owned() } else { text.replace("upsert = \"events\"", "update = \"events\"") };
        let text = text.replace("[tables.events]", "overwrite = true\n[tables.events]");
        let result = driven(&plan(&text), &address(&server), None);
        let errors: Vec<_> = result.operations.iter().map(|operation| &operation.errors).collect();
        // The latest rows may all be deleted, and then there is none to choose.
        let is_rare = |(kind, count): (&String, &u64)| kind == "no-row" && *count * 50 < result.total.ok;
        assert!(result.total.errors.iter().all(is_rare), "{errors:?}");
        assert!(result.operations.iter().all(|operation| operation.ok > 50), "{:?}", result.operations);
        assert!(result.proof[0].holds() && result.proof[0].unknown == 0, "{:?}", result.proof);
    }
}

#[test]
fn a_transaction_has_the_level_of_its_plan_whatever_its_session_was_left_with() {
    // A pooler may hand over a session that another client has set.
    let text = "rate = 50\nfor = \"1s\"\nconnections = 1\nisolation = \"serializable\"\n\
                [[operations]]\nsql = \"SET default_transaction_isolation = 'read committed'\"\n\
                [[operations]]\ntransaction = [{ sql = \"SELECT 1 / \
                (current_setting('transaction_isolation') = 'serializable')::int\" }]\n";
    let result = driven(&plan(text), &address(&SharedDatabase::new()), None);
    assert!(result.operations[1].ok > 5 && result.total.errors.is_empty(), "{:?}", result.total.messages);
}

#[test]
fn a_transaction_that_reads_two_versions_of_a_row_at_repeatable_read_breaks_the_proof() {
    let server = SharedDatabase::new();
    let text = "clients = 4\nfor = \"2s\"\nisolation = \"repeatable read\"\nretries = 100\noverwrite = true\n[tables.events]\nrows = 1\n\
                [[operations]]\nname = \"change\"\nupdate = \"events\"\n[[operations]]\nname = \"read twice\"\nweight = 3\n\
                transaction = [{ select = \"events\" }, { sql = \"SELECT pg_sleep(0.005)\" }, { select = \"events\" }]\n";
    let read = |text: &str, address: &sawmill_drive::Address| {
        let result = driven(&plan(text), address, None);
        (result.operations[1].clone(), result.proof[0].clone())
    };
    let (twice, proof) = read(text, &address(&server));
    assert!(twice.ok > 20 && twice.errors.is_empty() && proof.holds(), "{twice:?} {proof:?}");
    // A pooler that gives every other transaction a lower level.
    let lower = rewriting(
        &server,
        b"Q\0\0\0\x2aBEGIN ISOLATION LEVEL repeatable read\0",
        b"Q\0\0\0\x29BEGIN ISOLATION LEVEL read committed\0",
    );
    let (twice, proof) = read(text, &lower);
    assert!(twice.messages["check"].contains("one transaction read version "), "{twice:?}");
    assert!(!proof.holds() && proof.wrong_reads == twice.errors["check"], "{proof:?}");
    let (twice, proof) = read(&text.replace("repeatable read", "read committed"), &address(&server));
    assert!(twice.ok > 20 && twice.errors.is_empty() && proof.holds(), "{twice:?} {proof:?}");
}
