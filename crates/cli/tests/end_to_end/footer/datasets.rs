//! `footer diff`, `--plan-merge` and `--page-headers`.

use std::fs;

use serde_json::Value;

use super::{contacts, peer, view};
use crate::harness::sawmill;
use crate::parquet_files::{many_types, of_other_schema};

#[test]
fn diff_shows_where_schema_layout_and_statistics_differ() {
    let dir = tempfile::tempdir().unwrap();
    let made = |name: &str, args: &[&str]| {
        let path = dir.path().join(name);
        let out = path.to_str().unwrap().to_owned();
        sawmill(
            ["gen", "contacts", "--rows", "2000", "--out", &out].iter().copied().chain(args.iter().copied()),
        )
        .ok();
        out
    };
    let (a, same) = (made("a.parquet", &[]), made("same.parquet", &[]));
    let zstd = made("zstd.parquet", &["--compression", "zstd"]);
    let other = made("other.parquet", &["--seed", "7"]);
    assert_eq!(sawmill(["footer", "diff", &a, &same]).ok().out, "no differences\n");
    let ran = sawmill(["footer", "diff", &a, &zstd]);
    assert!(ran.out.contains("codec") && ran.out.contains("ZSTD"), "{}", ran.out);
    assert!(!ran.out.contains("statistics"), "{}", ran.out);
    assert!(ran.fails(1).contains("the footers differ in "));
    sawmill(["footer", "diff", &a, &zstd, "--parts", "schema,statistics"]).ok();
    let ran = sawmill(["footer", "diff", &a, &other, "--parts", "statistics", "--column", "name", "--json"]);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    let differences = json["differences"].as_array().unwrap();
    assert!(
        differences.iter().any(|one| one["what"] == "nulls" && one["place"] == "name, row group 0"),
        "{json}"
    );
    assert!(differences.iter().all(|one| one["part"] == "statistics"), "{json}");
    let schema = dir.path().join("schema.parquet");
    of_other_schema(&schema);
    let ran = sawmill(["footer", "diff", &a, schema.to_str().unwrap(), "--parts", "schema"]);
    assert!(
        ran.out.lines().any(|line| line.starts_with("schema  id ") && line.contains("INT64")),
        "{}",
        ran.out
    );
    ran.fails(1);
    assert!(sawmill(["footer", "diff", &a, "nowhere.parquet"]).fails(1).contains("nowhere.parquet"));
}

#[test]
fn small_files_of_a_directory_and_schema_are_planned_to_be_merged() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "8000", "8");
    let other = dir.path().join("other");
    fs::create_dir(&other).unwrap();
    of_other_schema(&other.join("one.parquet"));
    let directory = dir.path().to_str().unwrap();
    let text = sawmill(["footer", directory, "--plan-merge"]).ok().out;
    assert!(text.contains("9 files would become 2: 7 fewer files to open"), "{text}");
    let json = sawmill(["footer", directory, "--plan-merge", "--json"]).ok().json();
    let groups = json["merge"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "{json}");
    assert_eq!(groups[0]["files"].as_array().unwrap().len(), 8);
    assert_eq!(groups[0]["rows"], 8000);
    assert_eq!(json["kept"]["number_of_files"], 1);
    // No group exceeds the target, and files of more than half of it stay.
    let bytes = fs::metadata(dir.path().join("contacts-00000.parquet")).unwrap().len();
    let target = format!("--plan-merge={}", bytes * 3 + bytes / 2);
    let json = sawmill(["footer", directory, &target, "--json"]).ok().json();
    for group in json["merge"].as_array().unwrap() {
        assert!(group["file_bytes"].as_u64().unwrap() <= bytes * 3 + bytes / 2, "{json}");
    }
    assert_eq!(json["merge"].as_array().unwrap().len(), 3, "{json}");
    let text = sawmill(["footer", directory, &format!("--plan-merge={bytes}")]).ok().out;
    assert!(text.starts_with("nothing to merge"), "{text}");
    assert_eq!(sawmill(["footer", directory, "--plan-merge", "--chunks"]).code, Some(2));
    // A file that is named twice is one file.
    let link = dir.path().join("link.parquet");
    std::os::unix::fs::symlink(dir.path().join("contacts-00000.parquet"), &link).unwrap();
    let again = dir.path().join("contacts-00001.parquet");
    let text = sawmill(["footer", directory, again.to_str().unwrap(), "--plan-merge"]).ok().out;
    assert!(text.contains("9 files would become 2: 7 fewer files to open"), "{text}");
    fs::remove_file(link).unwrap();
    let error = sawmill(["footer", "--plan-merge", "20kB", directory]).fails(2);
    assert!(error.contains("write --plan-merge=20kB"), "{error}");
    // A footer alone has no rows to merge.
    let (first, alone) = (dir.path().join("contacts-00000.parquet"), dir.path().join("alone.parquet"));
    sawmill(["footer", "extract", first.to_str().unwrap(), alone.to_str().unwrap()]).ok();
    let text = sawmill(["footer", directory, "--plan-merge"]).ok().out;
    assert!(text.starts_with("left out 1 file that is only a footer\n"), "{text}");
    assert!(text.contains("9 files would become 2: 7 fewer files to open"), "{text}");
    let json = sawmill(["footer", directory, "--plan-merge", "--json"]).ok().json();
    assert_eq!((&json["files"], &json["without_data"]), (&9.into(), &1.into()));
}

#[test]
fn page_headers_show_every_page_and_dictionary() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("types.parquet");
    many_types(&path);
    let json = view(&path, &["--page-headers", "--json"]).ok().json();
    let chunks = json["files"][0]["views"]["page_headers"].as_array().unwrap();
    let expected = peer(&path);
    let theirs = expected.row_groups().iter().flat_map(|group| group.columns());
    assert_eq!(chunks.len(), theirs.clone().count());
    for (chunk, theirs) in chunks.iter().zip(theirs) {
        let pages = chunk["pages"].as_array().unwrap();
        let bytes = |page: &Value| {
            page["header_bytes"].as_i64().unwrap() + page["compressed_bytes"].as_i64().unwrap()
        };
        assert_eq!(pages.iter().map(bytes).sum::<i64>(), theirs.compressed_size(), "{chunk}");
        let dictionary = pages.iter().find(|page| page["page_type"] == "DICTIONARY_PAGE");
        assert_eq!(
            dictionary.map(|page| page["offset"].as_i64().unwrap()),
            theirs.dictionary_page_offset(),
            "{chunk}"
        );
        let data = pages.iter().filter(|page| page["page_type"] != "DICTIONARY_PAGE");
        assert_eq!(data.map(|page| page["num_values"].as_i64().unwrap()).sum::<i64>(), theirs.num_values());
    }
    let text = view(&path, &["--page-headers", "--column", "text"]).ok().out;
    assert!(text.contains("DATA_PAGE"), "{text}");
}
