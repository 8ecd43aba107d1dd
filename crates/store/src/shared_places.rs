//! Files and folders where other users may write, such as `/tmp`: their links are not followed, their pipes
//! are not waited for, and their folders are not used.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Opens the regular file at `path`, which has no other name, without following a link in its last part and without
/// waiting for a pipe.
/// A file that it makes is readable for its owner alone.
///
/// # Errors
/// The file cannot be opened, or a link, a pipe or something else has its name.
pub fn open(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    let in_the_way =
        || io::Error::other("a link, a pipe or a device has its name, which another user may have made");
    how.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32).mode(0o600);
    let file = match how.open(path) {
        // Opening a pipe without a reader, or a link, fails with its own errors.
        Err(_) if path.symlink_metadata().is_ok_and(|there| !there.is_file()) => return Err(in_the_way()),
        opened => opened?,
    };
    let there = file.metadata()?;
    // Its other name may be a file of ours.
    if there.is_file() && there.nlink() <= 1 { Ok(file) } else { Err(in_the_way()) }
}

/// Whether this is a folder, not a link to one, that belongs to this user and that only this user may write to.
///
/// # Errors
/// The folder cannot be looked at.
pub fn is_own_folder(path: &Path) -> io::Result<bool> {
    let there = path.symlink_metadata()?;
    let own = rustix::process::geteuid().as_raw();
    Ok(there.is_dir() && there.uid() == own && there.mode() & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{DirBuilderExt, symlink};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn links_and_pipes_are_neither_followed_nor_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("victim"), "precious").unwrap();
        symlink(at("victim"), at("link")).unwrap();
        symlink(at("new"), at("dangling")).unwrap();
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        fs::hard_link(at("victim"), at("other name")).unwrap();
        for name in ["link", "dangling", "pipe", "other name"] {
            for reads in [false, true] {
                let mut how = OpenOptions::new();
                how.read(reads).write(!reads).create(!reads).truncate(false);
                let error = open(&at(name), &mut how).unwrap_err().to_string();
                assert!(error.contains("has its name"), "{name}: {error}");
            }
        }
        assert!(fs::read_to_string(at("victim")).unwrap() == "precious" && !at("new").exists());
        let made = open(&at("own"), OpenOptions::new().write(true).create(true)).unwrap();
        assert_eq!(made.metadata().unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_folder_that_others_may_write_to_or_a_link_to_one_is_not_our_own() {
        let dir = tempfile::tempdir().unwrap();
        let (own, open, link) = (dir.path().join("own"), dir.path().join("open"), dir.path().join("link"));
        for folder in [&own, &open] {
            fs::DirBuilder::new().mode(0o700).create(folder).unwrap();
        }
        fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        symlink(&own, &link).unwrap();
        let is_own = [&own, &open, &link].map(|path| is_own_folder(path).unwrap());
        assert_eq!(is_own, [true, false, false]);
        assert!(is_own_folder(&dir.path().join("none")).is_err());
    }
}
