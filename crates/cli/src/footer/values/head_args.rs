//! The arguments of `sawmill footer head` and `cat`.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;

use crate::arguments::size_arg;
use crate::arguments::stores::StoreArgs;
use crate::error::Error;
use crate::footer::selection;
use crate::screen::console::Console;
use crate::screen::phases;

/// The files, and which of their columns and rows.
#[derive(Args, Debug)]
pub(crate) struct HeadArgs {
    /// Parquet files, directories, quoted patterns or URLs, as with `sawmill footer`.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Only columns whose paths match, as with `sawmill footer --column`. Of all other columns nothing is
    /// read.
    #[arg(long, value_name = "GLOB")]
    pub column: Vec<String>,
    /// Only these row groups: 3, 2..5 (without 5), 2.. or ..5.
    #[arg(long, value_name = "N..M", value_parser = selection::row_groups)]
    pub row_group: Option<Range<usize>>,
    /// Leave out this many rows first.
    #[arg(long, value_name = "ROWS", value_parser = phases::count, default_value = "0")]
    pub skip: u64,
    /// The largest page to decompress, such as 1GiB: a page of a damaged or hostile file may claim 2 GiB. Writers
    /// make pages of about 1 MiB, unless one value is larger.
    #[arg(long, value_name = "BYTES", value_parser = size_arg::bytes, allow_hyphen_values = true,
        default_value = "64MiB")]
    pub max_page: u64,
    #[command(flatten)]
    pub stores: StoreArgs,
}

/// Print the first rows as JSON, one on each line.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill footer head trips.parquet
  sawmill footer head trips.parquet -n 3 --column fare --column 'pickup*'
  sawmill footer head /data/trips --skip 1M -n 5 | jq .fare
  sawmill footer head s3://bucket/trips -n 3")]
pub(crate) struct FirstRowsArgs {
    /// How many rows, of all files together.
    #[arg(short = 'n', long, value_name = "ROWS", value_parser = phases::count, default_value = "10")]
    rows: u64,
    #[command(flatten)]
    args: HeadArgs,
}

/// Print all rows as JSON, one on each line.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill footer cat trips.parquet --row-group 0 > rows.ndjson
  sawmill footer cat wide.parquet --column price_17 | jq -s 'map(.price_17) | add'")]
pub(crate) struct AllRowsArgs {
    #[command(flatten)]
    args: HeadArgs,
}

pub(crate) fn first(args: &FirstRowsArgs, console: Console, cancel: &Arc<AtomicBool>) -> Result<(), Error> {
    run(&args.args, args.rows, console, cancel)
}

pub(crate) fn all(args: &AllRowsArgs, console: Console, cancel: &Arc<AtomicBool>) -> Result<(), Error> {
    run(&args.args, u64::MAX, console, cancel)
}

#[cfg(not(feature = "full"))]
use crate::demo_build::values::head as run;
#[cfg(feature = "full")]
use crate::footer::values::head::run;
