//! Bytes that change on their way from a store.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::proxy::{Fate, Proxy};
use super::s3::{S3, environment};
use crate::harness::{Ran, command};

#[test]
fn a_flipped_bit_is_asked_for_again_and_is_an_error_that_names_the_object_if_it_stays() {
    let folder = tempfile::tempdir().unwrap();
    let text = |rows: usize| -> String {
        let rows = (0..rows).map(|row| format!("{row},{}\n", "x".repeat(1000)));
        format!("id,name\n{}", rows.collect::<String>())
    };
    // One is read with one request, the other in pieces.
    for (name, rows) in [("small.csv", 10), ("large.csv", 5000)] {
        fs::write(folder.path().join(name), text(rows)).unwrap();
    }
    let Some(s3) = S3::with("data", folder.path()) else { return };
    let read = |name: &str, endpoint: &str, more: &[&str]| {
        let url = format!("s3://data/{name}");
        let args = [&["convert", &url, "--as", "csv", "--out", "-"][..], more].concat();
        Ran::from(environment(command(&args), endpoint).output().unwrap())
    };
    let always = Proxy::before(&s3.endpoint, |_, _| Fate::Flipped);
    for name in ["small.csv", "large.csv"] {
        let was_flipped = AtomicBool::new(false);
        let once = Proxy::before(&s3.endpoint, move |sent, _| match sent.method == "GET" {
            true if !was_flipped.swap(true, Relaxed) => Fate::Flipped,
            _ => Fate::Forwarded,
        });
        let out = read(name, &once.endpoint, &[]).ok().out;
        assert!(out == fs::read_to_string(folder.path().join(name)).unwrap(), "{name}: {} bytes", out.len());
        let error = read(name, &always.endpoint, &[]).fails(1);
        assert!(error.contains("do not have the") && error.contains(&format!("s3://data/{name}")), "{error}");
        assert!(error.contains("--store checksums=no"), "{error}");
    }
    let out = read("small.csv", &always.endpoint, &["--store", "checksums=no"]).out;
    assert!(out.starts_with("id,name\n0,xxx"), "{out}");
}
