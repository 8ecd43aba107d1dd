//! Removes the unfinished files of killed processes.

use std::fs;
use std::io;
use std::path::Path;

use sawmill_store::name_of_partial;

use crate::error::Error;

/// Removes the partial files of killed processes in `directory`, if `is_ours` accepts the final name. The
/// caller must hold the lock of these files.
///
/// # Errors
/// The directory cannot be read, or a file cannot be removed.
pub(crate) fn remove_leftovers(directory: &Path, is_ours: &dyn Fn(&str) -> bool) -> Result<(), Error> {
    let failed = |e: io::Error| Error::io(&e, "reading the directory", directory, None);
    let entries = match fs::read_dir(directory) {
        // A directory may be writable but not readable.
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
                return Err(Error::io(
                    &e,
                    "removing the partial file of a killed process",
                    &entry.path(),
                    None,
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sawmill_store::partial_name;

    #[test]
    fn partial_files_of_a_killed_process_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let (ours, other) = (partial_name(&at("x.parquet")), partial_name(&at("y.parquet")));
        for path in [&ours, &other, &at("x.parquet")] {
            fs::write(path, b"half").unwrap();
        }
        remove_leftovers(dir.path(), &|name| name == "x.parquet").unwrap();
        assert!(!ours.exists() && other.exists() && at("x.parquet").exists());
    }
}
