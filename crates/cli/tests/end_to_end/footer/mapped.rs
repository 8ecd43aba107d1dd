//! Mapped footers.
#![cfg(all(unix, target_pointer_width = "64"))]

use std::fs;

use super::view;
use crate::harness::sawmill;
use crate::parquet_files::many_types;

#[test]
fn mapped_footers_say_what_read_ones_say() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("types.parquet");
    many_types(&path);
    for args in [&["--ndjson"][..], &["--schema"], &["--data-pages"], &["--check"]] {
        let mapped = view(&path, &[args, &["--mapped"]].concat()).ok().out;
        assert_eq!(mapped, view(&path, args).ok().out);
    }
    fs::write(dir.path().join("empty.parquet"), "").unwrap();
    let error = sawmill(["footer", dir.path().to_str().unwrap(), "--mapped"]).fails(1);
    assert!(error.contains("empty.parquet"), "{error}");
}
