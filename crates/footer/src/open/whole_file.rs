//! A file that is written whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// What the names of files end with that are not whole.
const SUFFIX: &str = ".partial";

/// Writes `bytes` into a file of a name that no other process and no other call uses, puts it on disk, gives
/// it the name `path` and puts that on disk. Removes what killed processes left of the same file.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    remove_abandoned(directory, path)?;
    let (mut file, partial) = create(path)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&partial, path))
        .and_then(|()| sync(directory));
    written.inspect_err(|_| {
        // The first error tells what went wrong; what is left of the file may be gone already.
        let _ = fs::remove_file(&partial);
    })
}

/// A new file beside `path`, locked: one that is not locked was left by a process that was killed.
fn create(path: &Path) -> io::Result<(File, PathBuf)> {
    static FILES: AtomicU64 = AtomicU64::new(0);
    loop {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let (process, number) = (std::process::id(), FILES.fetch_add(1, Relaxed));
        let mut partial = path.as_os_str().to_owned();
        partial.push(format!(".{process:x}-{now:x}-{number:x}{SUFFIX}"));
        let partial = PathBuf::from(partial);
        let file = OpenOptions::new().write(true).create_new(true).open(&partial)?;
        // Without locks nothing is lost: then nothing is taken for abandoned either.
        let _ = file.lock();
        // Another process may have taken it for abandoned between the two calls.
        if partial.exists() {
            return Ok((file, partial));
        }
    }
}

fn remove_abandoned(directory: &Path, path: &Path) -> io::Result<()> {
    let mut begin = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    begin.push('.');
    let entries = match fs::read_dir(directory) {
        // A directory may be written to that cannot be read.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let run = name.strip_prefix(&begin).and_then(|rest| rest.strip_suffix(SUFFIX));
        let is_run = |run: &str| run.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
        if !run.is_some_and(is_run) {
            continue;
        }
        let Ok(file) = OpenOptions::new().write(true).open(entry.path()) else { continue };
        if file.try_lock().is_ok() {
            // Another process may have been faster.
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// Puts the names in a directory on disk.
fn sync(directory: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        // Elsewhere directories cannot be opened.
        return Ok(());
    }
    match File::open(directory).and_then(|open| open.sync_all()) {
        // File systems that do not know it keep names by themselves; a directory may be written to that
        // cannot be read.
        Err(e) => match e.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied => {
                Ok(())
            }
            _ => Err(e),
        },
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_write_the_same_file_leave_one_of_their_contents_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.index");
        fs::write(directory.path().join("a.index.1-2-3.partial"), b"left by a killed process").unwrap();
        std::thread::scope(|scope| {
            for byte in 0..4u8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..20 {
                        write(path, &vec![byte; 100_000]).unwrap();
                    }
                });
            }
        });
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 100_000);
        assert!(bytes.iter().all(|byte| *byte == bytes[0]));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
