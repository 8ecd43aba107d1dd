//! Files that are written: what they may replace, and how they begin.

use std::io;
use std::path::Path;

use sawmill_source::Source;
use sawmill_store::{Identity, WholeFile, is_stream, path_name};

use crate::error::{Error, Result};

/// Rejects a directory, and a file that may not be replaced. A symbolic link counts, too, wherever it leads.
pub(crate) fn check_free(path: &Path, replaces: bool, shown: String) -> Result<()> {
    if path.is_dir() {
        return Err(Error::usage("the output is a directory", shown, "give the name of a file"));
    }
    match replaces || is_stream(path) || path.symlink_metadata().is_err() {
        true => Ok(()),
        false => Err(Error::usage("the file exists already", shown, "--overwrite replaces it")),
    }
}

/// Begins a file; another one that has its name in the end is an error, unless it may be replaced.
pub(crate) fn whole_file(path: &Path, replaces: bool) -> io::Result<WholeFile> {
    WholeFile::remove_abandoned(path)?;
    let file = WholeFile::create(path)?;
    Ok(if replaces { file } else { file.new_only() })
}

/// Whether a file is one of the inputs, whose folder may be mounted at two places.
pub(crate) fn is_input(out: &Path, source: &dyn Source) -> bool {
    let (Ok(there), Ok(path)) = (out.metadata(), out.canonicalize()) else { return false };
    let (name, identity) = (path_name(&path), Identity::new(&there));
    let is_there = |input: &str| Path::new(input).metadata().is_ok_and(|it| Identity::new(&it) == identity);
    source.files().iter().any(|input| input.name == name || is_there(&input.name))
}
