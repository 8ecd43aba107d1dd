//! Files that ask for more memory than there is: an error that names them, and not the end of the process.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;

use crate::harness::{Ran, command};
use crate::thrift_writer::ThriftWriter;

/// The address space of a run, and what a file claims: more than that, but less than the limits of footers.
const ADDRESSES: u64 = 768 << 20;
const CLAIMED: u32 = 900 << 20;

/// Runs `sawmill` with an address space of [`ADDRESSES`] bytes.
pub(super) fn confined<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Ran {
    let mut command = command(args);
    let limit = libc::rlimit { rlim_cur: ADDRESSES, rlim_max: ADDRESSES };
    // SAFETY: setrlimit(2) is async-signal-safe, and reads what the closure owns.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_AS, &raw const limit) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let output = command.output().expect("the sawmill binary starts");
    Ran::from(output)
}

#[track_caller]
fn rejected_for_memory(ran: Ran, file: &Path) -> String {
    let error = ran.fails(1);
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(error.contains("expected memory for") && error.contains(name), "{error}");
    assert!(error.contains("give the process more memory"), "{error}");
    error
}

/// A file of holes between `start` and its last bytes, which say that the footer has `footer_len` bytes.
fn sparse(path: &Path, start: &[u8], footer_len: u32) {
    let mut file = File::create(path).unwrap();
    file.seek(SeekFrom::Start(4)).unwrap();
    file.write_all(start).unwrap();
    file.set_len(u64::from(footer_len) + 4).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(&footer_len.to_le_bytes()).unwrap();
    file.write_all(b"PAR1").unwrap();
}

/// The start of a footer of one column, up to the list of row groups.
fn one_column() -> ThriftWriter {
    let mut w = ThriftWriter::new();
    w.i32(1, 1);
    w.list(2, 12, 2);
    w.begin_element();
    w.binary(4, b"root");
    w.i32(5, 1);
    w.stop();
    w.begin_element();
    w.i32(1, 1);
    w.i32(3, 0);
    w.binary(4, b"id");
    w.stop();
    w.i64(3, 1);
    w
}

#[test]
fn a_footer_that_does_not_fit_into_memory_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.parquet");
    sparse(&path, b"", CLAIMED);
    let name = path.to_str().unwrap();
    for args in [&[][..], &["--json"], &["--check"], &["--tail-hint", "900MiB"]] {
        let error = rejected_for_memory(confined(["footer", name].iter().chain(args)), &path);
        assert!(error.contains("943718"), "{error}");
    }
    // Beside a file that can be read, which is shown.
    let good = dir.path().join("good.parquet");
    crate::parquet_files::many_columns(&good, 3);
    let ran = confined(["footer", name, good.to_str().unwrap()]);
    assert!(ran.out.contains("good.parquet"), "{}", ran.out);
    rejected_for_memory(ran, &path);
    let load = ["load", name, "--to", "postgres://localhost:1/db", "--table", "t"];
    rejected_for_memory(confined(load), &path);
}

#[test]
fn a_list_of_row_groups_that_does_not_fit_into_memory_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("groups.parquet");
    let len: u32 = 200 << 20;
    let mut w = one_column();
    // As many as `len` bytes might hold; each takes 32 bytes of memory.
    w.list(4, 12, u64::from(len) / 5 - 100);
    sparse(&path, w.bytes(), len);
    rejected_for_memory(confined(["footer", path.to_str().unwrap()]), &path);
    let load = ["load", path.to_str().unwrap(), "--to", "postgres://localhost:1/db", "--table", "t"];
    rejected_for_memory(confined(load), &path);
}

#[test]
fn page_indexes_that_do_not_fit_into_memory_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("indexes.parquet");
    let mut w = one_column();
    w.list(4, 12, 1);
    w.begin_element();
    w.list(1, 12, 1);
    w.begin_element();
    w.i64(2, 0);
    w.begin(3);
    w.i32(1, 1);
    w.list(2, 5, 1);
    w.integer(0);
    w.list(3, 8, 1);
    w.bytes_value(b"id");
    w.i32(4, 0);
    w.i64(5, 1);
    w.i64(6, 10);
    w.i64(7, 10);
    w.i64(9, 4);
    w.stop();
    w.i64(4, 100);
    w.i32(5, CLAIMED as i32);
    w.i64(6, 100);
    w.i32(7, CLAIMED as i32);
    w.stop();
    w.i64(2, 10);
    w.i64(3, 1);
    w.stop();
    w.stop();
    let footer = w.into_bytes();
    let mut file = File::create(&path).unwrap();
    file.set_len(2 * u64::from(CLAIMED)).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(&footer).unwrap();
    file.write_all(&(footer.len() as u32).to_le_bytes()).unwrap();
    file.write_all(b"PAR1").unwrap();
    let error = rejected_for_memory(confined(["footer", path.to_str().unwrap(), "--data-pages"]), &path);
    assert!(error.contains("row_groups[0].columns[0]"), "{error}");
}

#[test]
fn loads_and_verifications_have_the_limit_of_footers_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.parquet");
    let name = path.to_str().unwrap();
    sparse(&path, b"", CLAIMED);
    for sub in ["load", "verify"] {
        let run = |limit: &str| {
            command([sub, name, "--to", "postgres://localhost:1/db", "--table", "t", "--max-footer", limit])
        };
        let error = Ran::from(run("1MB").output().unwrap()).fails(1);
        assert!(error.contains("at most 1000000 bytes, found a length of 943718400"), "{error}");
        assert!(error.contains("long.parquet") && error.contains("--max-footer"), "{error}");
    }
}
