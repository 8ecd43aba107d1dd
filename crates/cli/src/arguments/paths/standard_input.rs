//! A file on standard input.

use std::io::{Read, Write};

use tempfile::NamedTempFile;

use crate::error::Error;
use crate::interrupt;

/// The name of standard input in messages, in place of a file's name.
pub(crate) const STANDARD_INPUT: &str = "standard input";

/// Writes standard input to a temporary file: reading a Parquet file starts at its end.
pub(crate) fn spool() -> Result<NamedTempFile, Error> {
    let failed = |error: std::io::Error| {
        let what = format!("storing the stream failed: {error}");
        Error::failure(what, std::env::temp_dir().display().to_string(), "free some space, or set TMPDIR")
    };
    let mut file = NamedTempFile::with_prefix("sawmill-").map_err(failed)?;
    let mut input = std::io::stdin().lock();
    let mut buffer = vec![0; 1 << 20];
    loop {
        interrupt::check()?;
        let read = match input.read(&mut buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            read => read.map_err(|error| {
                let advice = "check the program before the pipe";
                Error::failure(format!("reading failed: {error}"), STANDARD_INPUT, advice)
            })?,
        };
        if read == 0 {
            return file.flush().map(|()| file).map_err(failed);
        }
        file.write_all(&buffer[..read]).map_err(failed)?;
    }
}
