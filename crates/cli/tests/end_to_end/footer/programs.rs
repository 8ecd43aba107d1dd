//! Output for programs, selections and whole datasets.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;

use serde_json::Value;

use super::{contacts, peer, view};
use crate::harness::{command, sawmill};
use crate::parquet_files::{many_columns, many_types, of_other_schema};

#[test]
fn a_chunk_a_line_as_json_and_as_csv() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("types.parquet");
    many_types(&path);
    contacts(dir.path(), "200k", "2");
    let expected = peer(&path);
    let chunks = expected.num_row_groups() * expected.row_group(0).num_columns();
    let ndjson = view(&path, &["--ndjson"]).ok().out;
    let lines: Vec<Value> = ndjson.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), chunks);
    for (line, chunk) in lines.iter().zip(expected.row_groups().iter().flat_map(|group| group.columns())) {
        assert_eq!(line["file"], path.to_str().unwrap());
        assert_eq!(line["path"], chunk.column_path().string());
        assert_eq!(line["compressed_bytes"], chunk.compressed_size());
        let nulls = chunk.statistics().and_then(|statistics| statistics.null_count_opt());
        assert_eq!(line["statistics"]["null_count"].as_u64(), nulls);
        assert_eq!(line["unencoded_byte_array_data_bytes"].as_i64(), chunk.unencoded_byte_array_data_bytes());
        let histogram = chunk.definition_level_histogram().map(|histogram| histogram.values().to_vec());
        assert_eq!(line["definition_level_histogram"], serde_json::json!(histogram));
        // The crate keeps which encodings data pages have, and not how many pages.
        let pages = line["encoding_stats"].as_array().into_iter().flatten();
        let data = pages.filter(|one| one["page_type"].as_str().unwrap().starts_with("DATA_PAGE"));
        let found: BTreeSet<String> = data.map(|one| one["encoding"].as_str().unwrap().to_owned()).collect();
        let theirs = chunk.page_encoding_stats_mask().map(|mask| mask.encodings().map(|one| one.to_string()));
        assert_eq!(found, theirs.into_iter().flatten().collect(), "{line}");
    }
    let rows =
        expected.row_groups().iter().flat_map(|group| group.columns().iter().map(|_| group.num_rows()));
    assert!(lines.iter().map(|line| line["row_group_rows"].as_i64().unwrap()).eq(rows));
    let csv = view(&path, &["--csv"]).ok().out;
    let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert_eq!(csv.lines().count(), 1 + chunks);
    for (line, json) in csv.lines().skip(1).zip(&lines) {
        let cells = cells(line);
        assert_eq!(cells.len(), head.len(), "{line}");
        let cell = |name: &str| cells[head.iter().position(|head| *head == name).unwrap()].as_str();
        assert_eq!(cell("path"), json["path"].as_str().unwrap());
        assert_eq!(cell("num_values"), json["num_values"].to_string());
        assert_eq!(cell("row_group_rows"), json["row_group_rows"].to_string());
        assert_eq!(
            cell("min"),
            json["statistics"]["min"].as_str().map_or_else(
                || match &json["statistics"]["min"] {
                    Value::Null => String::new(),
                    Value::Number(number) if number.is_f64() => format!("{:?}", number.as_f64().unwrap()),
                    value => value.to_string(),
                },
                str::to_owned
            )
        );
    }
    // Several files follow one another under one head.
    let all = sawmill(["footer", dir.path().to_str().unwrap(), "--csv"]).ok().out;
    assert_eq!(all.lines().filter(|line| line.starts_with("file,")).count(), 1);
    assert_eq!(all.lines().count(), 1 + chunks + 2 * 3);
}

/// The cells of a line of CSV.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    cells.push(cell);
    cells
}

#[test]
fn a_selection_shows_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "300k", "1");
    let path = dir.path().join("contacts-00000.parquet");
    let paths = |args: &[&str]| -> Vec<(u64, String)> {
        let json = view(&path, &[&["--chunks", "--json"], args].concat()).ok().json();
        let chunks = json["files"][0]["views"]["columns"].as_array().unwrap();
        let key = |chunk: &Value| {
            (chunk["row_group"].as_u64().unwrap(), chunk["path"].as_str().unwrap().to_owned())
        };
        chunks.iter().map(key).collect()
    };
    let (name, kind) = ("name".to_owned(), "phones.list.element.phone_type".to_owned());
    assert_eq!(paths(&["--column", "name", "--row-group", "1..3"]), [(1, name.clone()), (2, name.clone())]);
    assert_eq!(paths(&["--column", "**.phone_*", "--row-group", "0"]), [(0, kind)]);
    assert_eq!(paths(&["--column", "phones", "--column", "n*"]).len(), 9);
    assert_eq!(paths(&["--row-group", "7.."]), []);
    let json = view(&path, &["--row-group", "0", "--json"]).ok().json();
    assert_eq!(json["files"][0]["rows"], 131_072);
    assert!(view(&path, &["--column", "nam"]).fails(1).contains("phones"));
    assert_eq!(view(&path, &["--row-group", "2..1"]).code, Some(2));
    // One that is not there is missed.
    for args in
        [&["--row-group", "7"][..], &["--row-group", "7", "--chunks"], &["--row-group", "3..5", "--csv"]]
    {
        assert!(view(&path, args).fails(1).contains("found 3 row groups in the file, 0 to 2"), "{args:?}");
    }
    assert_eq!(view(&path, &["--row-group", "7..", "--chunks"]).ok().out, "no row groups\n");
    // By other means than names and numbers of row groups.
    assert_eq!(paths(&["--column-number", "0", "--row-group", "1"]), [(1, name.clone())]);
    assert_eq!(paths(&["--column-number", "0,1", "--column", "name"]).len(), 6);
    assert!(view(&path, &["--column-number", "3"]).fails(1).contains("below 3, found 3"));
    let last = [(2, name.clone())];
    assert_eq!(paths(&["--column", "name", "--row-group", "rows=..50k"]), last);
    assert_eq!(paths(&["--row-group", "rows=131072"]).len(), 6);
    let whole = view(&path, &["--row-groups", "--json"]).ok().json();
    let start = |group: usize| &whole["files"][0]["views"]["row_groups"][group]["first_byte"];
    assert_eq!(paths(&["--column", "name", "--row-group", &format!("bytes={}..", start(2))]), last);
    assert_eq!(paths(&["--row-group", &format!("bytes=0..{}", start(2))]).len(), 6);
    assert_eq!(view(&path, &["--row-group", "1", "--row-group", "rows=1.."]).code, Some(2));
    assert_eq!(view(&path, &["--csv", "--schema"]).code, Some(2));
    assert_eq!(view(&path, &["--csv", "--json"]).code, Some(2));
}

#[test]
fn what_is_unusual_in_a_dataset_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "20k", "2");
    fs::create_dir(dir.path().join("more")).unwrap();
    of_other_schema(&dir.path().join("more/other.parquet"));
    let shown = sawmill(["footer", dir.path().to_str().unwrap()]).ok().out;
    for expected in [
        "2 schemas:",
        "3 columns in 2 files",
        "without phones.list.element.number",
        "with id (required INT64)",
        "name (required BYTE_ARRAY (STRING) instead of optional BYTE_ARRAY (STRING))",
        "1 row group too small",
        "row group 0 of",
        "columns without bounds",
        "id in 2 of 2 chunks",
    ] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
    let json = sawmill(["footer", dir.path().to_str().unwrap(), "--json"]).ok().json();
    let dataset = &json["dataset"];
    assert_eq!(dataset["files"], 3);
    assert_eq!(dataset["rows"], 20_020);
    assert_eq!(dataset["schemas"][1]["files"], 1);
    assert!(dataset["schemas"][1]["first_file"].as_str().unwrap().ends_with("other.parquet"));
    assert_eq!(dataset["schemas"][1]["difference"]["added"]["count"], 1);
    assert_eq!(dataset["row_groups_too_small"]["count"], 1);
    let bare = dataset["columns_without_bounds"].as_array().unwrap();
    assert!(bare.iter().any(|column| column["path"] == "id" && column["without"] == 2), "{bare:?}");
}

#[test]
fn patterns_in_quotes_and_directories_name_files() {
    let dir = tempfile::tempdir().unwrap();
    for sub in ["a", "a/b", "c"] {
        contacts(&dir.path().join(sub), "10", "2");
    }
    let files = |pattern: &str| {
        let json = view(&dir.path().join(pattern), &["--json"]).ok().json();
        json["files"].as_array().unwrap().len()
    };
    assert_eq!(files("a/*.parquet"), 2);
    assert_eq!(files("a"), 4);
    assert_eq!(files("**/*-00001.parquet"), 3);
    assert_eq!(files("[ac]/contacts-0000?.parquet"), 4);
    assert_eq!(files("**"), 6);
    assert!(view(&dir.path().join("*.orc"), &[]).fails(1).contains("no files match"));
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wide.parquet");
    many_columns(&path, 5_000);
    for args in [&["--dump"][..], &["--json", "--chunks"], &["--ndjson"], &["--chunks"]] {
        let mut child = command(["footer", path.to_str().unwrap()].iter().chain(args))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(141), "{args:?}");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn thousands_of_files_come_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "2000", "1000");
    let json = sawmill(["footer", dir.path().to_str().unwrap(), "--json"]).ok().json();
    let files = json["files"].as_array().unwrap();
    assert_eq!(files.len(), 1000);
    for (i, file) in files.iter().enumerate() {
        assert!(file["file"].as_str().unwrap().ends_with(&format!("contacts-{i:05}.parquet")));
    }
    assert_eq!(json["dataset"]["row_groups_too_small"]["count"], 1000);
    assert_eq!(json["dataset"]["row_groups_too_small"]["first"].as_array().unwrap().len(), 10);
}

#[test]
fn wide_files_for_the_benchmark_have_bounds_and_page_indexes() {
    let dir = tempfile::tempdir().unwrap();
    for (dataset, columns) in
        [("wide:4", 4), ("wide:300", 300), ("wide:4:string", 4), ("wide:300:string", 300)]
    {
        let path = dir.path().join(format!("{}.parquet", dataset.replace(':', "-")));
        let out = path.to_str().unwrap();
        sawmill(["gen", dataset, "--rows", "48", "--row-group-rows", "16", "--out", out]).ok();
        let meta = peer(&path);
        assert_eq!((meta.num_row_groups(), meta.row_group(0).num_columns()), (3, columns));
        for chunk in meta.row_groups().iter().flat_map(|group| group.columns()) {
            assert!(chunk.statistics().unwrap().min_bytes_opt().is_some());
            assert!(chunk.offset_index_offset().is_some() && chunk.column_index_offset().is_some());
        }
        view(&path, &["--check"]).ok();
    }
    sawmill(["gen", "wide:0", "--out", dir.path().to_str().unwrap()]).fails(2);
}
