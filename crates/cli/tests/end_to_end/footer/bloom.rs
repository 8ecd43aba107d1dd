//! `footer bloom`: values in the Bloom filters of files by several writers.

use crate::harness::sawmill;
use crate::parquet_files::many_types;

/// The row groups that may hold a value, and those whose filters rule it out.
fn look_up(file: &str, column: &str, value: &str) -> (Vec<u64>, Vec<u64>) {
    let found =
        sawmill(["footer", "bloom", file, "--column", column, "--value", value, "--json"]).ok().json();
    let groups = |name: &str| found[0][name].as_array().unwrap().iter().filter_map(|n| n.as_u64()).collect();
    assert_eq!((found[0]["column"].as_str(), found[0]["value"].as_str()), (Some(column), Some(value)));
    (groups("may_contain"), groups("absent"))
}

#[test]
fn values_of_every_type_are_found_in_the_row_groups_that_hold_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("types.parquet");
    many_types(&path);
    let file = path.to_str().unwrap();
    // Three rows in the first row group and one in the second; each value, and one that no row has.
    for (column, first, second, neither) in [
        ("int", "-5", "1", "2000000000"),
        ("unsigned", "18446744073709551615", "1", "17"),
        ("double", "1e300", "0", "0.3"),
        ("text", "zoë", "n", "nowhere"),
        ("date", "1969-12-31", "1970-01-01", "2000-01-01"),
        ("instant", "2024-02-29T12:34:56Z", "1970-01-01 00:00:00", "2001-01-01T00:00:00Z"),
        ("time", "12:34:56.789", "00:00:00.005", "23:00:00"),
        ("decimal", "1234567890123456789012345.67", "0", "-0.04"),
        ("binary", "0xdeadbeef", "0x01", "0x0203"),
    ] {
        let (may, absent) = look_up(file, column, first);
        assert!(may.contains(&0) && may.len() + absent.len() == 2, "{column} = {first}: {may:?}");
        let (may, _) = look_up(file, column, second);
        assert!(may.contains(&1), "{column} = {second}: {may:?}");
        assert_eq!(look_up(file, column, neither), (vec![], vec![0, 1]), "{column} = {neither}");
    }
}

#[test]
fn filters_of_duckdb_rule_values_out_and_columns_without_one_are_named() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/foreign/duckdb_plain.parquet");
    assert!(look_up(file, "name", "name 1").0.contains(&0));
    assert_eq!(look_up(file, "name", "name of no row").0, [] as [u64; 0]);
    let text = sawmill(["footer", "bloom", file, "--column", "name", "--value", "name 1"]).ok().out;
    assert!(text.contains("duckdb_plain.parquet: name = name 1: perhaps in"), "{text}");
    let text = sawmill(["footer", "bloom", file, "--column", "id", "--value", "5"]).ok().out;
    assert!(text.contains("id = 5: no Bloom filter"), "{text}");
}

#[test]
fn a_value_that_the_column_cannot_hold_is_an_error_with_what_was_expected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("types.parquet");
    many_types(&path);
    let file = path.to_str().unwrap();
    for (column, value, expected) in [
        ("int", "3000000000", "a 32-bit integer"),
        ("int", "seven", "an integer"),
        ("unsigned", "-1", "an unsigned 64-bit integer"),
        ("date", "yesterday", "a date such as 2024-02-29"),
        ("time", "12:34:56.7890001", "a time such as 12:30:00, in the column's unit"),
        ("decimal", "1.234", "a decimal of the column's type"),
        ("bool", "true", "a column of a type that filters support"),
    ] {
        let error = sawmill(["footer", "bloom", file, "--column", column, "--value", value]).fails(1);
        assert!(
            error.contains(&format!("column {column}: expected {expected}, found \"{value}\"")),
            "{error}"
        );
    }
    let error = sawmill(["footer", "bloom", file, "--column", "*", "--value", "1"]).fails(1);
    assert!(error.contains("expected --column to name one column, found 12"), "{error}");
    let error = sawmill(["footer", "bloom", file, "--column", "nowhere", "--value", "1"]).fails(1);
    assert!(error.contains("nowhere"), "{error}");
}

#[test]
fn a_filter_of_another_length_than_the_footer_states_answers_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("types.parquet");
    many_types(&path);
    let file = path.to_str().unwrap();
    let columns = sawmill(["footer", file, "--chunks", "--column", "text", "--row-group", "0", "--json"]);
    let chunk = columns.ok().json()["files"][0]["views"]["columns"][0].clone();
    let at = chunk["bloom_filter_offset"].as_u64().unwrap() as usize;
    assert!(chunk["bloom_filter_length"].as_u64().is_some(), "{chunk}");
    // The header starts with the number of bytes of the filter, 32 as a zigzag varint.
    let whole = std::fs::read(&path).unwrap();
    assert_eq!(whole[at..at + 2], [0x15, 0x40]);
    for claimed in [0x00, 0x20, 0x42] {
        let mut bytes = whole.clone();
        bytes[at + 1] = claimed;
        std::fs::write(&path, bytes).unwrap();
        let error = sawmill(["footer", "bloom", file, "--column", "text", "--value", "n"]).fails(1);
        for part in ["reading a Bloom filter failed", "types.parquet, row group 0, column text"] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
}

#[test]
fn a_damaged_filter_is_an_error_that_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("types.parquet");
    many_types(&path);
    let columns =
        sawmill(["footer", path.to_str().unwrap(), "--chunks", "--column", "text", "--json"]).ok().json();
    let text = columns.to_string();
    let at = text.split("\"bloom_filter_offset\":").nth(1).unwrap();
    let at: usize = at[..at.find(|c: char| !c.is_ascii_digit()).unwrap()].parse().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[at..at + 8].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let error =
        sawmill(["footer", "bloom", path.to_str().unwrap(), "--column", "text", "--value", "n"]).fails(1);
    assert!(error.contains("reading a Bloom filter failed") && error.contains("types.parquet"), "{error}");
}
