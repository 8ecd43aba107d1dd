//! Opening files takes at most two reads, and errors are clear and name the file.

use std::cell::RefCell;
use std::fs;
use std::io;

use sawmill_footer::{Footer, Options, RangeReader};

use crate::equality::{assert_equal, by_parquet};
use crate::samples;

/// Bytes that record every read.
struct Witness<'a> {
    bytes: &'a [u8],
    reads: RefCell<Vec<(u64, usize)>>,
}

impl RangeReader for Witness<'_> {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.reads.borrow_mut().push((offset, buffer.len()));
        self.bytes.read_exact_at(offset, buffer)
    }
}

#[test]
fn a_footer_is_read_in_one_or_two_reads_whatever_the_hint() {
    let file = samples::write(&samples::flat(1000), samples::settings().remove(0).1);
    let metadata = samples::metadata(&file);
    let footer_len = metadata.len();
    for hint in [0, 8, 9, 1000, footer_len + 7, footer_len + 8, footer_len + 9, file.len(), file.len() * 2] {
        let witness = Witness { bytes: &file, reads: RefCell::default() };
        let footer = Footer::read(&witness, "name", &Options::new().tail_hint(hint)).unwrap();
        assert_equal(&footer, &by_parquet(metadata).unwrap());
        let reads = witness.reads.into_inner();
        assert_eq!(reads.len(), if hint < footer_len + 8 { 2 } else { 1 }, "hint {hint}");
        let read: usize = reads.iter().map(|(_, len)| len).sum();
        assert_eq!(read, hint.clamp(footer_len + 8, file.len()), "no byte is read twice");
    }
}

#[test]
fn a_file_opens_by_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.parquet");
    let file = samples::write(&samples::nested(1000), samples::settings().remove(0).1);
    fs::write(&path, &file).unwrap();
    let footer = Footer::open(&path).unwrap();
    assert_equal(&footer, &by_parquet(samples::metadata(&file)).unwrap());
    assert_eq!(footer.file_name(), path.to_str());
    assert_eq!(footer.file_len(), Some(file.len() as u64));
}

#[test]
fn errors_name_files_that_are_not_parquet_and_say_why() {
    let dir = tempfile::tempdir().unwrap();
    let file = samples::write(&samples::flat(10), samples::settings().remove(0).1);
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = file.clone();
        change(&mut bytes);
        bytes
    };
    let len = file.len();
    let cases: [(&str, Vec<u8>, &str); 8] = [
        ("empty", vec![], "found an empty one"),
        ("short", b"PAR1PAR1".to_vec(), "at least 12 bytes, found 8"),
        (
            "magic",
            changed(&|bytes| bytes[len - 1] = b'!'),
            "expected the magic `PAR1` in the last four bytes, found `PAR!`",
        ),
        ("encrypted", changed(&|bytes| bytes[len - 1] = b'E'), "found an encrypted one (PARE)"),
        ("length", changed(&|bytes| bytes[len - 8..len - 4].fill(0xff)), "found a length of 4294967295"),
        ("none", changed(&|bytes| bytes[len - 8..len - 4].fill(0)), "found a length of 0"),
        ("cut", file[..len / 2].to_vec(), "expected the magic `PAR1`"),
        ("bytes", changed(&|bytes| bytes[len - 8 - samples::metadata(&file).len()] = 0xff), "found 15"),
    ];
    for (name, bytes, expected) in cases {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let error = Footer::open(&path).unwrap_err();
        assert!(error.what().contains(expected), "{name}: {error}");
        assert!(error.place().contains(path.to_str().unwrap()), "{error}");
        assert!(!error.advice().is_empty(), "{error}");
    }
    let error = Footer::open(dir.path()).unwrap_err();
    assert!(error.what().contains("found a directory") && error.place() == dir.path().to_str().unwrap());
    let error = Footer::open(dir.path().join("nothing")).unwrap_err();
    assert!(error.place().ends_with("nothing") && error.advice().contains("name"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_fifo_is_refused_without_blocking() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped: mkfifo is not available");
        return;
    }
    let error = Footer::open(&path).unwrap_err();
    assert!(error.what().contains("found a pipe"), "{error}");
}

#[test]
fn an_error_within_the_footer_of_a_file_names_both_offsets() {
    let mut file = samples::write(&samples::flat(10), samples::settings().remove(0).1);
    let (len, footer_len) = (file.len(), samples::metadata(&file).len());
    let start = len - 8 - footer_len;
    // The first field is the version, an i32: change it to an unknown type.
    file[start] = 0x1f;
    let error = Footer::from_file_bytes(&file, &Options::new()).unwrap_err();
    assert_eq!(error.place(), format!("version, byte 1 of the footer, byte {} of the file", start + 1));
}

#[cfg(all(feature = "fast", unix, target_pointer_width = "64"))]
#[test]
fn a_mapped_footer_is_the_same_as_one_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.parquet");
    let file = samples::write(&samples::nested(1000), samples::settings().remove(0).1);
    // Footers at various distances from a page boundary.
    for padding in [0, 1, 4095, 70_000] {
        let mut padded = vec![0; padding];
        padded.extend_from_slice(&file);
        fs::write(&path, &padded).unwrap();
        // SAFETY: this test alone uses the file.
        let footer = unsafe { Footer::open_mapped(&path, &Options::new()) }.unwrap();
        assert_equal(&footer, &by_parquet(samples::metadata(&file)).unwrap());
    }
    fs::write(&path, b"").unwrap();
    // SAFETY: as above.
    let error = unsafe { Footer::open_mapped(&path, &Options::new()) }.unwrap_err();
    assert!(error.what().contains("found an empty one") && error.place().contains("data.parquet"), "{error}");
}

#[test]
fn a_footer_longer_than_allowed_is_refused_before_memory_is_taken_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sparse.parquet");
    let mut file = std::fs::File::create(&path).unwrap();
    let claimed = u32::MAX - 7;
    file.set_len(u64::from(claimed) + 4).unwrap();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).unwrap();
    std::io::Write::write_all(&mut file, &claimed.to_le_bytes()).unwrap();
    std::io::Write::write_all(&mut file, b"PAR1").unwrap();
    let error = Footer::open(&path).unwrap_err();
    assert!(
        error.what().contains(&format!("at most 1073741824 bytes, found a length of {claimed}")),
        "{error}"
    );
    assert!(error.advice().contains("--max-footer") && error.place().contains("sparse.parquet"), "{error}");
    let small = dir.path().join("small.parquet");
    std::fs::write(&small, &samples::all()[0].1).unwrap();
    let len = Footer::open(&small).unwrap().footer_len() as u64;
    Footer::open_with(&small, &Options::new().max_footer(len)).unwrap();
    assert!(Footer::open_with(&small, &Options::new().max_footer(len - 1)).is_err());
}
