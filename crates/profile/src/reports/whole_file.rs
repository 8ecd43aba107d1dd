//! Writes files completely or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::error::{Error, Result};

/// Writes a file so that a reader sees either all of it or the previous contents, also after a crash of the
/// machine. If the path is a link, its target is replaced.
///
/// # Errors
/// The file cannot be written.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |error: io::Error| {
        Error::new(
            format!("the file cannot be written: {error}"),
            path.display().to_string(),
            "check that its folder exists, is writable and is not full",
        )
    };
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let path = place.as_path();
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    // Write directly to pipes and devices: no other file can replace them.
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        return fs::write(path, bytes).map_err(failed);
    }
    durably(&beside, path, bytes).map_err(|error| {
        // The unfinished file is useless.
        let _ = fs::remove_file(&beside);
        failed(error)
    })
}

/// Puts the bytes on disk beside the path, then the name.
fn durably(beside: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(beside, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A folder that may be written to but not read cannot be synced; the name is right in any case.
    File::open(folder).and_then(|folder| folder.sync_all()).or(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let error = write_whole(Path::new("/no/such/folder/a.json"), b"x").unwrap_err();
        assert_eq!(error.place(), "/no/such/folder/a.json");
    }

    #[test]
    #[cfg(unix)]
    fn through_a_link_the_file_is_replaced_and_the_link_stays() {
        let folder = std::env::temp_dir().join(format!("sawmill-whole-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (file, link) = (folder.join("a.json"), folder.join("link.json"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink("a.json", &link).unwrap();
        write_whole(&link, b"new").unwrap();
        let (read, names) = (fs::read_to_string(&file), fs::read_dir(&folder).unwrap().count());
        let is_link = link.symlink_metadata().is_ok_and(|there| there.is_symlink());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((read.unwrap().as_str(), is_link, names), ("new", true, 2));
    }
}
