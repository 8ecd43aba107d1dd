//! Rejected rows, written as NDJSON: one line per row with its position and the reason.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sawmill_source::{Error, Kind, Result};
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

impl Rejects {
    /// Opens the file: empties it for a new load, appends to it for a resumed one.
    pub(crate) fn open(path: &Path, resumed: bool) -> Result<Self> {
        let failed = |error: std::io::Error| unwritable(path, &error);
        let mut known = HashSet::new();
        if path.is_file() && !is_of_a_load(path).map_err(failed)? {
            let what = "the file already exists, and no load has written rejected rows to it";
            return Err(Error::new(Kind::Config, what)
                .at(path.display().to_string())
                .advise("name another file with --rejects, or remove this one"));
        }
        if resumed && path.is_file() {
            let mut whole = 0;
            for line in BufReader::new(File::open(path).map_err(failed)?).split(b'\n') {
                let line = line.map_err(failed)?;
                // The last line of a killed run may be torn: it is written again.
                let Ok(place) = serde_json::from_slice::<Place>(&line) else { break };
                known.insert((place.file, place.row_group, place.row));
                whole += line.len() as u64 + 1;
            }
            OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(whole)).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        // There are rows in it.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = match resumed {
            true => options.append(true).create(true).open(path),
            false => options.write(true).create(true).truncate(true).open(path),
        };
        Ok(Self { path: path.to_owned(), open: Mutex::new(Open { file: file.map_err(failed)?, known }) })
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
        Rejects::open(&path, false).unwrap().write(&[reject(1), reject(2)]).unwrap();
        // A torn line of a killed run.
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"file\":\"a.par").unwrap();
        Rejects::open(&path, true).unwrap().write(&[reject(2), reject(3)]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let rows: Vec<u64> =
            text.lines().map(|line| serde_json::from_str::<Place>(line).unwrap().row).collect();
        assert_eq!(rows, [1, 2, 3]);
        Rejects::open(&path, false).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
        std::fs::write(&path, "a diary\n").unwrap();
        for resumed in [false, true] {
            let error = Rejects::open(&path, resumed).unwrap_err().to_string();
            assert!(error.contains("no load has written"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a diary\n");
    }
}
