//! `sawmill bench load` into CrateDB, and with each layout of nested values: figures of whole runs, nothing
//! left.

use postgres::{Client, NoTls};
use sawmill_cratedb_standin::StandIn;
use serde_json::Value;

use crate::bench::{bench, contacts, home};
use crate::database::Database;
use crate::harness::sawmill;

/// Each run of a benchmark's first case did this many rows, and its timeline has samples. Tables of composite
/// types have no sums that could be compared.
fn assert_measured(json: &Value, rows: u64, native: bool) {
    let side = &json["cases"][0]["sides"][0];
    for run in side["runs"].as_array().unwrap() {
        assert_eq!(run["rows"], rows, "{run}");
        assert!(run["bytes"].as_u64().unwrap() > 0 && (native || run["checksum"].is_string()), "{run}");
    }
    assert!(!side["timeline"]["samples"].as_array().unwrap().is_empty(), "{side}");
}

#[test]
fn loads_into_cratedb_are_measured_and_their_tables_are_gone_afterwards() {
    let home = home();
    let files = contacts(&home);
    let standin = StandIn::start(1);
    let url = standin.url();
    let args = ["load", &files, "--to", &url, "--row-key", "--connections", "1,2", "--runs", "2", "--json"];
    let json = bench(&home, &args).ok().json();
    assert_eq!(json["cases"].as_array().unwrap().len(), 2);
    assert_measured(&json, 2000, false);
    assert_eq!(json["versions"]["CrateDB"], "6.4.3", "{json}");
    let watched = json["cases"][0]["sides"][0]["timeline"]["watched"].as_array().unwrap();
    assert_eq!(watched[0], "CrateDB", "the server's process is sampled: {json}");
    assert!(!json.to_string().contains(&url), "the address is not on record");
    let status = sawmill(["load", "status", "--to", &url]).ok().out;
    assert!(!status.contains("sawmill_bench"), "{status}");
}

#[test]
fn every_layout_of_nested_values_is_measured_and_leaves_nothing() {
    let home = home();
    let files = contacts(&home);
    let server = Database::new();
    let url = server.url();
    let plan = ["--runs", "1", "--warmup", "1", "--json"];
    for nested in ["jsonb", "native", "tables"] {
        let load = ["load", &files, "--to", &url, "--nested", nested];
        let json = bench(&home, &[&load[..], &plan].concat()).ok().json();
        let rows = json["cases"][0]["sides"][0]["runs"][0]["rows"].as_u64().unwrap();
        // Each contact has phones, which are rows of their own where nested values become tables.
        assert!(if nested == "tables" { rows > 2000 } else { rows == 2000 }, "{nested}: {rows}");
        assert_measured(&json, rows, nested == "native");
    }
    let keys = ["load", &files, "--to", &url, "--nested", "tables", "--foreign-keys"];
    bench(&home, &[&keys[..], &plan].concat()).ok();
    let mut client = Client::connect(&url, NoTls).unwrap();
    for left in [
        "select count(*) from pg_tables where schemaname not in ('pg_catalog', 'information_schema')",
        "select count(*) from pg_type t join pg_namespace n on n.oid = typnamespace where nspname = 'public'",
    ] {
        let left: i64 = client.query_one(left, &[]).unwrap().get(0);
        assert_eq!(left, 0);
    }
}

#[test]
fn options_of_a_single_postgresql_table_are_rejected() {
    let home = home();
    let files = contacts(&home);
    for more in [
        &["--keyed", "yes"][..],
        &["--table-kind", "unlogged"],
        &["--mode", "append"],
        &["--strategy", "staged"],
        &["--against", "true"],
    ] {
        let load = ["load", &files, "--to", "crate://localhost:1", "--row-key"];
        let error = bench(&home, &[&load[..], more].concat()).fails(2);
        assert!(error.contains(more[0]) && error.contains("CrateDB"), "{error}");
        let load = ["load", &files, "--to", "postgres://localhost:1/db", "--nested", "tables"];
        let error = bench(&home, &[&load[..], more].concat()).fails(2);
        assert!(error.contains(more[0]) && error.contains("nested"), "{error}");
    }
    let load = ["load", &files, "--to", "postgres://localhost:1/db", "--row-key"];
    assert!(bench(&home, &load).fails(2).contains("--row-key is available for CrateDB only"));
}
