//! PostgreSQL's server programs, verified to exist and to run.

use std::path::{Path, PathBuf};

use crate::housekeeping::account::Account;
use crate::housekeeping::process;
use crate::{DownloadProgress, Error, Search};

/// The programs that a server needs.
const PROGRAMS: [&str; 3] = ["postgres", "initdb", "pg_ctl"];

/// The programs of one PostgreSQL installation, verified to run here as the account for servers of this
/// process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    bin_dir: PathBuf,
    version: String,
}

impl Binaries {
    /// Finds an installation as [`Search::from_env`] describes; `None` if there is none.
    ///
    /// # Errors
    ///
    /// `SAWMILL_PG_BIN` names a folder whose programs are missing or do not run, or a root process finds no
    /// account to run a server as.
    pub fn find() -> Result<Option<Self>, Error> {
        Search::from_env().find()
    }

    /// Finds an installation like [`find`](Self::find), or downloads one to the cache.
    ///
    /// Downloads the newest PostgreSQL 18 of Zonky's builds from Maven Central
    /// (<https://github.com/zonkyio/embedded-postgres-binaries>), 10-15 MB, and verifies the SHA-512
    /// published with it. Calls `progress` at each step.
    ///
    /// # Errors
    ///
    /// Errors of [`find`](Self::find); or no installation was found, and the download failed or is
    /// unavailable because the cargo feature `download` is off.
    pub fn find_or_download(progress: &mut dyn FnMut(DownloadProgress)) -> Result<Self, Error> {
        Search::from_env().find_or_download(progress)
    }

    /// The installation in a folder with `postgres`, `initdb` and `pg_ctl`.
    ///
    /// # Errors
    ///
    /// A program is missing or does not run as the server's account, or their versions differ.
    pub fn in_dir(bin_dir: impl AsRef<Path>) -> Result<Self, Error> {
        Self::check(bin_dir.as_ref(), &Account::for_server()?)
    }

    /// The folder of the programs, with links resolved.
    pub fn bin_dir(&self) -> &Path {
        &self.bin_dir
    }

    /// The version that the programs report, for example `15.18`.
    pub fn version(&self) -> &str {
        &self.version
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.bin_dir.join(name)
    }

    pub(crate) fn check(bin_dir: &Path, account: &Account) -> Result<Self, Error> {
        let bin_dir = bin_dir
            .canonicalize()
            .map_err(|cause| Error::io("cannot find PostgreSQL", cause).at_path(bin_dir))?;
        // A folder on PATH may contain links: the programs look for their libraries and shared files beside
        // the real programs.
        let bin_dir = match bin_dir.join("postgres").canonicalize() {
            Ok(program) => program.parent().map_or(bin_dir, Path::to_owned),
            Err(cause) => return Err(Error::io("cannot find PostgreSQL", cause).at_path(&bin_dir)),
        };
        let mut version = None;
        for name in PROGRAMS {
            let program = bin_dir.join(name);
            let reported = ask_version(&program, account)?;
            match &version {
                None => version = Some(reported),
                Some(version) if *version == reported => {}
                Some(version) => {
                    return Err(Error::new(format!("{name} is version {reported}, postgres is {version}"))
                        .at_path(&program));
                }
            }
        }
        Ok(Self { bin_dir, version: version.unwrap_or_default() })
    }
}

fn ask_version(program: &Path, account: &Account) -> Result<String, Error> {
    let cannot = |why: String| {
        Error::new(format!("cannot run it as {}: {why}", account.name))
            .at_path(program)
            .advise("install a complete PostgreSQL for this machine, in a folder that this account may enter")
    };
    let output = process::ask(account.command(program).arg("--version").current_dir("/"))
        .map_err(|cause| cannot(cause.to_string()))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(cannot(format!("{}, {}", output.status, errors.trim())));
    }
    let line = String::from_utf8_lossy(&output.stdout);
    // "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"
    line.split_once("(PostgreSQL) ")
        .and_then(|(_, rest)| rest.split_whitespace().next())
        .map(str::to_owned)
        .ok_or_else(|| cannot(format!("its version is {:?}, which is not PostgreSQL's", line.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// A folder of shell scripts that respond like PostgreSQL's programs.
    fn scripts(answers: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for (name, answer) in answers {
            let path = folder.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{answer}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    #[test]
    fn programs_of_one_version_are_accepted() {
        let folder = scripts(&[
            ("postgres", "echo 'postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)'"),
            ("initdb", "echo 'initdb (PostgreSQL) 15.18'"),
            ("pg_ctl", "echo 'pg_ctl (PostgreSQL) 15.18'"),
        ]);
        let found = Binaries::in_dir(folder.path()).unwrap();
        assert_eq!(found.version(), "15.18");
        assert_eq!(found.bin_dir(), folder.path().canonicalize().unwrap());
    }

    #[test]
    fn missing_failing_foreign_and_differing_programs_are_rejected() {
        let postgres = ("postgres", "echo 'postgres (PostgreSQL) 15.18'");
        let pg_ctl = ("pg_ctl", "echo 'pg_ctl (PostgreSQL) 15.18'");
        for (answers, complaint) in [
            (vec![postgres], "No such file"),
            (vec![postgres, ("initdb", "echo 'no libpq' >&2; exit 127"), pg_ctl], "no libpq"),
            (vec![postgres, ("initdb", "echo hello"), pg_ctl], "\"hello\""),
            (vec![postgres, ("initdb", "echo 'initdb (PostgreSQL) 14.1'"), pg_ctl], "version 14.1"),
        ] {
            let error = Binaries::in_dir(scripts(&answers).path()).unwrap_err();
            assert!(error.what().contains(complaint), "{error}");
            assert!(error.place().ends_with("initdb"), "{error}");
        }
    }

    #[test]
    fn programs_that_the_servers_account_cannot_reach_are_rejected() {
        let account = Account::for_server().unwrap();
        if !account.is_switched() {
            return;
        }
        let folder = scripts(&[("postgres", "echo 'postgres (PostgreSQL) 15.18'")]);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let error = Binaries::in_dir(folder.path()).unwrap_err();
        assert!(error.what().contains(&format!("as {}", account.name)), "{error}");
    }
}
