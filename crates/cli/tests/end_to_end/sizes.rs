//! Sizes in bytes mean the same in every option.

use crate::harness::sawmill;

/// What `load --explain` understands by a size; the target is a CrateDB that it does not ask.
fn batch_bytes(file: &str, size: &str) -> serde_json::Value {
    let load =
        ["load", file, "--to", "crate://localhost:1", "--table", "t", "--row-key", "--explain", "--json"];
    let ran = sawmill(load.into_iter().chain(["--batch-bytes", size])).ok();
    ran.json()["batch_bytes"].clone()
}

#[test]
fn load_gen_footer_and_benchmarks_parse_a_size_the_same_way() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.parquet");
    let file = file.to_str().unwrap();
    sawmill(["gen", "contacts", "--rows", "100", "--out", file]).ok();
    for (size, bytes) in [
        ("1MB", 1_000_000),
        ("1 MB", 1_000_000),
        ("1.5MB", 1_500_000),
        ("1MiB", 1 << 20),
        ("1M", 1 << 20),
        ("1.5M", 3 << 19),
        ("512k", 512 << 10),
        ("512kB", 512_000),
        ("65536", 65_536),
    ] {
        assert_eq!(batch_bytes(file, size), bytes, "{size}");
        let page = directory.path().join("page.parquet");
        let page = page.to_str().unwrap();
        sawmill(["gen", "contacts", "--rows", "9", "--page-size", size, "--overwrite", "--out", page]).ok();
        sawmill(["footer", file, "--max-footer", size, "--tail-hint", size]).ok();
    }
    // The footer is longer than 500 bytes, and shorter than 100 kB.
    sawmill(["footer", file, "--max-footer", "0.1MB"]).ok();
    assert!(sawmill(["footer", file, "--max-footer", "0.5kB"]).fails(1).contains("--max-footer"));
    let sweep = ["bench", "footer", file, "--runs", "2", "--tail-hint", "1k..4KiB*2", "--json"];
    let points = sawmill(sweep).ok().json();
    let cases = points["cases"].as_array().unwrap();
    let hints: Vec<_> = cases.iter().map(|case| case["parameters"]["tail_hint"].clone()).collect();
    assert_eq!(hints, ["1024", "2048", "4096"]);
}

#[test]
fn every_option_rejects_a_malformed_size_with_an_example() {
    let options: [&[&str]; 6] = [
        &["load", "a", "--to", "postgres://localhost/db", "--table", "t", "--batch-bytes"],
        &["gen", "contacts", "--file-size"],
        &["gen", "contacts", "--row-group-size"],
        &["gen", "contacts", "--page-size"],
        &["footer", "a", "--max-footer"],
        &["footer", "a", "--tail-hint"],
    ];
    for option in options {
        for size in
            ["-1", "-1MB", "0.5", "1 M B", "20EiB", "99999999TB", "18446744073709551616", "many", "1,000"]
        {
            let ran = sawmill(option.iter().chain([&size]));
            assert_eq!(ran.code, Some(2), "{option:?} {size}: {}", ran.err);
            assert!(ran.err.contains("64MiB") && ran.err.contains(size), "{option:?} {size}: {}", ran.err);
        }
        let ran = sawmill(option.iter().chain([&"0"]));
        assert!(ran.code == Some(2) && ran.err.contains("1 byte or more"), "{option:?}: {}", ran.err);
    }
}
