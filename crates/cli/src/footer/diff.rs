//! `sawmill footer diff`: how the footers of two files differ.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, ValueEnum};
use sawmill_footer::{ColumnSelector, Options};
use sawmill_inspect::{ComparedParts, FooterDifference, OpenFile};
use sawmill_store::Location;

use crate::arguments::paths;
use crate::arguments::stores::{PlaceBytes, StoreArgs};
use crate::error::Error;
use crate::footer::run::unwritten;
use crate::footer::selection;
use crate::footer::{decode, escaped_place, style};
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
  sawmill footer diff s3://bucket/trips.parquet trips.parquet")]
pub(crate) struct DiffArgs {
    /// The first file.
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

pub(crate) fn run(args: &DiffArgs, console: Console, cancel: &Arc<AtomicBool>) -> Result<(), Error> {
    let selectors: Vec<ColumnSelector> =
        args.column.iter().map(|column| selection::selector(column)).collect();
    let options = match selectors.is_empty() {
        true => Options::new(),
        false => Options::new().select(selectors),
    };
    let objects = paths::stores_of([&args.a, &args.b], &args.stores, cancel)?;
    let open = |path: &Path| -> Result<OpenFile, Error> {
        let place = Location::of(path)?;
        if let Location::Path(path) = &place {
            let (_, footer) = decode(path, &options)?;
            return Ok(OpenFile::new(path, footer, style(console)));
        }
        let opened = PlaceBytes::open(&place, &objects)?;
        let footer = opened.footer(&options)?;
        Ok(OpenFile::over(Path::new(&place.to_string()), footer, style(console), Box::new(opened.bytes)))
    };
    let (a, b) = (open(&args.a)?, open(&args.b)?);
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
        let mut out = console.output(cancel);
        difference.text(&mut out).and_then(|()| out.flush()).map_err(|error| unwritten(&error, cancel))?;
    }
    match difference.len() {
        0 => Ok(()),
        count => {
            // The query of a URL may be a secret.
            let shown = |path: &Path| Location::of(path).map(|place| escaped_place(&place));
            let files = format!("{} and {}", shown(&args.a)?, shown(&args.b)?);
            Err(Error::failure(format!("the footers differ in {count} places"), files, ""))
        }
    }
}
