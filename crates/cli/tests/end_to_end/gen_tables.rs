//! Specs with several tables as datasets of `gen`, `load` and `footer`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{names, sawmill};
use crate::load::Bench;

const SHOP: &str = r#"
name = "shop"
[[tables]]
name = "customers"
rows = 1_000
[[tables.fields]]
name = "id"
type = "int64"
values = { sequence = { start = 1 } }
[[tables.fields]]
name = "country"
type = "string"
values = { weights = { AT = 1, DE = 5, US = 10 } }
[[tables]]
name = "orders"
per = { table = "customers", rows = { uniform = { min = 0, max = 6 } } }
[[tables.fields]]
name = "id"
type = "int64"
values = { sequence = { start = 1 } }
[[tables.fields]]
name = "customer"
type = "int64"
values = { parent = "id" }
[[tables.fields]]
name = "country"
type = "string"
values = { parent = "country" }
"#;

#[test]
fn one_command_makes_all_tables_each_in_a_folder_of_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let spec = dir.path().join("shop.toml");
    fs::write(&spec, SHOP).unwrap();
    let (spec, out) = (spec.to_str().unwrap(), dir.path().join("shop"));
    let out_text = out.to_str().unwrap();
    let made = sawmill(["gen", spec, "--files", "3", "--threads", "2", "--out", out_text, "--json"]).ok().out;
    let made: Value = serde_json::from_str(&made).unwrap();
    let tables: Vec<(&str, u64)> = (made["tables"].as_array().unwrap().iter())
        .map(|table| (table["dataset"].as_str().unwrap(), table["rows"].as_u64().unwrap()))
        .collect();
    assert_eq!(tables, [("customers", 1_000), ("orders", 3_000)]);
    assert_eq!(names(&out), ["customers", "orders"]);
    // Made again, nothing is replaced; resumed, nothing is missing.
    assert!(sawmill(["gen", spec, "--files", "3", "--out", out_text]).fails(2).contains("customers"));
    let resumed = sawmill(["gen", spec, "--files", "3", "--out", out_text, "--resume"]).ok().out;
    assert_eq!(resumed.matches("content sum not computed").count(), 1, "{resumed}");
    // A table made alone, in parts, has the same files.
    let alone = dir.path().join("alone");
    let table = format!("{spec}/orders");
    for part in ["2/2", "1/2"] {
        let args = ["gen", &table, "--files", "3", "--part", part, "--out", alone.to_str().unwrap()];
        sawmill(args).ok();
    }
    for file in 0..3 {
        let name = format!("orders-0000{file}.parquet");
        assert!(fs::read(alone.join(&name)).unwrap() == fs::read(out.join("orders").join(&name)).unwrap());
    }
    let small = dir.path().join("small");
    let made = sawmill(["gen", spec, "--scale", "0.1", "--out", small.to_str().unwrap(), "--json"]).ok().out;
    let made: Value = serde_json::from_str(&made).unwrap();
    assert_eq!(made["tables"][0]["rows"], 100);
    let rows = sawmill(["footer", out_text, "--json"]).ok().out;
    assert!(rows.contains("orders-00000.parquet") && rows.contains("customers-00002.parquet"), "{rows}");
}

#[test]
fn options_that_do_not_fit_several_tables_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let spec = dir.path().join("shop.toml");
    fs::write(&spec, SHOP).unwrap();
    let (spec, out) = (spec.to_str().unwrap(), dir.path().join("out"));
    let (orders, items) = (format!("{spec}/orders"), format!("{spec}/items"));
    for (args, complaint) in [
        (&["gen", spec, "--rows", "10"][..], "--scale"),
        (&["gen", spec, "--partition-by", "country"], "/customers"),
        (&["gen", spec, "--scale", "0"], "a scale that is not above 0"),
        (&["gen", &orders, "--rows", "3001"], "3001 rows of orders, which has 3000"),
        (&["gen", &items], "no table \"items\""),
    ] {
        let error = sawmill([args, &["--out", out.to_str().unwrap()]].concat()).fails(2);
        assert!(error.contains(complaint), "{error}");
    }
    assert!(sawmill(["gen", spec, "--out", "x.parquet"]).fails(2).contains("2 tables do not fit"));
    assert!(sawmill(["gen", "explain", spec]).fails(2).contains("customers, orders"));
    assert!(sawmill(["gen", "explain", &orders]).ok().out.contains("customers.country"));
    assert!(!out.exists());
}

#[test]
fn all_tables_are_checked_before_the_first_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let (spec, out) = (dir.path().join("shop.toml"), dir.path().join("shop"));
    let note = "[[tables.fields]]\nname = \"note\"\ntype = \"string\"\nvalues = \"email\"\n[[tables]]\nname = \"orders\"";
    fs::write(&spec, SHOP.replace("[[tables]]\nname = \"orders\"", note)).unwrap();
    let args = ["gen", spec.to_str().unwrap(), "--out", out.to_str().unwrap(), "--compression", "note=zstd"];
    let error = sawmill(args).fails(2);
    assert!(error.contains("note") && !out.exists(), "{error}");
}

/// Each child has its key and its country from the same row of the parent.
#[test]
fn tables_are_loaded_without_files_and_join() {
    let bench = Bench::new();
    let dir = tempfile::tempdir().unwrap();
    let spec = dir.path().join("shop.toml");
    fs::write(&spec, SHOP).unwrap();
    for table in ["customers", "orders"] {
        let source = format!("gen:{}/{table}?seed=7", spec.display());
        bench.load(Path::new(&source), table, &[]).ok();
        let verified = sawmill(bench.args("verify", Path::new(&source), table, &[])).ok();
        assert!(verified.out.contains("verified"), "{}", verified.out);
    }
    let joined =
        "select count(*) from orders o join customers c on c.id = o.customer and c.country = o.country";
    assert_eq!(bench.count(joined), 3_000);
    let counts = "select count(distinct n) from (select count(*) n from orders group by customer) counts";
    assert_eq!(bench.count(counts), 6);
}
