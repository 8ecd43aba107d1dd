//! The file of records that cannot be read.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use sawmill_source::{DelimitedFiles, RejectedRecord, Source};
use sawmill_store::{WholeFile, is_stream};

use crate::error::{Error, Result};
use crate::screen::console::Console;
use crate::screen::phases::thousands;

const HEADER: &str = "file,line,byte_offset,reason,record\n";

/// Writes the records that a source leaves out. A file that an earlier run wrote is replaced, any other is not.
pub(crate) fn write(source: &DelimitedFiles, path: &Path, console: Console) -> Result<()> {
    let failed = |error: std::io::Error| {
        Error::failure(format!("writing failed: {error}"), path.display().to_string(), "give another file")
    };
    if let Ok(canonical) = path.canonicalize()
        && source.files().iter().any(|file| file.name == sawmill_store::path_name(&canonical))
    {
        let place = path.display().to_string();
        let advice = "give another name";
        return Err(Error::usage("the file of rejected records is one of the inputs", place, advice));
    }
    let is_json = path.extension().is_some_and(|extension| extension == "ndjson" || extension == "jsonl");
    let begins: &[u8] = if is_json { b"{\"file\":" } else { HEADER.as_bytes() };
    if !may_replace(path, begins).map_err(failed)? {
        let advice = "give the name of a new file, or of one that an earlier run wrote";
        return Err(Error::usage("the file exists already", path.display().to_string(), advice));
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
        [only] => console.notice(&format!(
            "1 record cannot be read and is left out: {} ({})",
            path.display(),
            only.reason
        )),
        all => console.notice(&format!(
            "{} records cannot be read and are left out: {}",
            thousands(all.len() as u64),
            path.display()
        )),
    }
    Ok(())
}

/// Whether `path` is free, a device, an empty file, or a file that begins with `begins`, as earlier runs wrote it.
fn may_replace(path: &Path, begins: &[u8]) -> std::io::Result<bool> {
    if is_stream(path) {
        return Ok(true);
    }
    match File::open(path) {
        Ok(file) => {
            let mut there = Vec::new();
            file.take(begins.len() as u64).read_to_end(&mut there)?;
            Ok(there.is_empty() || there == begins)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
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
