//! The cache that a download is installed to: chosen, locked, and never left with half a version.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::maven::{Builds, ZONKY};
use super::{DownloadProgress, INSTALL, archive};
use crate::housekeeping::account::Account;
use crate::{Binaries, Error, Search};

/// Any release of the newest major version that Zonky builds for both Linux and macOS. The major version
/// is fixed, so that a demo does not change servers overnight.
const MAJOR: u32 = 18;

/// The prefix of incomplete folders.
const STAGING: &str = ".staging-";

pub(crate) fn into_cache(
    caches: &[PathBuf],
    progress: &mut dyn FnMut(DownloadProgress),
) -> Result<Binaries, Error> {
    let account = Account::for_server()?;
    let cache = usable_cache(caches, &account)?;
    let failed = |doing: &str, cause: io::Error| Error::io(doing, cause).at_path(&cache).advise(INSTALL);
    let lock = File::create(cache.join(".lock")).map_err(|e| failed("cannot lock the cache", e))?;
    lock.lock().map_err(|e| failed("cannot lock the cache", e))?;
    // Another process may have downloaded it while this one waited for the lock.
    let in_cache = Search { caches: vec![cache.clone()], ..Search::default() };
    if let Some(found) = in_cache.find()? {
        return Ok(found);
    }
    remove_staging(&cache);
    progress(DownloadProgress::Resolving);
    let builds = Builds::of_this_system(ZONKY);
    let version = builds.newest(MAJOR).map_err(failed_download)?;
    progress(DownloadProgress::Downloading { version: version.clone() });
    let archive = builds.archive(&version).map_err(failed_download)?;
    progress(DownloadProgress::Extracting { version: version.clone(), bytes: archive.len() as u64 });
    let found = install(&cache, &version, &archive, &account)?;
    progress(DownloadProgress::Done {
        version: found.version().to_owned(),
        bin_dir: found.bin_dir().to_owned(),
    });
    Ok(found)
}

/// Extracts an archive, tests its programs and moves them to their place in the cache.
fn install(cache: &Path, version: &str, archive: &[u8], account: &Account) -> Result<Binaries, Error> {
    let failed = |doing: &str, cause: io::Error| Error::io(doing, cause).at_path(cache).advise(INSTALL);
    let staging = tempfile::Builder::new()
        .prefix(STAGING)
        .tempdir_in(cache)
        .map_err(|e| failed("cannot extract PostgreSQL", e))?;
    if account.is_switched() {
        fs::set_permissions(staging.path(), Permissions::from_mode(0o755))
            .map_err(|e| failed("cannot open PostgreSQL to the server's account", e))?;
    }
    let extracted = staging.path().join("extracted");
    archive::extract(archive, &extracted).map_err(|e| failed("cannot extract PostgreSQL", e))?;
    if account.is_switched() {
        open_up(&extracted).map_err(|e| failed("cannot open PostgreSQL to the server's account", e))?;
    }
    // Test it before installing: on a system with an incompatible C library it would not run and must
    // never be found in the cache.
    Binaries::check(&extracted.join("bin"), account).map_err(|error| error.advise(INSTALL))?;
    let place = cache.join(version);
    if place.exists() {
        // The existing installation did not run, or it would have been found.
        fs::remove_dir_all(&place).map_err(|e| failed("cannot replace a broken PostgreSQL", e))?;
    }
    fs::rename(&extracted, &place).map_err(|e| failed("cannot move PostgreSQL to the cache", e))?;
    Binaries::check(&place.join("bin"), account)
}

/// The first cache that can be created and that the server's account can enter.
fn usable_cache(caches: &[PathBuf], account: &Account) -> Result<PathBuf, Error> {
    let mut why_not = Error::new("PostgreSQL was not found, and no cache is available to download it to");
    for cache in caches {
        match create_enterable(cache, account) {
            Ok(true) => return Ok(cache.clone()),
            Ok(false) => {
                why_not = Error::new(format!(
                    "PostgreSQL was not found, and {} cannot enter the cache to run a downloaded one",
                    account.name
                ))
                .at_path(cache);
            }
            Err(cause) => {
                why_not = Error::io("PostgreSQL was not found, and the cache cannot be created", cause)
                    .at_path(cache);
            }
        }
    }
    Err(why_not.advise(format!("set XDG_CACHE_HOME to a folder for downloads, or {INSTALL}")))
}

/// Creates a folder and its parents, unless the account could not enter it afterwards.
fn create_enterable(folder: &Path, account: &Account) -> io::Result<bool> {
    if folder.is_dir() {
        return Ok(account.can_enter(folder));
    }
    if let Some(parent) = folder.parent()
        && !create_enterable(parent, account)?
    {
        return Ok(false);
    }
    match fs::create_dir(folder) {
        // Overrides the umask: the contents of the cache are not secret.
        Ok(()) if account.is_switched() => fs::set_permissions(folder, Permissions::from_mode(0o755))?,
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    Ok(account.can_enter(folder))
}

/// Makes the extracted files readable for everyone and executable where they are for their owner,
/// overriding the umask.
fn open_up(path: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_symlink() {
        return Ok(());
    }
    let mode = metadata.permissions().mode();
    let run = if metadata.is_dir() || mode & 0o100 != 0 { 0o111 } else { 0 };
    fs::set_permissions(path, Permissions::from_mode(mode | 0o444 | run))?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            open_up(&entry?.path())?;
        }
    }
    Ok(())
}

/// Removes the leftovers of killed downloads. The caller holds the cache's lock, so no download is running.
fn remove_staging(cache: &Path) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(STAGING) {
            // The leftover only uses disk space; the download can continue without removing it.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn failed_download(why: String) -> Error {
    Error::new(format!("PostgreSQL was not found, and downloading it failed: {why}"))
        .at("Maven Central, https://repo1.maven.org")
        .advise(INSTALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_that_the_servers_account_cannot_enter_is_skipped() {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
        let private = place.path().join("private");
        fs::create_dir(&private).unwrap();
        fs::set_permissions(&private, Permissions::from_mode(0o700)).unwrap();
        let account = Account::for_server().unwrap();
        let caches = [private.join("cache"), place.path().join("shared/cache")];
        let cache = usable_cache(&caches, &account).unwrap();
        assert_eq!(cache == caches[1], account.is_switched());
        assert!(account.can_enter(&cache));
        assert_eq!(caches[0].exists(), !account.is_switched());
    }

    #[test]
    fn without_a_cache_the_error_says_what_to_install() {
        let error = usable_cache(&[], &Account::for_server().unwrap()).unwrap_err();
        assert!(error.advice().contains("apt-get install postgresql"), "{error}");
        assert!(error.advice().contains("SAWMILL_PG_BIN"), "{error}");
    }

    #[test]
    fn extracted_files_become_readable_for_everyone() {
        let place = tempfile::tempdir().unwrap();
        let (program, text) = (place.path().join("program"), place.path().join("text"));
        for (path, mode) in [(&program, 0o700), (&text, 0o600)] {
            fs::write(path, "").unwrap();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        open_up(place.path()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&program), mode(&text), mode(place.path())), (0o755, 0o644, 0o755));
    }
}
