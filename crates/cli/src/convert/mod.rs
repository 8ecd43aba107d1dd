//! `sawmill convert`: the rows of files in another format.

mod folders;
mod out;
mod parquet;
mod parse_only;
mod parts;
mod run;
mod staging;
mod store_folder;
mod units_in_order;
mod writer;

pub(crate) use parquet::MAX_DICTIONARIES;
pub(crate) use run::run;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use sawmill_source::PartitionedBy;

use crate::arguments::inputs::{ColumnArgs, ObjectArgs};
use crate::arguments::order_args::OrderArgs;
use crate::arguments::row_args::RowArgs;
use crate::arguments::size_arg;
use crate::arguments::text::TextArgs;
use crate::arguments::words::words;
use crate::error::Error;
use crate::r#gen::csv_null;
use crate::r#gen::format::Format;
use crate::r#gen::options::file_args::PageArgs;
use crate::screen::phases;

/// Convert CSV to Parquet, and Parquet to CSV or NDJSON.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill convert trips.csv trips.parquet --compression zstd
  sawmill convert trips.csv --out trips.parquet --compression snappy --compression note=zstd:9 --compression id=none
  sawmill convert 'logs/*.tsv' --no-header --names at,host,line --out logs.parquet --row-group-rows 1M
  sawmill convert trips.parquet --out trips.csv --columns id,fare --where 'fare > 10'
  sawmill convert trips.csv.gz --out trips.parquet --bloom id --encoding at=delta --rejects bad.csv
  sawmill convert events.ndjson.zst --types 'payload=json' --out events.parquet
  sawmill convert trips.parquet --as ndjson --out - | head
  sawmill convert trips.csv --parse-only --columns fare
  sawmill convert 'trips/*.csv.gz' --out trips-parquet --file-size 1GB --compression zstd
  sawmill convert trips.csv --sort-by at --partition-by 'day(at)' --out trips
  sawmill convert trips.csv --sort-by at --partition-by 'month(at)' --out trips --index-dir /fast/tmp --explain
  sawmill convert 's3://bucket/raw/*.csv' --out s3://bucket/trips.parquet --compression zstd
  sawmill convert trips.csv --sort-by at --partition-by 'day(at)' --out s3://bucket/trips
  zcat trips.csv.gz | sawmill convert - --format csv --types 'fare=decimal(10,2)' --out trips.parquet

The output has the rows of all inputs in their order, or as --sort-by orders them. It takes its name when it is
complete, a directory when all of its files are.")]
pub(crate) struct ConvertArgs {
    /// Parquet files or text such as .csv or .ndjson.gz (all of one kind), directories, patterns, @LIST, - for
    /// standard input, gen:DATASET?rows=10M for generated rows, or URLs of objects.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The file or the object to write: a path, or s3://, gs:// and az:// URLs. - is standard output, for CSV
    /// and NDJSON. A name that ends with / or has no extension is a directory of part-00000.parquet and so on,
    /// or of folders with --partition-by. Sawmill sends objects to a store when all files are complete. Without
    /// this option, the last of several FILES is the output, if nothing exists there.
    #[arg(long, short, value_name = "FILE|DIR")]
    out: Option<PathBuf>,
    /// Read and parse all rows on all cores, write nothing, and print the number of rows, the time, and the sums
    /// of the columns of numbers.
    #[arg(long, conflicts_with_all = ["out", "partition_by", "sort_by", "to", "overwrite", "explain",
        "row_group_rows", "csv_null"])]
    parse_only: bool,
    /// Write Parquet files into folders such as day=2024-01-05: month(COLUMN), day(COLUMN), hour(COLUMN) or
    /// year(COLUMN) of a date or timestamp, or list(COLUMN) for a folder per value. The files then lack the column
    /// of a list. Periods of timestamps with a zone are in UTC.
    #[arg(help_heading = "Which rows go where", long, value_name = "BY", value_parser = partitioned_by)]
    partition_by: Option<PartitionedBy>,
    /// Print what would be done, and stop: the phases with their memory and disk, and the types of text.
    #[arg(long)]
    explain: bool,
    /// The format to write [default: by the extension of --out].
    #[arg(long = "as", value_enum)]
    to: Option<OutputFormat>,
    /// Replace the file if it exists, or a directory that has only such files. An input is never replaced.
    #[arg(long)]
    overwrite: bool,
    /// Approximate size of each file of a directory except the last, like 1GB; a file has at least 4,096 rows
    /// [default: 256MiB].
    #[arg(help_heading = "Which rows go where", long, value_name = "BYTES", value_parser = size_arg::bytes, allow_hyphen_values = true,
        conflicts_with_all = ["partition_by", "parse_only"])]
    file_size: Option<u64>,
    /// Most rows of a row group of Parquet, like 128k or 1M [default: 131072]. It ends at 128 MiB at the latest.
    #[arg(help_heading = "Which rows go where", long, value_parser = phases::count)]
    row_group_rows: Option<u64>,
    /// Leave out records of text that cannot be read, and write them to this file with their places and the
    /// reasons: CSV, or NDJSON if the name ends in .ndjson or .jsonl.
    #[arg(help_heading = "Values", long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// Fail if there are more of them [default: 100000].
    #[arg(help_heading = "Values", long, value_name = "N", requires = "rejects", value_parser = phases::count)]
    max_rejects: Option<u64>,
    /// How CSV writes NULL [default: an empty field; the empty string is ""].
    #[arg(long, value_name = "TEXT", value_parser = csv_null)]
    csv_null: Option<String>,
    /// Threads that read and parse [default: one for each core].
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    #[command(flatten)]
    order: OrderArgs,
    #[command(flatten)]
    pages: PageArgs,
    #[command(flatten)]
    columns: ColumnArgs,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    objects: ObjectArgs,
}

fn partitioned_by(text: &str) -> Result<PartitionedBy, String> {
    text.parse().map_err(|error: sawmill_source::Error| error.to_string())
}

impl ConvertArgs {
    /// The output; the empty path if there is none, with --parse-only.
    /// Takes the last of several files for the output if none is named. An existing file is an input: only `--out`
    /// may replace it.
    ///
    /// # Errors
    /// No output: one file, or the last one exists.
    pub(crate) fn take_out(&mut self) -> Result<(), Error> {
        if self.out.is_some() || self.parse_only {
            return Ok(());
        }
        let several = self.files.len() > 1;
        let missing = |what: &str, place: String, advice: &str| Err(Error::usage(what, place, advice));
        let Some(last) = self.files.pop_if(|_| several) else {
            return missing(
                "no output",
                "sawmill convert".to_owned(),
                "name it: sawmill convert IN OUT, or --out",
            );
        };
        let shown = last.display().to_string();
        if self.overwrite {
            return missing("which file to replace is not clear", shown, "name the output with --out");
        }
        if shown.starts_with('@') || shown.starts_with("gen:") || shown.contains(['*', '?', '[']) {
            return missing(
                "no output: the last word names inputs",
                shown,
                "name the output: sawmill convert IN OUT",
            );
        }
        if last.symlink_metadata().is_ok() && !sawmill_store::is_stream(&last) {
            let advice = format!("name another output, or replace it: --out {shown} --overwrite");
            return missing("no output: the last file exists", shown, &advice);
        }
        self.out = Some(last);
        Ok(())
    }

    fn out(&self) -> &Path {
        self.out.as_deref().unwrap_or(Path::new(""))
    }
}

words!(
    /// The format to write.
    OutputFormat => Format {
        /// Parquet.
        Parquet,
        /// Comma-separated values after a line of names; not for nested columns.
        Csv,
        /// One JSON object on each line.
        Ndjson,
    }
);
