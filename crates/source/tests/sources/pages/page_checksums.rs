//! Every decoder rejects pages whose bytes do not match their checksums, unless the check is off.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use sawmill_footer::{ChunkPages, Footer, PageType};
use sawmill_generator::{Compression, Dataset, FileOptions, Job, Layout, Output, PageVersion, write};
use sawmill_profile::Profile;
use sawmill_source::{Condition, Control, ParquetFiles, Result, Source};

const SPEC: &str = r#"
    name = "sums"
    [[fields]]
    name = "id"
    type = "int64"
    values = { uniform = { min = 0, max = 1000000 } }
    [[fields]]
    name = "kind"
    type = "string"
    nulls = 0.1
    values = { weights = { a = 1, b = 2, c = 3 } }
    [[fields]]
    name = "tags"
    type = "list"
    length = { weights = { 1 = 1, 2 = 2 } }
    [fields.element]
    type = "int32"
    values = { uniform = { min = 0, max = 9 } }
"#;

fn file(directory: &Path, version: PageVersion, compression: Compression) -> PathBuf {
    let dataset = Dataset::from_toml(SPEC).unwrap();
    let mut options = FileOptions::default();
    (options.page_version, options.compression, options.page_checksums) = (version, compression, true);
    options.page_bytes = 4000;
    let profile = Profile::new();
    let phase = profile.phase("generate");
    let (layout, cancel) = (Layout::new(5000, 1).unwrap(), AtomicBool::new(false));
    let output = Output::Directory(directory.into());
    write(&dataset, &Job { options, ..Job::new(&layout, &output, &phase, &cancel) }).unwrap();
    let mut files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|extension| extension == "parquet")).unwrap()
}

fn rows_of(source: &dyn Source) -> Result<usize> {
    let mut reader = source.reader(128);
    let mut rows = 0;
    for unit in source.plan(1500).iter().flatten() {
        reader.start(unit)?;
        while let Some(batch) = reader.next_batch()? {
            rows += batch.num_rows();
        }
    }
    Ok(rows)
}

fn filtered(files: &ParquetFiles, condition: Condition) -> Result<usize> {
    let (cancel, profile) = (AtomicBool::new(false), Profile::new());
    let phase = profile.phase("read");
    rows_of(&files.filtered(condition, &Control::new(&cancel, &phase))?)
}

/// Returns the ranges of all page bodies, with their column, their position in its chunk and their type.
fn pages(path: &Path) -> Vec<(String, usize, PageType, std::ops::Range<usize>)> {
    let (footer, file) = (Footer::open(path).unwrap(), std::fs::File::open(path).unwrap());
    let mut found = Vec::new();
    for chunk in footer.row_groups().flat_map(|group| group.columns()) {
        let mut pages = ChunkPages::new(&file, chunk.byte_range());
        while let Some(page) = pages.next_page(|_| {}).unwrap() {
            assert!(page.crc.is_some());
            let start = page.offset as usize + page.header_len;
            found.push((
                chunk.path(),
                page.index,
                page.page_type,
                start..start + page.compressed_size as usize,
            ));
        }
    }
    found
}

#[test]
fn one_flipped_bit_in_any_page_is_an_error_that_names_file_row_group_column_and_page() {
    for version in [PageVersion::V1, PageVersion::V2] {
        for compression in ["none", "snappy"] {
            let directory = tempfile::tempdir().unwrap();
            let path = file(directory.path(), version, compression.parse().unwrap());
            let good = std::fs::read(&path).unwrap();
            assert_eq!(rows_of(&ParquetFiles::open(&[&path]).unwrap()).unwrap(), 5000);
            let pages = pages(&path);
            assert!(pages.iter().any(|(.., kind, _)| *kind == PageType::DictionaryPage));
            for (column, index, _, body) in pages.into_iter().filter(|(.., body)| !body.is_empty()) {
                for at in [body.start, body.end - 1] {
                    let mut bytes = good.clone();
                    bytes[at] ^= 0x10;
                    std::fs::write(&path, bytes).unwrap();
                    let files = ParquetFiles::open(&[&path]).unwrap();
                    let error = rows_of(&files).unwrap_err().to_string();
                    for part in
                        [".parquet", "row group 0", column.as_str(), &format!("page {index} ("), "checksum"]
                    {
                        assert!(error.contains(part), "{part} in {error}");
                    }
                    // Other columns can still be read.
                    let others = if column == "id" { "kind" } else { "id" };
                    let files = ParquetFiles::open(&[&path]).unwrap().select(&[others.into()], &[]).unwrap();
                    assert_eq!(rows_of(&files).unwrap(), 5000);
                }
            }
        }
    }
}

#[test]
fn a_column_of_a_condition_is_checked_though_it_is_not_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), PageVersion::V1, Compression::default());
    let body = pages(&path).into_iter().find(|(column, ..)| column == "id").unwrap().3;
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[body.start + 40] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let open = || ParquetFiles::open(&[&path]).unwrap();
    let files = open().select(&["kind".into()], &[]).unwrap();
    let error = filtered(&files, "id >= 500000".parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("\"id\"") && error.contains("page 0"), "{error}");
    let files = open().compare_page_checksums(false);
    assert_eq!(rows_of(&files).unwrap(), 5000);
    assert!(filtered(&files, "id >= 500000".parse().unwrap()).unwrap() > 0);
}
