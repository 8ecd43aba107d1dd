//! The file of records that cannot be read.

use std::io::{BufWriter, Write};
use std::path::Path;

use sawmill_source::{DelimitedFiles, RejectedRecord};
use sawmill_store::WholeFile;

use crate::arguments::paths::output::is_input;
use crate::error::{Error, Result};
use crate::screen::console::Console;
use crate::screen::flame::is_free_for;
use crate::screen::phases::thousands;

const HEADER: &str = "file,line,byte_offset,reason,record\n";

/// Writes the records that a source leaves out. A file that an earlier run wrote is replaced, any other is not.
pub(crate) fn write(source: &DelimitedFiles, path: &Path, console: Console) -> Result<()> {
    let place = || path.display().to_string();
    let failed = |error: std::io::Error| Error::of_output("writing", path, &error);
    if is_input(path, source) {
        let what = "the file of rejected records is one of the inputs";
        return Err(Error::usage(what, place(), "give another name"));
    }
    let is_json = path.extension().is_some_and(|extension| extension == "ndjson" || extension == "jsonl");
    let begins: &[u8] = if is_json { b"{\"file\":" } else { HEADER.as_bytes() };
    if !is_free_for(path, begins) {
        let advice = "give the name of a new file, or of one that an earlier run wrote";
        return Err(Error::usage("the file exists already", place(), advice));
    }
    WholeFile::remove_abandoned(path).map_err(failed)?;
    let mut out = BufWriter::new(WholeFile::create_private(path).map_err(failed)?);
    if !is_json {
        out.write_all(HEADER.as_bytes()).map_err(failed)?;
    }
    for record in source.rejected() {
        let line = if is_json { json(record)? } else { csv(record) };
        out.write_all(&line).map_err(failed)?;
    }
    out.into_inner().map_err(|error| failed(error.into_error()))?.finish().map_err(failed)?;
    match source.rejected() {
        [] => {}
        [only] => {
            console.notice(&format!("1 record cannot be read and is left out: {} ({})", place(), only.reason))
        }
        all => {
            let count = thousands(all.len() as u64);
            console.notice(&format!("{count} records cannot be read and are left out: {}", place()));
        }
    }
    Ok(())
}

fn json(record: &RejectedRecord) -> Result<Vec<u8>> {
    let line = serde_json::to_string(record);
    line.map(|line| (line + "\n").into_bytes()).map_err(|error| Error::failure(error.to_string(), "", ""))
}

/// A line of CSV. The record has its own bytes, whether they are UTF-8 or not.
fn csv(record: &RejectedRecord) -> Vec<u8> {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let line = record.line.map(|line| line.to_string()).unwrap_or_default();
    let mut text =
        format!("{},{line},{},{},\"", quoted(&record.file), record.byte_offset, quoted(&record.reason))
            .into_bytes();
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let length = record.bytes.iter().rposition(|byte| !is_end(byte)).map_or(0, |last| last + 1);
    for byte in record.bytes.iter().take(length) {
        text.push(*byte);
        if *byte == b'"' {
            text.push(b'"');
        }
    }
    text.extend_from_slice(b"\"\n");
    text
}
