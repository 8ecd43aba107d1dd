//! The arguments of `sawmill footer bloom`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;

use crate::arguments::stores::StoreArgs;
use crate::error::Error;
use crate::screen::console::Console;

/// Look values up in the Bloom filters of a column.
///
/// A filter knows for certain that a value is absent from a row group; a value that it may hold has to be
/// searched there. Dates, times and decimals are written as `sawmill footer --bounds` shows them, bytes
/// as 0x and hexadecimal digits.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill footer bloom orders.parquet --column id --value 42
  sawmill footer bloom /data/orders --column customer.email --value a@example.com --value b@example.com
  sawmill footer bloom '/data/**/*.parquet' --column day --value 2024-02-29 --json | jq '.[].row_groups'")]
pub(crate) struct BloomArgs {
    /// Parquet files, directories, quoted patterns or URLs, as with `sawmill footer`.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// The column, as with `sawmill footer --column`; it must be a single one.
    #[arg(long, value_name = "COLUMN")]
    pub column: String,
    /// A value to look up. May be repeated.
    #[arg(long, value_name = "VALUE", required = true, allow_hyphen_values = true)]
    pub value: Vec<String>,
    #[command(flatten)]
    pub stores: StoreArgs,
}

pub(crate) fn look_up(args: &BloomArgs, console: Console, cancel: &Arc<AtomicBool>) -> Result<(), Error> {
    run(args, console, cancel)
}

#[cfg(not(feature = "full"))]
use crate::demo_build::values::bloom as run;
#[cfg(feature = "full")]
use crate::footer::values::bloom::run;
