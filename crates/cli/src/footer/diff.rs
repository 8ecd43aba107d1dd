//! `sawmill footer diff`: how the footers of two files differ.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use sawmill_inspect::{ComparedParts, FooterDifference, OpenFile};

use crate::arguments::paths;
use crate::arguments::stores::StoreArgs;
use crate::error::{Error, Result};
use crate::footer::place::Place;
use crate::footer::run::unwritten;
use crate::footer::{decode, escaped_place, selection, style};
use crate::screen::console::Console;

/// Compare the footers of two files: schema, layout, statistics.
///
/// Columns are matched by their paths. If both files have the same rows in each row group, statistics are
/// compared chunk by chunk, otherwise as sums. The exit code is 1 if anything differs.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill footer diff old.parquet new.parquet
  sawmill footer diff old.parquet new.parquet --parts schema      # exit code 1 if the schemas differ
  sawmill footer diff a.parquet b.parquet --parts statistics --column 'price_*' --json
  sawmill footer diff s3://bucket/trips.parquet trips.parquet
  curl -s https://example.com/trips.parquet | sawmill footer diff - trips.parquet")]
pub(crate) struct DiffArgs {
    /// The first file: a path, a URL, or - for standard input.
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The file to compare with it.
    #[arg(value_name = "B")]
    b: PathBuf,
    /// What to compare.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Part::Schema, Part::Layout, Part::Statistics])]
    parts: Vec<Part>,
    /// Compare the layout and statistics of only these columns, as with `sawmill footer --column`.
    #[arg(long, value_name = "GLOB")]
    column: Vec<String>,
    #[command(flatten)]
    stores: StoreArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Columns, types, order.
    Schema,
    /// Writer, row groups, codecs, encodings, sizes, sort orders, indexes.
    Layout,
    /// Null counts and bounds.
    Statistics,
}

pub(crate) fn run(args: &DiffArgs, console: Console) -> Result<()> {
    let options = selection::part(&args.column, None);
    let objects = paths::stores_of([&args.a, &args.b], &args.stores)?;
    let place = |argument: &Path| Place::new(argument);
    let open = |place: &Place| -> Result<OpenFile> {
        if let Place::Path(path) = place {
            let (_, footer) = decode(path, &options)?;
            return Ok(OpenFile::new(path, footer, style(console)));
        }
        let opened = place.open(&objects)?;
        let footer = opened.footer(&options)?;
        Ok(OpenFile::over(&place.name(), footer, style(console), Box::new(opened.bytes)))
    };
    if args.a == Path::new("-") && args.b == Path::new("-") {
        return Err(Error::usage("standard input was given twice", "-", "name a file to compare it with"));
    }
    let (place_of_a, place_of_b) = (place(&args.a)?, place(&args.b)?);
    let (a, b) = (open(&place_of_a)?, open(&place_of_b)?);
    let parts = ComparedParts {
        schema: args.parts.contains(&Part::Schema),
        layout: args.parts.contains(&Part::Layout),
        statistics: args.parts.contains(&Part::Statistics),
    };
    let difference = FooterDifference::between(&a, &b, parts);
    for file in [a, b] {
        if let Some(fault) = file.into_fault() {
            return Err(fault.into());
        }
    }
    if console.json {
        console.result(&difference, String::new)?;
    } else {
        let mut out = console.output();
        difference.text(&mut out).and_then(|()| out.flush()).map_err(unwritten)?;
    }
    match difference.len() {
        0 => Ok(()),
        count => {
            let files = [place_of_a, place_of_b].map(|place| escaped_place(&place)).join(" and ");
            Err(Error::failure(format!("the footers differ in {count} places"), files, ""))
        }
    }
}
