//! Files of a command line, one of which may be standard input.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::Error;

/// The paths of a command line. `-` alone is a Parquet file on standard input: footers are at the end, so it
/// is copied to a temporary file, which lives as long as this.
pub(crate) struct InputFiles {
    pub(crate) paths: Vec<PathBuf>,
    _copy: Option<NamedTempFile>,
}

impl InputFiles {
    pub(crate) fn of(arguments: &[PathBuf]) -> Result<Self, Error> {
        let is_stdin = |path: &PathBuf| path == Path::new("-");
        match arguments {
            [only] if is_stdin(only) => {
                let copy = copied().map_err(|error| {
                    let advice =
                        "check the program before the pipe, or free space for temporary files (TMPDIR)";
                    Error::failure(
                        format!("copying to a temporary file failed: {error}"),
                        "standard input",
                        advice,
                    )
                })?;
                Ok(InputFiles { paths: vec![copy.path().to_owned()], _copy: Some(copy) })
            }
            _ => Ok(InputFiles { paths: arguments.to_vec(), _copy: None }),
        }
    }
}

fn copied() -> io::Result<NamedTempFile> {
    let mut copy = tempfile::Builder::new().prefix("stdin-").suffix(".parquet").tempfile()?;
    io::copy(&mut io::stdin().lock(), copy.as_file_mut())?;
    Ok(copy)
}
