//! The arguments of `sawmill footer dictionary`.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;

use crate::arguments::stores::StoreArgs;
use crate::error::Error;
use crate::footer::selection;
use crate::screen::console::Console;
use crate::screen::phases;

/// Show the values of dictionaries, which are the distinct values of a column chunk.
///
/// A writer that gave up on a dictionary stored later values in pages without one: --chunks shows whether
/// the encodings of a chunk are mixed. Chunks without a dictionary are left out.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill footer dictionary trips.parquet --column payment_type
  sawmill footer dictionary trips.parquet --column 'zone*' --row-group 0 -n 20
  sawmill footer dictionary /data/trips --column vendor --json | jq '[.[].values[]] | unique'
  sawmill footer dictionary s3://bucket/trips/1.parquet --column vendor")]
pub(crate) struct DictionaryArgs {
    /// Parquet files, directories, quoted patterns or URLs, as with `sawmill footer`.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Only columns whose paths match, as with `sawmill footer --column`. May be repeated.
    #[arg(long, value_name = "GLOB")]
    pub column: Vec<String>,
    /// Only these row groups: 3, 2..5 (without 5), 2.. or ..5.
    #[arg(long, value_name = "N..M", value_parser = selection::row_groups)]
    pub row_group: Option<Range<usize>>,
    /// At most this many values of each dictionary; all by default.
    #[arg(short = 'n', long, value_name = "VALUES", value_parser = phases::count)]
    pub values: Option<u64>,
    #[command(flatten)]
    pub stores: StoreArgs,
}

pub(crate) fn show(args: &DictionaryArgs, console: Console, cancel: &Arc<AtomicBool>) -> Result<(), Error> {
    run(args, console, cancel)
}

#[cfg(not(feature = "full"))]
use crate::demo_build::values::dictionary as run;
#[cfg(feature = "full")]
use crate::footer::values::dictionary::run;
