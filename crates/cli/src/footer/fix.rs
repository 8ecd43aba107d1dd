//! `sawmill footer fix`: a copy of a file with a footer that strict readers accept.

use std::io;

use clap::Args;
use sawmill_footer::RangeReader;
use sawmill_inspect::{Repair, Repaired, escaped, repaired, write_file};
use sawmill_profile::format_counted;
use serde::Serialize;

use crate::arguments::{paths, size_arg};
use crate::error::{Error, Result};
use crate::footer::output_file::{CopyArgs, OutputFile};
use crate::footer::place::Place;
use crate::footer::{escaped_path, escaped_place, style};
use crate::interrupt;
use crate::screen::console::Console;

/// How many bytes to copy at a time.
const COPIED: u64 = 1 << 20;

/// How many findings to print that are left.
const MAX_LEFT: usize = 20;

/// Write a copy of a file whose footer strict readers accept.
///
/// Repairs what the rest of the footer or the page headers determine: sums, sizes, paths, offsets of pages and row
/// groups, a missing scale or repetition. Leaves out optional fields with impossible values: offsets of indexes,
/// negative counts, bounds of the wrong length or order. Then checks the copy as `footer check --pages` does,
/// which reads the whole file, and names what stays wrong because its right value is unknown; the exit code is
/// then 1. Column chunks are copied as they are. If nothing can be repaired, the copy equals the file.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill footer fix trips.parquet fixed.parquet
  sawmill footer fix trips.parquet trips.parquet --overwrite     # in its place, whole or not at all
  sawmill footer fix s3://bucket/trips.parquet fixed.parquet --json | jq '.repairs[].field'
  curl -s https://example.com/trips.parquet | sawmill footer fix - fixed.parquet")]
pub(crate) struct FixArgs {
    #[command(flatten)]
    files: CopyArgs,
    /// Do not read a longer footer.
    #[arg(long, value_name = "BYTES", value_parser = size_arg::bytes, default_value = "1GiB")]
    max_footer: u64,
}

/// The result, for programs.
#[derive(Serialize)]
struct Report<'a> {
    file: String,
    out: String,
    repairs: Vec<Repair>,
    /// Faults that cannot be repaired.
    left: Vec<Left<'a>>,
}

#[derive(Serialize)]
struct Left<'a> {
    what: &'a str,
    path: &'a str,
}

pub(super) fn run(args: &FixArgs, console: Console) -> Result<()> {
    let objects = paths::stores_of([&args.files.input], &args.files.stores)?;
    let place = Place::new(&args.files.input)?;
    let opened = place.open(&objects)?;
    let name = escaped_place(&place);
    let out = OutputFile::create(&args.files.out, args.files.overwrite)?;
    let found =
        repaired(&opened.bytes, &name, args.max_footer).map_err(|error| opened.because(error.into()))?;
    interrupt::check()?;
    let copied = |out: &mut dyn io::Write| {
        copy(&opened.bytes, found.start, out)?;
        write_file(&found.footer, false, out)
    };
    out.finish(copied).map_err(|error| interrupt::check().err().unwrap_or_else(|| opened.because(error)))?;
    let Repaired { repairs, left, .. } = &found;
    let report = Report {
        file: place.to_string(),
        out: args.files.out.display().to_string(),
        repairs: repairs.iter().collect(),
        left: left.iter().map(|found| Left { what: &found.what, path: &found.path }).collect(),
    };
    console.summary(&report, || {
        let mut text = Vec::new();
        // Writing to memory cannot fail.
        let _ = repairs.text(&style(console), &mut text);
        let mut text = String::from_utf8_lossy(&text).into_owned();
        if repairs.is_empty() {
            let what = match (left.is_empty(), found.withdrawn) {
                (true, _) => "nothing to repair",
                (false, false) => "nothing that can be repaired",
                (false, true) => "nothing was repaired, because that would leave more wrong",
            };
            text = format!("{what}: {} equals {name}\n", escaped_path(&args.files.out));
        }
        for found in left.iter().take(MAX_LEFT) {
            text += &format!("not repaired: {}\n", escaped(&found.to_string()));
        }
        if left.len() > MAX_LEFT {
            text += &format!("not repaired: {} more, see sawmill footer check\n", left.len() - MAX_LEFT);
        }
        text
    })?;
    if left.is_empty() {
        return Ok(());
    }
    let faults = format_counted(left.len() as u64, "fault");
    let advice = "the copy is written; strict readers may refuse it: write the file again";
    Err(Error::failure(format!("{faults} could not be repaired"), escaped_path(&args.files.out), advice))
}

/// Copies the first `len` bytes.
fn copy(from: &dyn RangeReader, len: u64, out: &mut dyn io::Write) -> io::Result<()> {
    let mut buffer = vec![0; usize::try_from(len.min(COPIED)).unwrap_or_default()];
    let mut at = 0;
    while at < len {
        if interrupt::asked() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = usize::try_from((len - at).min(COPIED)).unwrap_or_default();
        let part = buffer.get_mut(..count).unwrap_or_default();
        from.read_exact_at(at, part)?;
        out.write_all(part)?;
        at += count as u64;
    }
    Ok(())
}
