//! Lists of files: `@NAME` on a command line stands for the lines of the file NAME, `@-` for those of
//! standard input. Thousands of files are too many for a command line.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The longest list that is read: more is no list of names.
const LONGEST: u64 = 256 * 1024 * 1024;

/// Whether a path stands for a list. A file may have the name of one.
fn list_of(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix('@').filter(|name| !name.is_empty() && path.symlink_metadata().is_err())
}

/// Whether a path stands for a list on standard input.
pub(crate) fn is_on_standard_input(path: &Path) -> bool {
    list_of(path) == Some("-")
}

/// The paths with the lines of lists in their place. Empty lines stand for nothing; a list in a list is
/// none.
pub(crate) fn expanded(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let Some(name) = list_of(path) else {
            files.push(path.clone());
            continue;
        };
        let before = files.len();
        let text = read(name)?;
        files.extend(text.lines().map(str::trim_end).filter(|line| !line.is_empty()).map(PathBuf::from));
        if files.len() == before {
            let advice = "write one name a line";
            return Err(Error::failure("the list names no file", path.display().to_string(), advice));
        }
    }
    Ok(files)
}

fn read(name: &str) -> Result<String, Error> {
    let (place, advice) = match name {
        "-" => ("standard input", ""),
        name => (name, "check the name of the list"),
    };
    let failed = |error: std::io::Error| {
        Error::failure(format!("the list of files cannot be read: {error}"), place, advice)
    };
    let mut text = String::new();
    let read = match name {
        "-" => std::io::stdin().lock().take(LONGEST).read_to_string(&mut text),
        name => fs::File::open(name).and_then(|file| file.take(LONGEST).read_to_string(&mut text)),
    };
    match read.map_err(failed)? as u64 {
        LONGEST => Err(Error::failure("the list of files is longer than 256 MiB", place, "split it")),
        _ => Ok(text),
    }
}
