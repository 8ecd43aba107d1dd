//! Searches the places where PostgreSQL may be installed, in a fixed order.

use std::cmp::Reverse;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::housekeeping::account::{Account, effective_uid};
use crate::housekeeping::process;
use crate::{Binaries, DownloadProgress, Error};

/// The places to search for PostgreSQL, and the caches to download it to.
///
/// In order: the folder that `SAWMILL_PG_BIN` names, the output of `pg_config --bindir`, the folders of
/// `PATH`, the usual installation folders newest first, earlier downloads. The first whose programs are
/// complete and run is used. The default has no places.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Only this folder is used: if its programs do not run, that is an error.
    pub explicit: Option<PathBuf>,
    /// Folders as on `PATH`, with `pg_config` or `postgres`.
    pub path: Vec<PathBuf>,
    /// Folders that may contain the programs.
    pub folders: Vec<PathBuf>,
    /// Folders of downloaded installations, with a subfolder per version.
    pub caches: Vec<PathBuf>,
}

impl Search {
    /// The places from this process's environment and machine.
    ///
    /// The caches are `sawmill/postgresql` in `XDG_CACHE_HOME` or `~/.cache` and, for root, in `/var/cache`:
    /// root's server runs as another account, which cannot enter a home directory private to root.
    pub fn from_env() -> Self {
        Self::from_variables(|name| std::env::var_os(name), Path::new("/"))
    }

    /// Finds the first installation whose programs run.
    ///
    /// # Errors
    ///
    /// The explicit folder's programs are missing or do not run, or a root process finds no account to run a
    /// server as.
    pub fn find(&self) -> Result<Option<Binaries>, Error> {
        let account = Account::for_server()?;
        if let Some(folder) = &self.explicit {
            return Binaries::check(folder, &account).map(Some).map_err(|error| {
                error.advise(format!(
                    "set SAWMILL_PG_BIN to the folder that holds postgres and initdb (it is {}) or unset it",
                    folder.display()
                ))
            });
        }
        let reported = self.path.iter().filter_map(|folder| ask_pg_config(folder));
        let candidates = reported
            .chain(self.path.iter().cloned())
            .chain(self.folders.iter().cloned())
            .chain(self.caches.iter().flat_map(|cache| matching(cache, "", "bin")));
        let mut tried = Vec::new();
        for candidate in candidates {
            // Most folders of PATH are excluded here without starting a process.
            let Ok(program) = candidate.join("postgres").canonicalize() else { continue };
            if tried.contains(&program) {
                continue;
            }
            if let Ok(found) = Binaries::check(&candidate, &account) {
                return Ok(Some(found));
            }
            tried.push(program);
        }
        Ok(None)
    }

    /// Finds the first installation whose programs run, or downloads one.
    ///
    /// # Errors
    ///
    /// Errors of [`find`](Self::find); or no installation was found, and the download failed or is
    /// unavailable because the cargo feature `download` is off.
    pub fn find_or_download(&self, progress: &mut dyn FnMut(DownloadProgress)) -> Result<Binaries, Error> {
        match self.find()? {
            Some(found) => Ok(found),
            None => crate::install::download::into_cache(&self.caches, progress),
        }
    }

    /// The places from the variables, with the file system below `root`.
    fn from_variables(variable: impl Fn(&str) -> Option<OsString>, root: &Path) -> Self {
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        // A relative cache folder must be ignored
        // (https://specifications.freedesktop.org/basedir-spec/latest/).
        let home_cache = variable("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute())
            .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".cache")));
        let root_cache = (effective_uid() == 0).then(|| root.join("var/cache"));
        Self {
            explicit: variable("SAWMILL_PG_BIN").map(PathBuf::from),
            path: variable("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default(),
            folders: install_folders(root),
            caches: [home_cache, root_cache]
                .into_iter()
                .flatten()
                .map(|cache| cache.join("sawmill/postgresql"))
                .collect(),
        }
    }
}

/// Where packages install the programs: Debian's, the PostgreSQL project's for RHEL and Fedora, and
/// Homebrew's on Apple silicon and Intel.
fn install_folders(root: &Path) -> Vec<PathBuf> {
    [
        ("usr/lib/postgresql", "", "bin"),
        ("usr", "pgsql-", "bin"),
        ("opt/homebrew/opt", "postgresql", "bin"),
        ("usr/local/opt", "postgresql", "bin"),
    ]
    .into_iter()
    .flat_map(|(parent, prefix, below)| matching(&root.join(parent), prefix, below))
    .collect()
}

/// The folders `parent/prefix*/below`, highest version first.
fn matching(parent: &Path, prefix: &str, below: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let mut found: Vec<(Reverse<Vec<u32>>, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let name = name.to_str()?;
            let rest = name.strip_prefix(prefix)?;
            // Staging folders start with a dot.
            if name.starts_with('.') {
                return None;
            }
            let version =
                rest.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect();
            Some((Reverse(version), entry.path().join(below)))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, folder)| folder).collect()
}

/// The output of `pg_config --bindir` in this folder, if the program exists.
fn ask_pg_config(folder: &Path) -> Option<PathBuf> {
    let program = folder.join("pg_config");
    if !program.is_file() {
        return None;
    }
    let output = process::ask(Command::new(program).arg("--bindir")).ok()?;
    let reported = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(reported.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A folder that everyone may enter, because root's server runs as another account.
    fn shared() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    fn script(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn install(bin_dir: &Path, version: &str) {
        for name in ["postgres", "initdb", "pg_ctl"] {
            script(&bin_dir.join(name), &format!("echo '{name} (PostgreSQL) {version}'"));
        }
    }

    fn found_version(search: &Search) -> Option<String> {
        search.find().unwrap().map(|found| found.version().to_owned())
    }

    #[test]
    fn nowhere_finds_nothing() {
        assert_eq!(Search::default().find().unwrap(), None);
    }

    #[test]
    fn the_explicit_folder_comes_first_and_must_be_valid() {
        let place = shared();
        install(&place.path().join("a"), "11.1");
        install(&place.path().join("b"), "12.2");
        let mut search = Search { path: vec![place.path().join("a")], ..Search::default() };
        assert_eq!(found_version(&search).unwrap(), "11.1");
        search.explicit = Some(place.path().join("b"));
        assert_eq!(found_version(&search).unwrap(), "12.2");
        search.explicit = Some(place.path().join("c"));
        let error = search.find().unwrap_err();
        assert!(error.advice().contains("SAWMILL_PG_BIN"), "{error}");
        assert!(error.place().ends_with("/c"), "{error}");
    }

    #[test]
    fn pg_config_comes_before_path_and_path_before_the_usual_folders() {
        let place = shared();
        let at = |name: &str| place.path().join(name);
        install(&at("reported"), "1.1");
        install(&at("path"), "2.2");
        install(&at("folder"), "3.3");
        install(&at("cache/4.4/bin"), "4.4");
        let mut search = Search { caches: vec![at("cache")], ..Search::default() };
        assert_eq!(found_version(&search).unwrap(), "4.4");
        search.folders.push(at("folder"));
        assert_eq!(found_version(&search).unwrap(), "3.3");
        search.path.push(at("path"));
        assert_eq!(found_version(&search).unwrap(), "2.2");
        script(&at("development/pg_config"), &format!("echo {}", at("reported").display()));
        search.path.push(at("development"));
        assert_eq!(found_version(&search).unwrap(), "1.1");
    }

    #[test]
    fn a_link_on_path_resolves_to_the_real_folder() {
        let place = shared();
        install(&place.path().join("real/bin"), "15.18");
        fs::create_dir(place.path().join("links")).unwrap();
        symlink(place.path().join("real/bin/postgres"), place.path().join("links/postgres")).unwrap();
        let search = Search { path: vec![place.path().join("links")], ..Search::default() };
        let found = search.find().unwrap().unwrap();
        assert_eq!(found.bin_dir(), place.path().join("real/bin").canonicalize().unwrap());
    }

    #[test]
    fn an_incomplete_installation_is_skipped() {
        let place = shared();
        script(&place.path().join("a/postgres"), "echo 'postgres (PostgreSQL) 15.1'");
        install(&place.path().join("b"), "14.1");
        let (path, folders) = (vec![place.path().join("a")], vec![place.path().join("b")]);
        let search = Search { path, folders, ..Search::default() };
        assert_eq!(found_version(&search).unwrap(), "14.1");
    }

    #[test]
    fn the_usual_folders_are_found_with_the_newest_first() {
        let root = shared();
        for folder in [
            "usr/lib/postgresql/9.6/bin",
            "usr/lib/postgresql/15/bin",
            "usr/pgsql-17/bin",
            "opt/homebrew/opt/postgresql@16/bin",
            "opt/homebrew/opt/postgresql/bin",
            "opt/homebrew/opt/openssl/bin",
        ] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let found = install_folders(root.path());
        let names: Vec<_> =
            found.iter().map(|f| f.strip_prefix(root.path()).unwrap().to_str().unwrap()).collect();
        assert_eq!(
            names,
            [
                "usr/lib/postgresql/15/bin",
                "usr/lib/postgresql/9.6/bin",
                "usr/pgsql-17/bin",
                "opt/homebrew/opt/postgresql@16/bin",
                "opt/homebrew/opt/postgresql/bin",
            ]
        );
    }

    #[test]
    fn the_environment_names_the_cache_and_empty_variables_are_ignored() {
        let root = shared();
        let with = |variables: &'static [(&str, &str)]| {
            let look_up = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| v.into());
            Search::from_variables(look_up, root.path())
        };
        let first_cache = |search: Search| search.caches.first().cloned().unwrap();
        let xdg = with(&[("XDG_CACHE_HOME", "/c"), ("HOME", "/h"), ("SAWMILL_PG_BIN", "")]);
        assert_eq!(xdg.explicit, None);
        assert_eq!(first_cache(xdg), Path::new("/c/sawmill/postgresql"));
        let relative = with(&[("XDG_CACHE_HOME", "c"), ("HOME", "/h")]);
        assert_eq!(first_cache(relative), Path::new("/h/.cache/sawmill/postgresql"));
        let set = with(&[("SAWMILL_PG_BIN", "/pg/bin"), ("PATH", "/a:/b")]);
        assert_eq!(set.explicit, Some("/pg/bin".into()));
        assert_eq!(set.path, [Path::new("/a"), Path::new("/b")]);
    }
}
