//! Writes a file completely or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// The suffix of incomplete files' names.
const SUFFIX: &str = ".partial";

/// Writes `bytes` to a file with a unique name, syncs it, renames it to `path` and syncs the directory.
/// Removes what killed processes left behind for the same `path`.
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
        // Report the first error; the file may already be gone.
        let _ = fs::remove_file(&partial);
    })
}

/// Creates a locked file beside `path`: an unlocked one was abandoned by a killed process.
fn create(path: &Path) -> io::Result<(File, PathBuf)> {
    static FILES: AtomicU64 = AtomicU64::new(0);
    loop {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let (process, number) = (std::process::id(), FILES.fetch_add(1, Relaxed));
        let mut partial = path.as_os_str().to_owned();
        partial.push(format!(".{process:x}-{now:x}-{number:x}{SUFFIX}"));
        let partial = PathBuf::from(partial);
        let file = OpenOptions::new().write(true).create_new(true).open(&partial)?;
        // Without locks nothing is lost: no file is then considered abandoned either.
        let _ = file.lock();
        // Another process may have considered it abandoned between the two calls.
        if partial.exists() {
            return Ok((file, partial));
        }
    }
}

fn remove_abandoned(directory: &Path, path: &Path) -> io::Result<()> {
    let mut begin = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    begin.push('.');
    let entries = match fs::read_dir(directory) {
        // A directory may be writable but not readable.
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
            // Another process may have removed it already.
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// Syncs the entries of a directory.
fn sync(directory: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        // Other systems cannot open directories.
        return Ok(());
    }
    match File::open(directory).and_then(|open| open.sync_all()) {
        // File systems without directory sync keep names by themselves; a directory may be writable but not
        // readable.
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
    fn threads_writing_the_same_file_leave_one_complete_version() {
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
