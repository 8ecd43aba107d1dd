//! `--page-headers` on column chunks that are huge, damaged, encrypted or in another file.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::Value;

use super::memory::confined;
use super::view;
use crate::harness::sawmill;
use crate::parquet_files::raw_footer;
use crate::thrift_writer::ThriftWriter;

/// The header of a data page, with a bound of `bound` bytes.
fn header(compressed: u32, bound: usize) -> Vec<u8> {
    let mut w = ThriftWriter::new();
    w.i32(1, 0);
    w.i32(2, compressed as i32);
    w.i32(3, compressed as i32);
    w.begin(5);
    w.i32(1, 7);
    w.i32(2, 0);
    w.i32(3, 3);
    w.i32(4, 3);
    if bound > 0 {
        w.begin(5);
        w.binary(5, &vec![b'x'; bound]);
        w.stop();
    }
    w.stop();
    w.stop();
    w.into_bytes()
}

/// The header of a page, and how long its body is, which is a hole.
type Page = (Vec<u8>, u32);

/// A file of one row group with a column chunk for each list of pages.
fn chunks_of(path: &Path, chunks: &[(&str, &[Page])]) {
    let mut file = File::create(path).unwrap();
    let mut at = 4;
    let mut w = ThriftWriter::new();
    w.i32(1, 1);
    w.list(2, 12, chunks.len() as u64 + 1);
    w.begin_element();
    w.binary(4, b"root");
    w.i32(5, chunks.len() as i32);
    w.stop();
    for (name, _) in chunks {
        w.begin_element();
        w.i32(1, 1);
        w.i32(3, 0);
        w.binary(4, name.as_bytes());
        w.stop();
    }
    w.i64(3, 7);
    w.list(4, 12, 1);
    w.begin_element();
    w.list(1, 12, chunks.len() as u64);
    for (name, pages) in chunks {
        let start = at;
        for (header, body) in *pages {
            file.seek(SeekFrom::Start(at)).unwrap();
            file.write_all(header).unwrap();
            at += header.len() as u64 + u64::from(*body);
        }
        let size = (at - start) as i64;
        w.begin_element();
        w.i64(2, 0);
        w.begin(3);
        w.i32(1, 1);
        w.list(2, 5, 1);
        w.integer(0);
        w.list(3, 8, 1);
        w.bytes_value(name.as_bytes());
        w.i32(4, 0);
        w.i64(5, 7 * pages.len() as i64);
        w.i64(6, size);
        w.i64(7, size);
        w.i64(9, start as i64);
        w.stop();
        w.stop();
    }
    w.i64(2, 10);
    w.i64(3, 7);
    w.stop();
    w.stop();
    let footer = w.into_bytes();
    file.set_len(at).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(&footer).unwrap();
    file.write_all(&(footer.len() as u32).to_le_bytes()).unwrap();
    file.write_all(b"PAR1").unwrap();
}

#[test]
fn a_chunk_larger_than_memory_is_shown_without_its_bodies() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("huge.parquet");
    let body = 1_500 << 20;
    let pages = vec![(header(body, 0), body); 8];
    chunks_of(&path, &[("id", &pages)]);
    let name = path.to_str().unwrap();
    let started = std::time::Instant::now();
    let json = confined(["footer", name, "--page-headers", "--json"]).ok().json();
    let shown = json["files"][0]["views"]["page_headers"][0]["pages"].as_array().unwrap();
    assert_eq!(shown.len(), 8);
    let step = u64::from(body) + pages[0].0.len() as u64;
    for (at, page) in shown.iter().enumerate() {
        assert_eq!(page["offset"], 4 + at as u64 * step);
        assert_eq!(page["compressed_bytes"], body);
    }
    let text = confined(["footer", name, "--page-headers"]).ok().out;
    assert_eq!(text.lines().filter(|line| line.contains("DATA_PAGE")).count(), 8, "{text}");
    // Reading twelve gigabytes takes longer.
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}

#[test]
fn pages_of_a_long_chunk_come_in_several_tables() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.parquet");
    chunks_of(&path, &[("id", &vec![(header(0, 0), 0); 25_000])]);
    let text = view(&path, &["--page-headers"]).ok().out;
    assert_eq!(text.lines().filter(|line| line.starts_with("column ")).count(), 3);
    assert_eq!(text.lines().filter(|line| line.starts_with("id ")).count(), 3);
    assert_eq!(text.lines().filter(|line| line.contains("DATA_PAGE")).count(), 25_000);
}

#[test]
fn a_header_longer_than_the_bound_is_an_error_that_names_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("header.parquet");
    let long = header(0, 17 << 20);
    let pages = [(header(5, 0), 5), (long, 0)];
    chunks_of(&path, &[("id", &pages), ("other", &[(header(3, 1 << 20), 3)])]);
    for args in [&["--page-headers"][..], &["--page-headers", "--json"]] {
        let ran = confined(["footer", path.to_str().unwrap()].iter().chain(args));
        // What can be read is shown.
        assert!(ran.out.contains("other") && ran.out.matches("DATA_PAGE").count() == 2, "{}", ran.out);
        let error = ran.fails(1);
        for part in
            ["at most 16777216 bytes", "header.parquet", "row group 0", "column id", "page 1, byte 26 of"]
        {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
}

#[test]
fn damaged_pages_are_errors_that_name_their_place() {
    let dir = tempfile::tempdir().unwrap();
    let shown = |name: &str, pages: &[Page]| {
        let path = dir.path().join(name);
        chunks_of(&path, &[("id", pages)]);
        view(&path, &["--page-headers"])
    };
    // A header that is none, one that ends with its chunk, and a body that extends beyond the chunk.
    for (name, bad, what) in [
        ("none", vec![0xff; 40], "expected a wire type of the compact protocol"),
        ("cut", header(0, 0)[..6].to_vec(), "expected the header of a page"),
        ("body", header(1000, 0), "expected a page within its column chunk, of which 0 bytes are left"),
    ] {
        let ran = shown(name, &[(header(5, 0), 5), (bad, 0)]);
        assert_eq!(ran.out.matches("DATA_PAGE").count(), 1, "{}", ran.out);
        let error = ran.fails(1);
        for part in [what, name, "row group 0", "column id", "page 1, byte 26 of the file"] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
    // The last body is not in the file.
    let path = dir.path().join("short");
    chunks_of(&path, &[("id", &[(header(5, 0), 5), (header(90_000, 0), 90_000)])]);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&bytes[..100], &bytes[90_040..]].concat()).unwrap();
    let error = view(&path, &["--page-headers"]).fails(1);
    assert!(
        error.contains("expected a page within its column chunk") && error.contains("page 1, byte 26"),
        "{error}"
    );
}

#[test]
fn encrypted_columns_have_no_pages_to_show() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("encrypted");
    raw_footer(&path, 2, 3, "encrypted");
    let text = view(&path, &["--page-headers", "--column-number", "1"]).ok().out;
    assert_eq!(text.matches("encrypted").count(), 2, "{text}");
    let json = view(&path, &["--page-headers", "--json", "--column-number", "1"]).ok().json();
    assert_eq!(json["files"][0]["views"]["page_headers"][0]["pages"], Value::Null);
    // A check says that it leaves them out, and misses no data where there is a footer alone.
    let (other, alone) = (dir.path().join("other"), dir.path().join("alone"));
    std::fs::copy(&path, &other).unwrap();
    let [path, other, alone] = [&path, &other, &alone].map(|path| path.to_str().unwrap());
    let text = sawmill(["footer", "check", "--pages", path, other]).out;
    assert!(text.contains(", 4 column chunks left out (encrypted or in another file): "), "{text}");
    sawmill(["footer", "extract", "--scrub", path, alone]).ok();
    let text = sawmill(["footer", "check", alone]).out;
    assert!(!text.contains("expected data within"), "{text}");
}
