//! Rejected rows, written as NDJSON: one line per row with its position and the reason.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sawmill_source::{Error, Kind, Result, SourceFile};
use sawmill_store::{WholeFile, unless_stopped};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The start of each line.
const BEGINS: &[u8] = b"{\"file\":";

/// The file of a load's rejected rows.
#[derive(Debug)]
pub(crate) struct Rejects {
    path: PathBuf,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// Rows that are in the file already: if a unit is sent again, its rows are not written twice.
    known: HashSet<(String, u32, u64)>,
}

/// A rejected row.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Reject {
    pub file: String,
    pub row_group: u32,
    /// Counted from 0 in the row group.
    pub row: u64,
    pub reason: String,
    /// The server's code, where it gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<u32>,
    /// The row as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Place {
    file: String,
    row_group: u32,
    row: u64,
}

/// The rejected rows that stay in the file when a load opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// None: the load makes a table.
    Nothing,
    /// Those of other files of the table: the load begins to append its files.
    OtherFiles,
    /// All: the load goes on.
    All,
}

impl Rejects {
    /// Opens the file for a load of these files.
    pub(crate) fn open(path: &Path, keep: Keep, files: &[SourceFile]) -> Result<Self> {
        let failed = |error: std::io::Error| unwritable(path, &error);
        let mut known = HashSet::new();
        if path.is_file() {
            if !is_of_a_load(path).map_err(failed)? {
                let what = "the file already exists, and no load has written rejected rows to it";
                return Err(Error::new(Kind::Config, what)
                    .at(path.display().to_string())
                    .advise("name another file with --rejects, or remove this one"));
            }
            known = keep_rows(path, keep, files).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        // There are rows in it.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.append(true).create(true);
        let place = path.to_owned();
        let file = unless_stopped(move || options.open(place)).map_err(failed)?;
        Ok(Self { path: path.to_owned(), open: Mutex::new(Open { file, known }) })
    }

    /// Whether a row is in the file.
    pub(crate) fn has(&self, file: &str, row_group: u32, row: u64) -> bool {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.known.contains(&(file.to_owned(), row_group, row))
    }

    /// Writes rows that are not in the file yet.
    pub(crate) fn write(&self, rows: &[Reject]) -> Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = Vec::new();
        for row in rows {
            if open.known.insert((row.file.clone(), row.row_group, row.row)) {
                serde_json::to_writer(&mut lines, row).map_err(|error| {
                    Error::new(Kind::Value, format!("cannot write a rejected row: {error}"))
                })?;
                lines.push(b'\n');
            }
        }
        open.file
            .write_all(&lines)
            .and_then(|()| open.file.flush())
            .map_err(|error| unwritable(&self.path, &error))
    }
}

/// Removes all other rows from the file, and returns the places of the rows of `files` that stay.
fn keep_rows(path: &Path, keep: Keep, files: &[SourceFile]) -> std::io::Result<HashSet<(String, u32, u64)>> {
    let own: HashSet<&str> = files.iter().map(|file| file.name.as_str()).collect();
    let (mut known, mut kept) = (HashSet::new(), WholeFile::create_private(path)?);
    for line in BufReader::new(File::open(path)?).split(b'\n') {
        let mut line = line?;
        // The last line of a killed run may be torn: it is written again.
        let Ok(Place { file, row_group, row }) = serde_json::from_slice(&line) else { break };
        let is_own = own.contains(file.as_str());
        if keep == Keep::All || keep == Keep::OtherFiles && !is_own {
            line.push(b'\n');
            kept.write_all(&line)?;
            if is_own {
                known.insert((file, row_group, row));
            }
        }
    }
    kept.finish()?;
    Ok(known)
}

/// Whether a file is empty, or begins like the rejects file of a load.
fn is_of_a_load(path: &Path) -> std::io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(BEGINS.len() as u64).read_to_end(&mut start)?;
    Ok(BEGINS.starts_with(&start))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Kind::Config, format!("cannot write the file of rejected rows: {error}"))
        .at(path.display().to_string())
        .advise("name a writable file with --rejects")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_load_adds_to_the_file_and_doubles_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rejects.ndjson");
        let reject = |row| Reject {
            file: "a.parquet".into(),
            row_group: 0,
            row,
            reason: "no \"room\"".into(),
            code: Some(4091),
            values: None,
        };
        let open = |keep| {
            let (name, fingerprint) = ("a.parquet".to_owned(), String::new());
            let file = SourceFile { name, fingerprint, stamp: None, rows: 0, bytes: 0, columns: None };
            Rejects::open(&path, keep, &[file])
        };
        open(Keep::Nothing).unwrap().write(&[reject(1), reject(2)]).unwrap();
        // A torn line of a killed run.
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"file\":\"a.par").unwrap();
        let other = Reject { file: "b.parquet".into(), ..reject(4) };
        open(Keep::All).unwrap().write(&[reject(2), reject(3), other]).unwrap();
        let rows = || {
            let text = std::fs::read_to_string(&path).unwrap();
            text.lines().map(|line| serde_json::from_str::<Place>(line).unwrap().row).collect::<Vec<_>>()
        };
        assert_eq!(rows(), [1, 2, 3, 4]);
        // The same file is loaded once more.
        open(Keep::OtherFiles).unwrap().write(&[reject(2)]).unwrap();
        assert_eq!(rows(), [4, 2]);
        open(Keep::Nothing).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
        std::fs::write(&path, "a diary\n").unwrap();
        for keep in [Keep::Nothing, Keep::All] {
            let error = open(keep).unwrap_err().to_string();
            assert!(error.contains("no load has written"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a diary\n");
    }
}
