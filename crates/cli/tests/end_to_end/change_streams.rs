//! Change streams in the hands of databases: PostgreSQL and DuckDB replay them, and end with the promised rows.

use std::fs;
use std::process::Command;

use postgres::{Client, NoTls};

use crate::database::Database;
use crate::harness::sawmill;

const CRM: &str = r#"
name = "crm"
[[tables]]
name = "customers"
rows = 3_000
fields = [
  { name = "id", type = "int64", values = { sequence = { start = 1 } } },
  { name = "name", type = "string", values = { full_name = { locale = "de_DE" } } },
  { name = "mail", type = "string", values = { email = { name = "name" } } },
  { name = "credit", type = "decimal", precision = 9, scale = 2, values = { lognormal = { median = 500, sigma = 0.7 } } },
  { name = "since", type = "date", values = { uniform = { min = 2020-01-01, max = 2024-12-31 } } },
]
[[tables]]
name = "changes"
changes = { of = "customers", updates = { geometric = { p = 0.4, max = 20 } }, deletes = 0.2, columns = ["name", "credit"] }
fields = [{ name = "lsn", type = "int64", values = { sequence = {} } }]
[[tables]]
name = "now"
state_of = "changes"
"#;

/// Applies each change in its order, and fails if the row before it is not the one that the change names.
const REPLAY: &str = "
CREATE TABLE state (LIKE now);
ALTER TABLE state ADD PRIMARY KEY (id);
DO $$
DECLARE
  change record;
  old state;
BEGIN
  FOR change IN SELECT * FROM changes ORDER BY lsn LOOP
    IF change.before IS NOT NULL THEN
      SELECT * INTO STRICT old FROM state WHERE id = (change.before ->> 'id')::bigint;
      IF old IS DISTINCT FROM jsonb_populate_record(NULL::state, change.before) THEN
        RAISE EXCEPTION 'change %: % instead of %', change.lsn, old, change.before;
      END IF;
      DELETE FROM state WHERE id = old.id;
    END IF;
    IF change.after IS NOT NULL THEN
      INSERT INTO state SELECT (jsonb_populate_record(NULL::state, change.after)).*;
    END IF;
  END LOOP;
END $$";

#[test]
fn postgresql_replays_the_stream_to_the_promised_rows() {
    let server = Database::new();
    let dir = tempfile::tempdir().unwrap();
    let spec = dir.path().join("crm.toml");
    fs::write(&spec, CRM).unwrap();
    let mut client = Client::connect(&server.url(), NoTls).unwrap();
    for table in ["changes", "now"] {
        let source = format!("gen:{}/{table}", spec.display());
        sawmill(["load", &source, "--to", &server.url(), "--table", table, "--verify"]).ok();
    }
    client.batch_execute(REPLAY).unwrap();
    let query = "SELECT (SELECT count(*) FROM state), (SELECT count(*) FROM now), \
                 (SELECT count(*) FROM (TABLE state EXCEPT ALL TABLE now) AS missing)";
    let row = client.query_one(query, &[]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, i64>(2)), (2_400, 2_400, 0));
}

#[test]
fn the_files_are_the_same_in_parts_and_on_any_number_of_threads_and_duckdb_finds_the_same_state() {
    let dir = tempfile::tempdir().unwrap();
    let spec = dir.path().join("crm.toml");
    fs::write(&spec, CRM).unwrap();
    let table = format!("{}/changes", spec.display());
    let out = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let shared = ["--files", "4", "--row-group-rows", "1000"];
    let run = |more: &[&str], out: &str| {
        sawmill([&["gen", &table, "--out", out], &shared[..], more].concat()).ok();
    };
    run(&["--threads", "1"], &out("one"));
    run(&["--threads", "2"], &out("two"));
    for part in ["1/2", "2/2"] {
        run(&["--part", part], &out("parts"));
    }
    for file in (0..4).map(|i| format!("changes-{i:05}.parquet")) {
        let bytes = |folder: &str| fs::read(dir.path().join(folder).join(&file)).unwrap();
        assert!(bytes("one") == bytes("two") && bytes("one") == bytes("parts"), "{file}");
    }
    sawmill(["gen", &format!("{}/now", spec.display()), "--out", &out("now.parquet")]).ok();
    let python = std::env::var("SAWMILL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    if !Command::new(&python).args(["-c", "import duckdb"]).output().is_ok_and(|ran| ran.status.success()) {
        println!("skipped: {python} has no duckdb; name one that has in SAWMILL_PYTHON");
        return;
    }
    let script = r#"
import sys, duckdb
last = f"""SELECT DISTINCT ON (coalesce(after.id, before.id)) op, after
           FROM '{sys.argv[1]}/one/*.parquet' ORDER BY coalesce(after.id, before.id), lsn DESC"""
state = f"SELECT unnest(after) FROM ({last}) WHERE op <> 'delete'"
now = f"SELECT * FROM '{sys.argv[1]}/now.parquet'"
print(duckdb.execute(f"SELECT (SELECT count(*) FROM ({state} EXCEPT ALL {now})), (SELECT count(*) FROM ({now} EXCEPT ALL {state})), (SELECT count(*) FROM ({now}))").fetchone())
"#;
    let ran = Command::new(&python).args(["-c", script, dir.path().to_str().unwrap()]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8_lossy(&ran.stdout).trim(), "(0, 0, 2400)");
}
