//! The tables of TPC-H as datasets of `gen`, `load` and `verify`.

use std::fs;
use std::path::Path;

use serde_json::Value;

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

/// Parts made apart are the files of the whole.
#[test]
fn parts_are_the_files_of_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let make = |name: &str, more: &[&str]| {
        let out = dir.path().join(name);
        let args = ["gen", "tpch/orders", "--scale", "0.05", "--files", "3", "--out", out.to_str().unwrap()];
        sawmill(args.iter().chain(more)).ok();
        out
    };
    let whole = make("whole", &["--threads", "1"]);
    make("parts", &["--part", "2/2"]);
    let parts = make("parts", &["--part", "1/2"]);
    for file in 0..3 {
        let name = format!("orders-0000{file}.parquet");
        assert!(fs::read(whole.join(&name)).unwrap() == fs::read(parts.join(&name)).unwrap(), "{name}");
    }
}

#[test]
fn options_that_tpc_h_leaves_no_choice_for_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    for (args, complaint) in [
        (&["gen", "tpch/orders", "--rows", "10"][..], "--rows for a table of TPC-H"),
        (&["gen", "tpch/orders", "--seed", "7"], "--seed for a table of TPC-H"),
        (&["gen", "tpch/order"], "the tables are region, nation"),
        (&["gen", "tpch/orders", "--scale", "0"], "scale factor"),
        (&["gen", "contacts", "--scale", "2"], "a scale for a dataset that has a single table"),
        (&["gen", "spec", "tpch/orders"], "have no spec"),
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
    let source = Path::new("gen:tpch/lineitem?scale=0.01");
    bench.load(source, "lineitem", &[]).ok();
    assert_eq!(bench.count("select count(*) from lineitem"), 60_175);
    let verified = sawmill(bench.args("verify", source, "lineitem", &[])).ok();
    assert!(verified.out.contains("verified"), "{}", verified.out);
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("lineitem");
    sawmill(["gen", "tpch/lineitem", "--scale", "0.01", "--files", "2", "--out", out.to_str().unwrap()]).ok();
    sawmill(bench.args("verify", &out, "lineitem", &[])).ok();
}
