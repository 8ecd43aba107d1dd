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
    // A value that does not fit, and files of an earlier run.
    let grown = "[[tables.fields]]\nname = \"n\"\ntype = \"int8\"\nvalues.expression = \"id * 9\"\n";
    fs::write(&spec, SHOP.to_owned() + grown).unwrap();
    let error = sawmill(&args[..4]).fails(2);
    assert!(error.contains("135 does not fit int8") && !out.exists(), "{error}");
    fs::write(&spec, SHOP).unwrap();
    for format in ["parquet", "ndjson"] {
        fs::create_dir_all(out.join("orders")).unwrap();
        fs::write(out.join(format!("orders/orders-00000.{format}")), "").unwrap();
        let error = sawmill([&args[..4], &["--as", format]].concat()).fails(2);
        assert!(error.contains("a file of an earlier run of orders"), "{error}");
        assert_eq!(names(&out), ["orders"]);
    }
}

/// Drawing all values shows whether they fit. Complete tables stay, because `--resume` needs them.
#[test]
fn the_error_of_a_later_table_names_the_tables_that_are_complete() {
    let dir = tempfile::tempdir().unwrap();
    let (spec, out) = (dir.path().join("shop.toml"), dir.path().join("shop"));
    let grown = "[[tables.fields]]\nname = \"n\"\ntype = \"int16\"\nvalues.expression = \"id * 16\"\n";
    fs::write(&spec, SHOP.to_owned() + grown).unwrap();
    for (format, way) in [("parquet", "--resume keeps"), ("ndjson", "--overwrite makes")] {
        let (spec, out) = (spec.to_str().unwrap(), out.join(format));
        let error = sawmill(["gen", spec, "--as", format, "--out", out.to_str().unwrap()]).fails(2);
        let complete = format!("; complete in {}: customers; {way} them", out.display());
        assert!(error.contains("32768 does not fit int16") && error.contains(&complete), "{error}");
    }
}

/// A spec with a table of `rows` rows whose values do not repeat, and one with three times as many.
fn unique(rows: u32) -> String {
    format!(
        "name = \"u\"\n[[tables]]\nname = \"p\"\nrows = {rows}\nfields = [\n\
         {{ name = \"pct\", type = \"int32\", values.uniform = {{ min = 1, max = 100, unique = true }} }},\n\
         {{ name = \"code\", type = \"string\", values.pattern.unique = {{ \"X[0-9]{{3}}\" = 1 }} }}]\n\
         [[tables]]\nname = \"c\"\nper = {{ table = \"p\", rows = {{ constant = 3 }} }}\n\
         fields = [{{ name = \"n\", type = \"int16\", values.uniform = {{ min = 1, max = 299, unique = true }} }}]\n"
    )
}

#[test]
fn unique_values_that_do_not_suffice_for_the_rows_are_an_error_before_any_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let (spec, out) = (dir.path().join("u.toml"), dir.path().join("out"));
    let (spec, out_text) = (spec.to_str().unwrap(), out.to_str().unwrap());
    let (parents, children) = (format!("{spec}/p"), format!("{spec}/c"));
    let pct = "the field pct has 100 different values, and the table";
    for (rows, args, complaint) in [
        (200, &["gen", spec][..], pct),
        (99, &["gen", spec, "--scale", "2"], pct),
        (99, &["gen", &parents, "--rows", "101"], pct),
        // Part 1 has enough, the others do not.
        (200, &["gen", &parents, "--files", "4", "--part", "1/4"], pct),
        (200, &["gen", &parents, "--as", "ndjson"], pct),
        (200, &["gen", "explain", &parents], pct),
        (100, &["gen", spec], "the field n has 299 different values, and the table 300 rows"),
        (100, &["gen", &children, "--files", "3"], "the field n has 299 different values"),
    ] {
        fs::write(spec, unique(rows)).unwrap();
        let to = if args.contains(&"explain") { &[][..] } else { &["--out", out_text] };
        let error = sawmill([args, to].concat()).fails(2);
        assert!(error.contains(complaint) && !out.exists(), "{args:?}: {error}");
    }
    let alone = unique(2_000).replace("max = 100,", "max = 9_999,");
    fs::write(spec, alone).unwrap();
    let error = sawmill(["gen", &parents, "--out", out_text]).fails(2);
    assert!(error.contains("\"X[0-9]{3}\" of the field code matches 1,000 different texts"), "{error}");
    let error = sawmill(["convert", &format!("gen:{parents}"), &format!("{out_text}.csv")]).fails(2);
    assert!(error.contains("2,000 of 2,000 rows need one"), "{error}");
    fs::write(spec, unique(99)).unwrap();
    sawmill(["gen", spec, "--out", out_text]).ok();
}

/// Inferred bounds describe a sample, and promise nothing about all rows.
#[test]
fn more_rows_like_those_of_a_file_keep_their_unique_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let spec = "name = \"k\"\nrows = 5000\nfields = [{ name = \"id\", type = \"int64\", values.uniform = { min = 1000, max = 9999, unique = true } }]";
    fs::write(at("k.toml"), spec).unwrap();
    sawmill(["gen", &at("k.toml"), "--out", &at("k.parquet")]).ok();
    let learned = sawmill(["gen", "spec", "--like", &at("k.parquet")]).ok().out;
    assert!(learned.contains("unique = true"), "{learned}");
    sawmill(["gen", "--like", &at("k.parquet"), "--rows", "20k", "--out", &at("more.csv"), "--as", "csv"])
        .ok();
    let more = fs::read_to_string(at("more.csv")).unwrap();
    let ids: std::collections::HashSet<&str> = more.lines().skip(1).collect();
    assert_eq!(ids.len(), 20_000);
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
