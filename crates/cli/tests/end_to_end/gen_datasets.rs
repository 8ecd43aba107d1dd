//! Datasets that `sawmill gen` explains, infers and writes in other formats than Parquet.

use std::fs;

use crate::harness::sawmill;

#[test]
fn every_built_in_dataset_is_explained_and_generated() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["contacts", "orders", "events", "devices", "deep", "wide:30", "wide:3:string"] {
        let text = sawmill(["gen", "explain", name, "--rows", "10M"]).ok().out;
        assert!(text.contains("message ") && text.contains("bytes each"), "{text}");
        let json = sawmill(["gen", "explain", name, "--json"]).ok().json();
        let out = dir.path().join("x.parquet");
        let out = out.to_str().unwrap();
        let made =
            sawmill(["gen", name, "--rows", "3000", "--out", out, "--overwrite", "--json"]).ok().json();
        let expected = json["bytes_a_row"].as_f64().unwrap() * 3000.0;
        // Footers and page headers come on top.
        let ratio = made["files"][0]["bytes"].as_f64().unwrap() / expected;
        assert!((0.8..6.0).contains(&ratio), "{name}: {ratio}");
    }
}

#[test]
fn a_spec_sets_the_number_of_rows_and_the_command_overrides_it() {
    let rows = |extra: &[&str]| {
        let args = ["gen", "explain", "devices", "--json"].iter().chain(extra).copied();
        sawmill(args).ok().json()["rows"].as_u64().unwrap()
    };
    assert_eq!(rows(&[]), 50_000);
    assert_eq!(rows(&["--rows", "7"]), 7);
}

#[test]
fn a_wrong_spec_is_named_with_file_line_and_field() {
    let dir = tempfile::tempdir().unwrap();
    let spec = dir.path().join("mine.toml");
    fs::write(&spec, "name = \"d\"\n[[fields]]\nname = \"a\"\ntype = \"int32\"\nvalue = 3\n").unwrap();
    let spec = spec.to_str().unwrap();
    let ran = sawmill(["gen", spec, "--out", "/dev/null"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    for part in [spec, "line 5, column 1", "field a", "`values`"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    let ran = sawmill(["gen", "no-such-dataset"]);
    assert!(ran.code == Some(2) && ran.err.contains("contacts, orders"), "{}", ran.err);
}

#[test]
fn files_beside_a_spec_are_found_from_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("colours.txt"), "red\ngreen\nblue\n").unwrap();
    fs::write(
        dir.path().join("shop.toml"),
        "name = \"shop\"\nrows = 10\n[[fields]]\nname = \"id\"\ntype = \"int32\"\nvalues = { sequence = { start = 100 } }\n",
    )
    .unwrap();
    let spec = dir.path().join("sales.toml");
    fs::write(
        &spec,
        "name = \"sales\"\n[[fields]]\nname = \"shop\"\ntype = \"int32\"\nvalues = { ref = \"shop.id\" }\n\
         [[fields]]\nname = \"colour\"\ntype = \"string\"\nvalues = { choice = { file = \"colours.txt\" } }\n",
    )
    .unwrap();
    let text = sawmill(["gen", spec.to_str().unwrap(), "--rows", "50", "--as", "csv", "--out", "-"]).ok().out;
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("shop,colour"));
    let mut rows = 0;
    for line in lines {
        let (shop, colour) = line.split_once(',').unwrap();
        assert!((100..110).contains(&shop.parse::<u32>().unwrap()), "{line}");
        assert!(["red", "green", "blue"].contains(&colour), "{line}");
        rows += 1;
    }
    assert_eq!(rows, 50);
}

#[test]
fn data_like_a_file_has_its_columns_and_shape() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    for (name, format) in [("o.parquet", "parquet"), ("o.arrow", "arrow"), ("o.ndjson", "ndjson")] {
        let (from, again) = (path(name), path(&format!("again-{format}.parquet")));
        sawmill(["gen", "contacts", "--rows", "3000", "--as", format, "--out", &from]).ok();
        let spec = sawmill(["gen", "spec", "--like", &from]).ok().out;
        assert!(spec.contains("unique = \"+91-{id:010}\"") && spec.contains("Mobile"), "{spec}");
        sawmill(["gen", "--like", &from, "--rows", "500", "--out", &again]).ok();
        let schema = sawmill(["footer", &again, "--schema"]).ok().out;
        assert!(schema.contains("phones") && schema.contains("phone_type"), "{schema}");
        sawmill(["gen", "--schema-of", &from, "--rows", "10", "--out", "/dev/null"]).ok();
    }
    // A file of Arrow is not believed the lengths of its footer, of a block and of its message.
    let good = fs::read(path("o.arrow")).unwrap();
    let number = |at: usize| i64::from_le_bytes(good[at..at + 8].try_into().unwrap());
    let end = good.len() - 10;
    let is_block = |at: &usize| {
        let (offset, metadata, body) = (number(*at), number(at + 8), number(at + 16));
        offset > 0
            && offset % 8 == 0
            && metadata % 8 == 0
            && metadata >= 64
            && body > 0
            && offset.saturating_add(metadata).saturating_add(body) < end as i64
    };
    let block = (end - number(end) as u32 as usize..end - 24).find(is_block).expect("a block");
    for (at, claimed) in [
        (end, -1_i32),
        (end, i32::MAX),
        (block + 8, -8),
        (block + 8, i32::MAX),
        (block + 20, -1),
        (block + 20, i32::MAX),
    ] {
        let mut bad = good.clone();
        bad[at..at + 4].copy_from_slice(&claimed.to_le_bytes());
        fs::write(path("bad.arrow"), bad).unwrap();
        assert!(sawmill(["gen", "spec", "--like", &path("bad.arrow")]).fails(2).contains("claims"));
    }
    let ran = sawmill(["gen", "--like", "/no/such.parquet"]);
    assert!(ran.code == Some(1) && ran.err.contains("/no/such.parquet"), "{}", ran.err);
}

#[test]
fn a_sample_reaches_all_files_and_row_groups() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    // The values grow with the rows, so the first rows are unlike the others.
    fs::write(
        path("grows.toml"),
        "name = \"grows\"\n[[fields]]\nname = \"day\"\ntype = \"int32\"\nvalues = { expression = \"floor(n / 1000)\" }\n",
    )
    .unwrap();
    let spec = fs::read_to_string(path("grows.toml")).unwrap();
    let n = "[[fields]]\nname = \"n\"\ntype = \"int64\"\nvalues = { sequence = { start = 5, step = 3 } }\n";
    fs::write(path("grows.toml"), spec.replace("[[fields]]", &format!("{n}[[fields]]"))).unwrap();
    let out = path("files");
    let args = ["gen", &path("grows.toml"), "--rows", "60k", "--files", "3", "--row-group-rows", "5000"];
    sawmill(args.iter().chain(&["--out", &out]).copied()).ok();
    let pattern = format!("{out}/*.parquet");
    for (named, sample, least) in [(&out, "1M", 180), (&pattern, "6000", 60)] {
        let spec = sawmill(["gen", "spec", "--like", named, "--sample", sample]).ok().out;
        assert!(spec.contains("sequence = { start = 5, step = 3 }"), "{spec}");
        assert!(spec.contains("rows = 60000\n"), "{spec}");
        // All days, or the days of a sample of a tenth, up to the last one in the footers.
        let values = spec.lines().rfind(|line| line.starts_with("values = ")).unwrap();
        let days = values.matches(" = ").count();
        assert!(days >= least || spec.contains("uniform = { min = 0, max = 180 }"), "{days} {spec}");
        assert!(spec.contains("180"), "{spec}");
    }
    let spec = sawmill(["gen", "spec", "--like", &out, "--exclude", "n"]).ok();
    assert!(
        !spec.out.contains("\"n\"\ntype") && spec.out.contains("# Left out: \"n\": excluded"),
        "{}",
        spec.out
    );
    assert!(spec.err.contains("left out: column n: excluded"), "{}", spec.err);
    sawmill(["gen", "contacts", "--rows", "10", "--out", &out, "--exclude", "n"]).fails(2);
    let ran = sawmill(["gen", "spec", "--like", &out, "--exclude", "m"]);
    assert!(ran.code == Some(2) && ran.err.contains("\"m\"") && ran.err.contains("day"), "{}", ran.err);
}

#[test]
fn json_lines_are_the_records() {
    let text = sawmill(["gen", "orders", "--rows", "20", "--as", "ndjson", "--out", "-"]).ok().out;
    let records: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 20);
    assert_eq!(records[19]["id"], 20);
    let items = records[0]["items"].as_array().unwrap();
    assert!(!items.is_empty() && items[0]["line"] == 1, "{items:?}");
    assert!(records[0]["ordered_at"].as_str().unwrap().starts_with("2024-01-01T00:00:"));
}

#[test]
fn other_formats_are_whole_and_do_not_overwrite() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("files");
    let out = out.to_str().unwrap();
    let args = ["gen", "devices", "--rows", "100", "--files", "3", "--as", "csv", "--out", out];
    sawmill(args).ok();
    assert_eq!(crate::harness::names(out.as_ref()).len(), 3);
    let ran = sawmill(args);
    assert!(ran.code == Some(2) && ran.err.contains("--overwrite"), "{}", ran.err);
    sawmill(args.iter().chain(&["--overwrite"]).copied()).ok();
    for (more, part) in [
        (["--as", "csv"].as_slice(), "nested"),
        (["--as", "ndjson", "--compression", "zstd"].as_slice(), "--compression"),
        (["--as", "arrow", "--partition-by", "name"].as_slice(), "--partition-by"),
    ] {
        let ran = sawmill(["gen", "contacts", "--rows", "10", "--out", out].iter().chain(more).copied());
        assert!(ran.code == Some(2) && ran.err.contains(part), "{part}: {}", ran.err);
    }
    let ran = sawmill(["gen", "devices", "--rows", "100k", "--as", "ndjson", "--out", "/dev/full"]);
    assert!(ran.code == Some(1) && ran.err.contains("/dev/full"), "{}", ran.err);
}

#[test]
fn the_schema_of_specs_is_json() {
    let schema = sawmill(["gen", "schema"]).ok().json();
    assert_eq!(schema["title"], "Sawmill dataset spec");
}
