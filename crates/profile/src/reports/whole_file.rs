//! Files that are there whole or not at all.

use std::path::Path;

use crate::error::{Error, Result};

/// Writes a file so that a reader sees all of it or what was there before.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |error: std::io::Error| {
        Error::new(
            format!("the file cannot be written: {error}"),
            path.display().to_string(),
            "check that its folder is there, can be written and is not full",
        )
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    // Pipes and devices are written to as they are: no other file can take their place.
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        return std::fs::write(path, bytes).map_err(failed);
    }
    std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, path)).map_err(|error| {
        // What was begun is of no use to anybody.
        let _ = std::fs::remove_file(&beside);
        failed(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_leaves_nothing_behind() {
        let error = write_whole(Path::new("/no/such/folder/a.json"), b"x").unwrap_err();
        assert_eq!(error.place(), "/no/such/folder/a.json");
    }
}
