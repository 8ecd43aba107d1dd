//! `sawmill footer`.

use std::fs;

use crate::harness::{Ran, sawmill};

fn footer(path: &std::path::Path) -> Ran {
    sawmill(["footer".as_ref(), path.as_os_str()])
}

#[test]
fn a_table_for_people_and_figures_for_programs() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    sawmill(["gen", "contacts", "--rows", "300k", "--files", "2", "--out", out]).ok();
    let text = sawmill(["footer", out]).ok().out;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert!(lines[0].starts_with("file") && lines[0].contains("row groups"), "{text}");
    assert!(lines[2].contains("contacts-00000.parquet") && lines[2].contains("150,000"), "{text}");
    assert!(lines[4].starts_with("2 files") && lines[4].contains("300,000"), "{text}");
    let json = sawmill(["footer", out, "--json"]).ok().json();
    assert_eq!(json["files"][1]["rows"], 150_000);
    assert_eq!(json["files"][1]["row_groups"], 2);
    assert_eq!(json["files"][1]["columns"], 3);
    let size = fs::metadata(dir.path().join("contacts-00001.parquet")).unwrap().len();
    let compressed = json["files"][1]["compressed_bytes"].as_u64().unwrap();
    assert!(compressed < size && compressed > size / 2);
    assert!(json["files"][1]["created_by"].as_str().unwrap().starts_with("sawmill"));
}

#[test]
fn what_is_no_whole_parquet_file_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let good = dir.path().join("good.parquet");
    sawmill(["gen", "contacts", "--rows", "10", "--out", good.to_str().unwrap()]).ok();
    let bytes = fs::read(&good).unwrap();
    for (name, content) in [
        ("empty", &[][..]),
        ("text", b"id,name\n1,Ann\n2,Bob\n"),
        ("truncated", &bytes[..bytes.len() - 5]),
        ("tail", &bytes[bytes.len() - 12..]),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        let error = footer(&path).fails(1);
        assert!(error.contains(name), "{error}");
    }
    for missing in [dir.path().join("missing"), dir.path().join("no/such/dir.parquet")] {
        assert!(footer(&missing).fails(1).contains("o such file"), "{}", missing.display());
    }
    let empty = dir.path().join("empty-directory");
    fs::create_dir(&empty).unwrap();
    assert!(footer(&empty).fails(1).contains("no .parquet files"));
    // One bad file among good ones does not hide them.
    let mixed = sawmill(["footer".as_ref(), good.as_os_str(), dir.path().join("text").as_os_str()]);
    assert!(mixed.out.contains("good.parquet"));
    assert!(mixed.fails(1).contains("text"));
}
