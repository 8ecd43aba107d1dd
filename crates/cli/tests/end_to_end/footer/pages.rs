//! `--check --pages`, on files of the generator.

use std::fs;

use sawmill_footer::{ChunkPages, Footer};

use super::view;
use crate::harness::sawmill;

#[test]
fn pages_are_compared_with_the_checksums_that_the_generator_writes() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    sawmill(["gen", "contacts", "--rows", "20k", "--files", "2", "--page-checksums", "--out", out]).ok();
    let path = dir.path().join("contacts-00000.parquet");
    let text = view(&path, &["--check", "--pages"]).ok().out;
    assert!(text.contains("pages read, the checksums of"), "{text}");
    let text = sawmill(["footer", out, "--check", "--pages"]).ok().out;
    assert!(text.starts_with("2 files checked, ") && text.ends_with(": nothing wrong\n"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    let footer = Footer::open(&path).unwrap();
    let chunk = footer.column_chunk(0, 1).unwrap();
    let file = fs::File::open(&path).unwrap();
    let page = ChunkPages::new(&file, chunk.byte_range()).next_page(|_| {}).unwrap().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[page.offset as usize + page.header_len + 3] ^= 0x40;
    fs::write(&path, bytes).unwrap();
    let ran = view(&path, &["--check", "--pages"]);
    let text = ran.out.clone();
    ran.fails(1);
    assert!(text.contains("row_groups[0].columns[1], pages") && text.contains("checksum"), "{text}");
    view(&path, &["--check"]).ok();
    let ran = sawmill(["footer", out, "--check", "--pages"]);
    let lines: Vec<String> = ran.out.lines().map(str::to_owned).collect();
    ran.fails(1);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].contains("contacts-00000.parquet: ") && lines[1].ends_with("1 thing is wrong in 1 of them")
    );
    view(&path, &["--pages"]).fails(2);
}

#[test]
fn files_of_the_generator_have_no_checksums_unless_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    super::contacts(dir.path(), "1k", "1");
    let text = view(&dir.path().join("contacts-00000.parquet"), &["--check", "--pages"]).ok().out;
    assert!(text.contains("none of them with a checksum"), "{text}");
}
