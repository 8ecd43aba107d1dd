//! Writes files completely or not at all.

use std::path::Path;

use crate::error::{Error, Result};

/// Writes a file so that a reader sees either all of it or the previous contents.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |error: std::io::Error| {
        Error::new(
            format!("the file cannot be written: {error}"),
            path.display().to_string(),
            "check that its folder exists, is writable and is not full",
        )
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    // Write directly to pipes and devices: no other file can replace them.
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        return std::fs::write(path, bytes).map_err(failed);
    }
    std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, path)).map_err(|error| {
        // The unfinished file is useless.
        let _ = std::fs::remove_file(&beside);
        failed(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let error = write_whole(Path::new("/no/such/folder/a.json"), b"x").unwrap_err();
        assert_eq!(error.place(), "/no/such/folder/a.json");
    }
}
