//! Compressed text, and text in other encodings, has the same records as the plain file.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use sawmill_source::{Control, DelimitedFiles, DelimitedOptions, Dialect, Result, Source};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/text").join(name)
}

fn opened(path: &Path, options: &DelimitedOptions) -> Result<DelimitedFiles> {
    let (cancel, profile) = (AtomicBool::new(false), sawmill_profile::Profile::new());
    let phase = profile.phase("open");
    DelimitedFiles::open(&[path], options, &Control::new(&cancel, &phase))
}

fn rows(files: &DelimitedFiles) -> Vec<RecordBatch> {
    let mut reader = files.reader(1000);
    let mut batches = Vec::new();
    for unit in files.plan(1 << 14).concat() {
        reader.start(&unit).unwrap();
        while let Some(batch) = reader.next_batch().unwrap() {
            batches.push(batch);
        }
    }
    batches
}

#[test]
fn files_that_other_programs_compressed_have_the_records_of_the_plain_file() {
    let plain = opened(&fixture("drinks.csv"), &DelimitedOptions::default()).unwrap();
    for extension in ["gz", "zst", "bz2", "xz", "lz4"] {
        // Two members or frames each, cut within the file.
        let path = fixture(&format!("drinks.csv.{extension}"));
        let files = opened(&path, &DelimitedOptions::default()).unwrap();
        assert_eq!(rows(&files), rows(&plain), "{extension}");
        assert_eq!(files.files()[0].bytes, path.metadata().unwrap().len());
        // The first bytes tell, not the name.
        let directory = tempfile::tempdir().unwrap();
        let named = directory.path().join("drinks.csv");
        std::fs::copy(&path, &named).unwrap();
        assert_eq!(rows(&opened(&named, &DelimitedOptions::default()).unwrap()), rows(&plain), "{extension}");
        // A file that was cut off, or damaged.
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&named, &bytes[..bytes.len() - 3]).unwrap();
        let error = opened(&named, &DelimitedOptions::default()).err().expect(extension).to_string();
        assert!(error.contains("decompressing") && error.contains("drinks.csv"), "{error}");
        // Written to while it is read.
        let files = opened(&path, &DelimitedOptions::default()).unwrap();
        assert!(files.check_unchanged().is_ok());
    }
}

#[test]
fn text_in_utf32_is_named_with_the_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wide.csv");
    for mark in ["\u{feff}", ""] {
        let text = format!("{mark}a,b\n1,2\n");
        let wide: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
        for bytes in [wide.clone(), zstd::encode_all(&wide[..], 1).unwrap()] {
            std::fs::write(&path, bytes).unwrap();
            let error = opened(&path, &DelimitedOptions::default()).err().unwrap().to_string();
            assert!(error.contains("UTF-32LE") && error.contains("iconv -f UTF-32LE -t UTF-8"), "{error}");
            assert!(error.contains("wide.csv") && !error.contains("--text-encoding"), "{error}");
        }
    }
}

#[test]
fn a_large_compressed_file_is_read_in_ranges_by_all_threads() {
    let mut text = "id,note\n".to_owned();
    (0..200_000).for_each(|id| text += &format!("{id},\"note, {}\n\"\n", id % 97));
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("a.csv"), &text).unwrap();
    std::fs::write(at("b.csv.zst"), zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
    let plain = opened(&at("a.csv"), &DelimitedOptions::default()).unwrap();
    let coded = opened(&at("b.csv.zst"), &DelimitedOptions::default()).unwrap();
    assert_eq!(coded.rows(), 200_000);
    assert_eq!(rows(&coded), rows(&plain));
    assert_eq!(coded.files()[0].fingerprint, plain.files()[0].fingerprint, "of the text");
    std::fs::write(at("b.csv.zst"), b"other").unwrap();
    assert!(coded.check_unchanged().unwrap_err().to_string().contains("changed"));
}

#[test]
fn text_in_other_encodings_is_decoded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.csv");
    let dialect = |encoding: &str| DelimitedOptions {
        dialect: Dialect { encoding: Some(encoding.to_owned()), ..Dialect::default() },
        ..DelimitedOptions::default()
    };
    std::fs::write(&path, b"id,name\n1,caf\xe9\n").unwrap();
    let name = |options: &DelimitedOptions| {
        let files = opened(&path, options)?;
        Ok::<_, sawmill_source::Error>(rows(&files)[0].column(1).as_string_view().value(0).to_owned())
    };
    assert_eq!(name(&dialect("latin1")).unwrap(), "caf\u{e9}");
    let error = opened(&path, &DelimitedOptions::default()).err().unwrap().to_string();
    assert!(error.contains("not UTF-8") && error.contains("--text-encoding"), "{error}");
    assert!(name(&dialect("klingon")).unwrap_err().to_string().contains("does not read the encoding"));
    for big in [false, true] {
        let units = "\u{feff}id,name\r\n1,th\u{e9}\r\n".encode_utf16();
        let bytes = units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() });
        std::fs::write(&path, bytes.collect::<Vec<u8>>()).unwrap();
        assert_eq!(name(&DelimitedOptions::default()).unwrap(), "th\u{e9}");
    }
    // Compressed text in another encoding.
    std::fs::write(&path, zstd::encode_all(&b"id,name\n1,caf\xe9\n"[..], 1).unwrap()).unwrap();
    assert_eq!(name(&dialect("windows-1252")).unwrap(), "caf\u{e9}");
}
