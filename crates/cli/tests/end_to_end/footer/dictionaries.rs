//! `footer dictionary`: the values of dictionaries in files by several writers.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::harness::sawmill;
use crate::parquet_files::many_types;

fn foreign(name: &str) -> String {
    format!("{}/../../fixtures/foreign/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// What the command shows of a file as JSON.
fn dictionaries(file: &str, more: &[&str]) -> Vec<Value> {
    let arguments = [&["footer", "dictionary", file, "--json"], more].concat();
    sawmill(arguments).ok().json().as_array().expect("a list of dictionaries").clone()
}

/// The distinct values of a flat column in each row group, as rows have them.
fn distinct(file: &str, column: &str, row_group: u64) -> BTreeSet<String> {
    let group = row_group.to_string();
    let rows = sawmill(["footer", "cat", file, "--column", column, "--row-group", &group]).ok().out;
    let value = |line: &str| serde_json::from_str::<Value>(line).unwrap()[column].clone();
    rows.lines().map(value).filter(|value| !value.is_null()).map(|value| value.to_string()).collect()
}

#[test]
fn dictionaries_of_every_writer_hold_the_distinct_values_of_their_rows() {
    let mut compared = 0;
    for name in ["pyarrow_plain", "duckdb_plain", "duckdb_row_groups", "polars_plain", "fastparquet_plain"] {
        let file = foreign(&format!("{name}.parquet"));
        for dictionary in dictionaries(&file, &[]) {
            let column = dictionary["path"].as_str().unwrap();
            let found: Vec<&Value> = dictionary["values"].as_array().unwrap().iter().collect();
            assert_eq!(dictionary["num_values"], found.len(), "{name}, {column}");
            // Rows show bytes, dates and instants in another notation than bounds.
            if found
                .iter()
                .all(|value| value.is_i64() || value.as_str().is_some_and(|t| !t.starts_with("0x")))
            {
                let rows = distinct(&file, column, dictionary["row_group"].as_u64().unwrap());
                let is_date = |text: &String| text.contains(':') || text.matches('-').count() > 1;
                if !rows.iter().any(is_date) {
                    let own: BTreeSet<String> = found.iter().map(|value| value.to_string()).collect();
                    assert!(rows.is_subset(&own), "{name}, {column}: {rows:?} in {own:?}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared >= 5, "{compared} dictionaries were compared");
}

#[test]
fn values_are_shown_as_bounds_are_and_limited_by_n() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("types.parquet");
    many_types(&path);
    let file = path.to_str().unwrap();
    let text = sawmill(["footer", "dictionary", file, "--column", "text", "--row-group", "0"]).ok().out;
    assert!(text.contains("row group 0, text: 3 values") && text.contains("\"zoë\""), "{text}");
    let text =
        sawmill(["footer", "dictionary", file, "--column", "text", "-n", "1", "--row-group", "0"]).ok().out;
    assert!(text.contains("... 2 more"), "{text}");
    let date = &dictionaries(file, &["--column", "date", "--row-group", "1"])[0];
    assert_eq!(date["values"], serde_json::json!(["1970-01-01"]));
    let error = sawmill(["footer", "dictionary", file, "--row-group", "9"]).fails(1);
    assert!(error.contains("row group"), "{error}");
}

#[test]
fn a_column_of_a_map_is_read_alone() {
    let file = foreign("pyarrow_nested.parquet");
    let all = dictionaries(&file, &[]);
    let nested: Vec<&str> =
        all.iter().filter_map(|of| of["path"].as_str()).filter(|p| p.contains('.')).collect();
    assert!(!nested.is_empty(), "the file has nested columns");
    for path in nested {
        assert!(!dictionaries(&file, &["--column", path]).is_empty(), "{path}");
    }
}

#[test]
fn a_dictionary_that_claims_more_bytes_than_there_is_memory_for_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("types.parquet");
    many_types(&path);
    let file = path.to_str().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let pages =
        sawmill(["footer", file, "--page-headers", "--column", "text", "--row-group", "0", "--json"]).ok();
    let pages = pages.json();
    let page = &pages["files"][0]["views"]["page_headers"][0]["pages"][0];
    assert_eq!(page["page_type"], "DICTIONARY_PAGE");
    // The header starts with the type (15 04), then the uncompressed size (15 ..).
    let at = page["offset"].as_u64().unwrap() as usize;
    assert_eq!(bytes[at..at + 3], [0x15, 0x04, 0x15]);
    let old = bytes[at + 3..].iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    // 1 GiB, as a zigzag varint.
    bytes.splice(at + 3..at + 3 + old, [0x80, 0x80, 0x80, 0x80, 0x08]);
    std::fs::write(&path, bytes).unwrap();
    let error = sawmill(["footer", "dictionary", file, "--column", "text", "--row-group", "0"]).fails(1);
    assert!(error.contains("expected at most 268435456 bytes, found one that claims 1073741824"), "{error}");
}
