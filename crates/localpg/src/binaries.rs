//! PostgreSQL's server programs, checked to be there and to run.

use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::{DownloadProgress, Error, Search, process};

/// What a server needs.
const PROGRAMS: [&str; 3] = ["postgres", "initdb", "pg_ctl"];

/// The programs of one PostgreSQL installation that run here, as the account that a server of this
/// process gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    bin_dir: PathBuf,
    version: String,
}

impl Binaries {
    /// Finds an installation as [`Search::from_env`] describes; none is `None`.
    ///
    /// # Errors
    ///
    /// `SAWMILL_PG_BIN` is set to a folder whose programs are missing or do not run, or a root
    /// process finds no account to run a server as.
    pub fn find() -> Result<Option<Self>, Error> {
        Search::from_env().find()
    }

    /// Finds an installation as [`find`](Self::find) does, else downloads one into the cache.
    ///
    /// The download is the newest PostgreSQL 18 of Zonky's builds on Maven Central
    /// (<https://github.com/zonkyio/embedded-postgres-binaries>), 10-15 MB, checked against the
    /// SHA-512 that is published with it. `progress` is told of each step.
    ///
    /// # Errors
    ///
    /// Those of [`find`](Self::find); or nothing was found and the download failed or, without
    /// the cargo feature `download`, is not built in.
    pub fn find_or_download(progress: &mut dyn FnMut(DownloadProgress)) -> Result<Self, Error> {
        Search::from_env().find_or_download(progress)
    }

    /// The installation in a folder that holds `postgres`, `initdb` and `pg_ctl`.
    ///
    /// # Errors
    ///
    /// A program is missing or does not run as the server's account, or they differ in version.
    pub fn in_dir(bin_dir: impl AsRef<Path>) -> Result<Self, Error> {
        Self::check(bin_dir.as_ref(), &Account::for_server()?)
    }

    /// The folder of the programs, with links resolved.
    pub fn bin_dir(&self) -> &Path {
        &self.bin_dir
    }

    /// The version as the programs tell it, for example `15.18`.
    pub fn version(&self) -> &str {
        &self.version
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.bin_dir.join(name)
    }

    pub(crate) fn check(bin_dir: &Path, account: &Account) -> Result<Self, Error> {
        let bin_dir = bin_dir
            .canonicalize()
            .map_err(|cause| Error::io("there is no PostgreSQL", cause).at_path(bin_dir))?;
        // A folder on PATH may hold links: the programs look for their libraries and their shared
        // files beside the real ones.
        let bin_dir = match bin_dir.join("postgres").canonicalize() {
            Ok(program) => program.parent().map_or(bin_dir, Path::to_owned),
            Err(cause) => return Err(Error::io("there is no PostgreSQL", cause).at_path(&bin_dir)),
        };
        let mut version = None;
        for name in PROGRAMS {
            let program = bin_dir.join(name);
            let told = ask_version(&program, account)?;
            match &version {
                None => version = Some(told),
                Some(version) if *version == told => {}
                Some(version) => {
                    return Err(Error::new(format!("{name} is version {told}, postgres is {version}"))
                        .at_path(&program));
                }
            }
        }
        Ok(Self { bin_dir, version: version.unwrap_or_default() })
    }
}

fn ask_version(program: &Path, account: &Account) -> Result<String, Error> {
    let cannot = |why: String| {
        Error::new(format!("cannot run it as {}: {why}", account.name()))
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
        .ok_or_else(|| cannot(format!("it calls itself {:?}, which is no PostgreSQL", line.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// A folder of shell scripts that answer as PostgreSQL's programs do.
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
    fn programs_that_answer_with_one_version_count() {
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
    fn a_missing_a_failing_a_foreign_and_a_differing_program_do_not() {
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
    fn programs_that_the_servers_account_cannot_reach_do_not_count() {
        let account = Account::for_server().unwrap();
        if !account.is_switched() {
            return;
        }
        let folder = scripts(&[("postgres", "echo 'postgres (PostgreSQL) 15.18'")]);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let error = Binaries::in_dir(folder.path()).unwrap_err();
        assert!(error.what().contains(&format!("as {}", account.name())), "{error}");
    }
}
