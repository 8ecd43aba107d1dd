//! The names of files that are not whole: `NAME.RUN.partial`, where RUN belongs to one process and one
//! file alone, so that two runs never write into the same file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::Error;

/// What follows the name and the run.
const SUFFIX: &str = ".partial";

/// A name for the file at `path` while it is not whole. Each call gives another.
pub(crate) fn partial_name(path: &Path) -> PathBuf {
    // The time tells apart processes of the same number on two machines that share the directory.
    static RUN: LazyLock<String> = LazyLock::new(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("{:x}-{:x}", std::process::id(), now.as_nanos())
    });
    static FILES: AtomicU64 = AtomicU64::new(0);
    let mut partial = path.to_owned().into_os_string();
    partial.push(format!(".{}-{:x}{SUFFIX}", *RUN, FILES.fetch_add(1, Relaxed)));
    PathBuf::from(partial)
}

/// The name that a partial file was to get, `None` for the name of any other file.
pub(crate) fn name_of_partial(name: &str) -> Option<&str> {
    let name = name.strip_suffix(SUFFIX)?;
    let is_run = |run: &str| {
        let mut parts = run.split('-');
        let hexadecimal =
            |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_hexdigit());
        parts.by_ref().take(3).filter(|part| hexadecimal(part)).count() == 3 && parts.next().is_none()
    };
    // Earlier versions named no run.
    Some(name.rsplit_once('.').filter(|(_, run)| is_run(run)).map_or(name, |(whole, _)| whole))
}

/// Removes the partial files that killed processes left in `directory` of files whose names `is_ours`
/// knows. The caller holds the lock under which they are written.
///
/// # Errors
/// When the directory cannot be read, or a file cannot be removed.
pub(crate) fn remove_leftovers(directory: &Path, is_ours: &dyn Fn(&str) -> bool) -> Result<(), Error> {
    let failed = |e: io::Error| Error::io(&e, "reading the directory", directory, None);
    let entries = match fs::read_dir(directory) {
        // A directory may be written to that cannot be read.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if !name_of_partial(&name.to_string_lossy()).is_some_and(is_ours) {
            continue;
        }
        match fs::remove_file(entry.path()) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io(&e, "removing what a killed process left", &entry.path(), None));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_names_differ_and_say_what_they_were_to_become() {
        let (a, b) = (partial_name(Path::new("x.parquet")), partial_name(Path::new("x.parquet")));
        assert_ne!(a, b);
        for name in [a, b, "x.parquet.partial".into()] {
            assert_eq!(name_of_partial(&name.to_string_lossy()), Some("x.parquet"), "{name:?}");
        }
        assert_eq!(name_of_partial("x.parquet"), None);
        assert_eq!(name_of_partial("x.a-b.partial"), Some("x.a-b"));
        assert_eq!(name_of_partial("x.1-2-3-4.partial"), Some("x.1-2-3-4"));
    }

    #[test]
    fn what_a_killed_process_left_of_ones_own_files_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let (ours, older, other) = (partial_name(&at("x.parquet")), at("x.parquet.partial"), at("y.partial"));
        for path in [&ours, &older, &other, &at("x.parquet")] {
            fs::write(path, b"half").unwrap();
        }
        remove_leftovers(dir.path(), &|name| name == "x.parquet").unwrap();
        assert!(!ours.exists() && !older.exists() && other.exists() && at("x.parquet").exists());
    }
}
