//! Lists of files: `@NAME` on a command line reads one file name from each line of NAME, `@-` from each line of
//! standard input. Thousands of files do not fit on a command line.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sawmill_store::unless_stopped;

use crate::arguments::paths::standard_input::STANDARD_INPUT;
use crate::error::{Error, Result};

/// The longest list that is read: anything longer is not a list of names.
const MAX_LENGTH: u64 = 256 * 1024 * 1024;

/// The name of the list if the path is `@NAME`. An existing file called `@NAME` is that file.
fn list_of(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix('@').filter(|name| !name.is_empty() && path.symlink_metadata().is_err())
}

/// Whether a path is the list on standard input.
pub(crate) fn is_on_standard_input(path: &Path) -> bool {
    list_of(path) == Some("-")
}

/// The paths, with each list replaced by its lines. Empty lines are skipped; `@` has no meaning inside a
/// list.
pub(crate) fn expanded(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let Some(name) = list_of(path) else {
            files.push(path.clone());
            continue;
        };
        let before = files.len();
        let text = read(name)?;
        let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
        files
            .extend(lines.filter(|line| !line.is_empty()).map(|line| PathBuf::from(OsStr::from_bytes(line))));
        if files.len() == before {
            let advice = "write one file name on each line";
            return Err(Error::failure("the list names no file", path.display().to_string(), advice));
        }
    }
    Ok(files)
}

fn read(name: &str) -> Result<Vec<u8>> {
    let (place, advice) = match name {
        "-" => (STANDARD_INPUT, ""),
        name => (name, "check the name of the list"),
    };
    let failed = |error: std::io::Error| {
        Error::failure(format!("reading the list of files failed: {error}"), place, advice)
    };
    let read = match name {
        "-" => unless_stopped(|| {
            let mut text = Vec::new();
            std::io::stdin().lock().take(MAX_LENGTH).read_to_end(&mut text).map(|_| text)
        }),
        name => sawmill_store::read(name.as_ref()),
    };
    let text = read.map_err(failed)?;
    match text.len() as u64 {
        MAX_LENGTH.. => Err(Error::failure("the list of files is longer than 256 MiB", place, "split it")),
        _ => Ok(text),
    }
}
