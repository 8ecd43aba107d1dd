//! `sawmill footer extract`: a file's footer as a file without data.

use clap::Args;
use sawmill_footer::Options;
use sawmill_inspect::{scrubbed, write_file};
use serde::Serialize;

use crate::arguments::paths;
use crate::error::{Error, Result};
use crate::footer::output_file::{CopyArgs, OutputFile};
use crate::footer::place::Place;
use crate::footer::{escaped_path, escaped_place};
use crate::screen::console::Console;
use crate::screen::phases::bytes;

/// Write the footer of a file as a file without data, for a bug report.
///
/// It shows the same row groups, column chunks, types, sizes and encodings. With --scrub, names become c1, c2, ...,
/// bounds the smallest ones of the same length and order, and other texts x. The writing program's name stays, as do
/// well-known keys such as pandas.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill footer extract --scrub trips.parquet report.parquet
  sawmill footer ls report.parquet --chunks                     # what it tells
  sawmill footer extract s3://bucket/trips.parquet footer.parquet")]
pub(crate) struct ExtractArgs {
    #[command(flatten)]
    files: CopyArgs,
    /// Mask names, bounds, keys, values and all other texts.
    #[arg(long)]
    scrub: bool,
}

/// The result, for programs.
#[derive(Serialize)]
struct Report {
    file: String,
    out: String,
    footer_bytes: usize,
    is_scrubbed: bool,
}

pub(super) fn run(args: &ExtractArgs, console: Console) -> Result<()> {
    let objects = paths::stores_of([&args.files.input], &args.files.stores)?;
    let place = Place::new(&args.files.input)?;
    let out = args.files.out.canonicalize().ok();
    if out.is_some() && out == args.files.input.canonicalize().ok() {
        let advice = "give another name: the file would lose its data";
        return Err(Error::usage("the output is the input", escaped_path(&args.files.out), advice));
    }
    let opened = place.open(&objects)?;
    let footer = opened.footer(&Options::new())?;
    let written = if args.scrub { scrubbed(&footer)? } else { footer.bytes().to_vec() };
    OutputFile::create(&args.files.out, args.files.overwrite)?
        .finish(|out| write_file(&written, true, out))?;
    let report = Report {
        file: place.to_string(),
        out: args.files.out.display().to_string(),
        footer_bytes: written.len(),
        is_scrubbed: args.scrub,
    };
    console.summary(&report, || {
        let (file, out) = (escaped_place(&place), escaped_path(&args.files.out));
        let scrubbed = if args.scrub { ", without names and bounds" } else { "" };
        format!("{out}: the footer of {file}, {}{scrubbed}, and no data\n", bytes(written.len() as u64))
    })
}
