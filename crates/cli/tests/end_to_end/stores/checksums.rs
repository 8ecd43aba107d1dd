//! Bytes that change on their way from a store.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::proxy::{Fate, Proxy};
use super::s3::{S3, environment};
use crate::harness::{Ran, command};

#[test]
fn a_flipped_bit_is_asked_for_again_and_is_an_error_that_names_the_object_if_it_stays() {
    let folder = tempfile::tempdir().unwrap();
    // Digits that hardly compress.
    let text = |rows: u64| -> String {
        let digits =
            |row: u64| (0..60).map(move |at| (row * 60 + at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let rows = (0..rows).map(|row| {
            let name: String = digits(row).map(|digits| format!("{:016x}", digits ^ digits >> 29)).collect();
            format!("{row},{name}\n")
        });
        format!("id,name\n{}", rows.collect::<String>())
    };
    // One is read with one request, the other is decompressed as it arrives.
    let files = [("small.csv", text(10)), ("large.csv.gz", text(5000))];
    for (name, text) in &files {
        let path = folder.path().join(name);
        fs::write(path.with_extension(""), text).unwrap();
        match name.ends_with(".gz") {
            true => assert!(Command::new("gzip").arg(path.with_extension("")).status().unwrap().success()),
            false => fs::rename(path.with_extension(""), path).unwrap(),
        }
    }
    let Some(s3) = S3::with("data", folder.path()) else { return };
    let read = |name: &str, endpoint: &str, more: &[&str]| {
        let url = format!("s3://data/{name}");
        let args = [&["convert", &url, "--as", "csv", "--out", "-"][..], more].concat();
        Ran::from(environment(command(&args), endpoint).output().unwrap())
    };
    let always = Proxy::before(&s3.endpoint, |_, _| Fate::Flipped);
    for (name, text) in files {
        let was_flipped = AtomicBool::new(false);
        let once = Proxy::before(&s3.endpoint, move |sent, _| match sent.method == "GET" {
            true if !was_flipped.swap(true, Relaxed) => Fate::Flipped,
            _ => Fate::Forwarded,
        });
        let out = read(name, &once.endpoint, &[]).ok().out;
        assert!(out == text, "{name}: {} bytes", out.len());
        let error = read(name, &always.endpoint, &[]).fails(1);
        assert!(error.contains("do not have the") && error.contains(&format!("s3://data/{name}")), "{error}");
        assert!(error.contains("--store checksums=no"), "{error}");
    }
    let out = read("small.csv", &always.endpoint, &["--store", "checksums=no"]).out;
    assert!(out.starts_with("id,name\n0,"), "{out}");
}
