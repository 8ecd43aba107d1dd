//! The tables of TPC-H and TPC-DS as datasets of `gen`, `load` and `verify`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::gen_types::{python, run};
use crate::harness::{names, sawmill};
use crate::load::Bench;

#[test]
fn all_tables_are_made_in_folders_of_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("tpch");
    let made = sawmill(["gen", "tpch", "--scale", "0.01", "--out", out.to_str().unwrap(), "--json"]).ok().out;
    let made: Value = serde_json::from_str(&made).unwrap();
    let rows: Vec<(&str, u64)> = (made["tables"].as_array().unwrap().iter())
        .map(|table| (table["dataset"].as_str().unwrap(), table["rows"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        rows,
        [
            ("region", 5),
            ("nation", 25),
            ("supplier", 100),
            ("customer", 1500),
            ("part", 2000),
            ("partsupp", 8000),
            ("orders", 15000),
            ("lineitem", 60175)
        ]
    );
    assert_eq!(names(&out).len(), 8);
    // A second run neither replaces nor loses them.
    let again = sawmill(["gen", "tpch", "--scale", "0.01", "--out", out.to_str().unwrap()]).fails(2);
    assert!(again.contains("region"), "{again}");
    sawmill(["gen", "tpch", "--scale", "0.01", "--out", out.to_str().unwrap(), "--resume"]).ok();
}

/// All 24 tables, whose keys DuckDB finds in the tables that they refer to.
#[test]
fn tables_of_tpc_ds_join() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("tpcds");
    let made =
        sawmill(["gen", "tpcds", "--scale", "0.01", "--out", out.to_str().unwrap(), "--json"]).ok().out;
    let made: Value = serde_json::from_str(&made).unwrap();
    let rows = |name: &str| {
        let tables = made["tables"].as_array().unwrap();
        tables.iter().find(|table| table["dataset"] == name).map(|table| table["rows"].as_u64().unwrap())
    };
    assert_eq!(names(&out).len(), 24);
    assert_eq!(rows("store_sales"), Some(120_527));
    assert_eq!(rows("dbgen_version"), None);
    let Some(python) = python("duckdb") else { return };
    let script = r#"
import sys, duckdb
db = duckdb.connect()
tables = "date_dim time_dim customer customer_address customer_demographics household_demographics item store promotion \
    warehouse ship_mode reason web_page web_site store_sales store_returns catalog_sales catalog_returns web_sales web_returns"
for table in tables.split():
    db.execute(f"CREATE VIEW {table} AS FROM read_parquet('{sys.argv[1]}/{table}/*.parquet')")
keys = dict(date="date_dim d_date_sk", time="time_dim t_time_sk", item="item i_item_sk", customer="customer c_customer_sk",
    addr="customer_address ca_address_sk", cdemo="customer_demographics cd_demo_sk", store="store s_store_sk",
    hdemo="household_demographics hd_demo_sk", promo="promotion p_promo_sk", warehouse="warehouse w_warehouse_sk",
    mode="ship_mode sm_ship_mode_sk", reason="reason r_reason_sk", page="web_page wp_web_page_sk", site="web_site web_site_sk")
checked = 0
for table in tables.split()[14:]:
    for column in [name for name, *_ in db.execute(f"DESCRIBE {table}").fetchall()]:
        to = keys.get(column.removesuffix("_sk").split("_")[-1]) if column.endswith("_sk") else None
        if to and column != "cs_catalog_page_sk" and column != "cr_catalog_page_sk":
            other, key = to.split()
            orphans, n = db.execute(f"SELECT count(*) FILTER ({column} NOT IN (SELECT {key} FROM {other})), count({column}) FROM {table}").fetchone()
            assert orphans == 0 and n > 0, (table, column, orphans, n)
            checked += 1
for sales, returns, order in [("store_sales ss", "store_returns sr", "ticket"), ("web_sales ws", "web_returns wr", "order")]:
    (sales, s), (returns, r) = sales.split(), returns.split()
    lost = db.execute(f"SELECT count(*) FROM {returns} ANTI JOIN {sales} ON {r}_item_sk = {s}_item_sk AND {r}_{order}_number = {s}_{order}_number").fetchone()
    assert lost == (0,), (returns, lost)
print(checked, "keys")
"#;
    assert_eq!(run(&python, script, &out).trim(), "77 keys");
}

/// Parts made apart are the files of the whole.
#[test]
fn parts_are_the_files_of_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    for (dataset, table) in [("tpch/orders", "orders"), ("tpcds/web_sales", "web_sales")] {
        let make = |name: &str, more: &[&str]| {
            let out = dir.path().join(table).join(name);
            let args = ["gen", dataset, "--scale", "0.05", "--files", "3", "--out", out.to_str().unwrap()];
            sawmill(args.iter().chain(more)).ok();
            out
        };
        let whole = make("whole", &["--threads", "1"]);
        make("parts", &["--part", "2/2"]);
        let parts = make("parts", &["--part", "1/2"]);
        for file in 0..3 {
            let name = format!("{table}-0000{file}.parquet");
            assert!(fs::read(whole.join(&name)).unwrap() == fs::read(parts.join(&name)).unwrap(), "{name}");
        }
    }
}

#[test]
fn options_that_a_benchmark_leaves_no_choice_for_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    for (args, complaint) in [
        (&["gen", "tpch/orders", "--rows", "10"][..], "--rows for a table of TPC-H"),
        (&["gen", "tpch/orders", "--seed", "7"], "--seed for a table of TPC-H"),
        (&["gen", "tpcds/item", "--rows", "10"], "--rows for a table of TPC-DS"),
        (&["gen", "tpcds/item", "--seed", "7"], "--seed for a table of TPC-DS"),
        (&["gen", "tpch/order"], "the tables are region, nation"),
        (&["gen", "tpcds/orders"], "the tables are date_dim, time_dim"),
        (&["gen", "tpcds/item", "--scale", "1e6"], "a scale factor of 1000000"),
        (&["gen", "tpch/orders", "--scale", "0"], "scale factor"),
        (&["gen", "contacts", "--scale", "2"], "a scale for a dataset that has a single table"),
        (&["gen", "spec", "tpch/orders"], "have no spec"),
        (&["gen", "spec", "tpcds"], "all tables of TPC-DS, where one is needed"),
        (&["gen", "tpch", "--out", "all.parquet"], "8 tables do not fit into one file"),
    ] {
        let makes = args[1] != "spec" && !args.contains(&"--out");
        let out: &[&str] = if makes { &["--out", out] } else { &[] };
        let error = sawmill([args, out].concat()).fails(2);
        assert!(error.contains(complaint), "{error}");
    }
}

#[test]
fn a_generated_table_is_loaded_and_verified_without_files() {
    let bench = Bench::new();
    for (table, rows) in [("tpch/lineitem", 60_175), ("tpcds/store_returns", 11_925)] {
        let (source, name) = (format!("gen:{table}?scale=0.01"), table.rsplit('/').next().unwrap());
        bench.load(Path::new(&source), name, &[]).ok();
        assert_eq!(bench.count(&format!("select count(*) from {name}")), rows);
        let verified = sawmill(bench.args("verify", Path::new(&source), name, &[])).ok();
        assert!(verified.out.contains("verified"), "{}", verified.out);
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join(name);
        sawmill(["gen", table, "--scale", "0.01", "--files", "2", "--out", out.to_str().unwrap()]).ok();
        sawmill(bench.args("verify", &out, name, &[])).ok();
    }
}
