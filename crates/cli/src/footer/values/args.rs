//! The arguments of `sawmill footer head`, `cat`, `bloom` and `dictionary`.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::size_arg;
use crate::arguments::stores::StoreArgs;
use crate::footer::selection::RowGroups;
use crate::screen::phases;

/// The files, and which of their column chunks.
#[derive(Args, Debug)]
pub(crate) struct ChunkArgs {
    /// Parquet files, directories, quoted patterns or URLs, as with `sawmill footer`.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Only columns whose paths match, as with `sawmill footer --column`. Sawmill reads nothing of the others. May be
    /// repeated.
    #[arg(long, value_name = "GLOB")]
    pub column: Vec<String>,
    /// Only these row groups: 3, 2..5 (without 5), 2.. or ..5, as with `sawmill footer --row-group`.
    #[arg(long, value_name = "N..M", value_parser = RowGroups::parse)]
    pub row_group: Option<RowGroups>,
    #[command(flatten)]
    pub stores: StoreArgs,
}

/// The files, and which of their columns and rows.
#[derive(Args, Debug)]
pub(crate) struct HeadArgs {
    #[command(flatten)]
    pub chunks: ChunkArgs,
    /// Leave out this many rows first.
    #[arg(long, value_name = "ROWS", value_parser = phases::count, default_value = "0")]
    pub skip: u64,
    /// The largest page to decompress, such as 1GiB: a page of a damaged or hostile file may claim 2 GiB. Writers
    /// make pages of about 1 MiB, unless one value is larger. A list may take twice as much in a row.
    #[arg(long, value_name = "BYTES", value_parser = size_arg::bytes, allow_hyphen_values = true,
        default_value = "64MiB")]
    pub max_page: u64,
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
    pub rows: u64,
    #[command(flatten)]
    pub args: HeadArgs,
}

/// Print all rows as JSON, one on each line.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill footer cat trips.parquet --row-group 0 > rows.ndjson
  sawmill footer cat wide.parquet --column price_17 | jq -s 'map(.price_17) | add'")]
pub(crate) struct AllRowsArgs {
    #[command(flatten)]
    pub args: HeadArgs,
}

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
    #[command(flatten)]
    pub chunks: ChunkArgs,
    /// At most this many values of each dictionary; all by default.
    #[arg(short = 'n', long, value_name = "VALUES", value_parser = phases::count)]
    pub values: Option<u64>,
}
