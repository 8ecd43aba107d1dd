//! What killed processes left of files that are not whole.

use std::fs;
use std::io;
use std::path::Path;

use sawmill_store::name_of_partial;

use crate::error::Error;

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
    use sawmill_store::partial_name;

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
