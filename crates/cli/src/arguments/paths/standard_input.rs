//! A file on standard input.

use std::io::{Read, Write};

use sawmill_store::unless_stopped;
use tempfile::NamedTempFile;

use crate::error::{Error, Result};
use crate::interrupt;

/// The name of standard input in messages, in place of a file's name.
pub(crate) const STANDARD_INPUT: &str = "standard input";

/// How many bytes to read at a time.
const PART: u64 = 1 << 20;

/// Writes standard input to a temporary file: reading a Parquet file starts at its end.
pub(crate) fn spool() -> Result<NamedTempFile> {
    let failed = |error: std::io::Error| {
        let what = format!("storing the stream failed: {error}");
        Error::failure(what, std::env::temp_dir().display().to_string(), "free some space, or set TMPDIR")
    };
    let mut file = NamedTempFile::with_prefix("sawmill-").map_err(failed)?;
    loop {
        interrupt::check()?;
        let part = unless_stopped(|| {
            let mut part = Vec::new();
            std::io::stdin().lock().take(PART).read_to_end(&mut part).map(|_| part)
        });
        let part = part.map_err(|error| {
            let advice = "check the program before the pipe";
            Error::failure(format!("reading failed: {error}"), STANDARD_INPUT, advice)
        })?;
        if part.is_empty() {
            return file.flush().map(|()| file).map_err(failed);
        }
        file.write_all(&part).map_err(failed)?;
    }
}
