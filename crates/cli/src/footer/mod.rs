//! `sawmill footer`: shows what the footers of Parquet files state.
//!
//! ```text
//! paths ─walk─▶ files ─decode, on threads─▶ summary, facts, footer ─in order─▶ views ─▶ standard output
//!                                                      └──▶ dataset: sums and peculiarities
//! ```
//!
//! `sawmill-inspect` has the views. After a file's views are written, the command keeps only its summary.

mod diff;
mod document;
mod extract;
mod fix;
mod output_file;
pub(crate) mod place;
mod run;
mod selection;
pub(crate) mod values;

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use sawmill_footer::{Footer, Options};
use sawmill_inspect::{FooterSummary, TextStyle, View, escaped};
use sawmill_loader::Part;
use sawmill_source::open_footer;

use crate::arguments::stores::StoreArgs;
use crate::arguments::{part_arg, size_arg};
use crate::error::{Error, Result};
use crate::footer::place::{Place, Places};
pub(crate) use crate::footer::run::Opening;
use crate::footer::run::{OutputFormat, Run};
use crate::footer::selection::RowGroups;
use crate::screen::console::Console;
use crate::screen::phases::{bytes, seconds, thousands};

/// Decode the footers of Parquet files and show what they state.
///
/// Without a view, shows one line for each file. For several files, it also summarises the dataset: rows,
/// bytes, schemas that differ, row groups of unusual size, columns without bounds.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true
)]
pub(crate) struct FooterCommand {
    #[command(subcommand)]
    other: Option<Command>,
    #[command(flatten)]
    args: FooterArgs,
}

/// Commands other than views.
#[derive(Subcommand, Debug)]
enum Command {
    Diff(diff::DiffArgs),
    Head(values::args::FirstRowsArgs),
    Cat(values::args::AllRowsArgs),
    Bloom(values::args::BloomArgs),
    Dictionary(values::args::DictionaryArgs),
    Fix(fix::FixArgs),
    Extract(extract::ExtractArgs),
}

/// Files, and what to show of them.
///
/// Without a view, shows one line for each file. For several files, it also summarises the dataset: rows,
/// bytes, schemas that differ, row groups of unusual size, columns without bounds.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill footer ls data.parquet        # the same as `sawmill footer data.parquet`
  sawmill footer /data/trips            # every .parquet file below the directory
  sawmill footer '/data/**/part-*.parquet'
  sawmill footer schema data.parquet    # or --schema; so check, stats, meta, ...
  sawmill footer data.parquet --bounds --column 'address.*' --row-group 0..4
  sawmill footer data.parquet --sizes
  sawmill footer data.parquet --page-headers --column name   # dictionaries included
  sawmill footer check /data/trips --pages
  sawmill footer /data/trips --plan-merge          # small files, to merge into files of 256 MiB
  sawmill footer diff old.parquet new.parquet      # schema, layout, statistics
  sawmill footer head data.parquet -n 3            # rows as JSON; `cat` prints all
  sawmill footer bloom data.parquet --column id --value 42   # row groups that may hold it
  sawmill footer dictionary data.parquet --column city       # the values of dictionaries
  sawmill footer fix data.parquet fixed.parquet    # what strict readers refuse
  sawmill footer extract --scrub data.parquet report.parquet   # for a bug report
  curl -s https://example.com/data.parquet | sawmill footer -
  sawmill footer s3://bucket/trips --ndjson --part 2/8   # in a job of 8 processes
  sawmill footer *.parquet --json | jq '.files[].rows'
  sawmill footer s3://bucket/trips 'gs://bucket/2020/*.parquet' https://host/data.parquet
  sawmill footer /data/trips --ndjson | jq -c 'select(.codec == \"UNCOMPRESSED\") | .path'

If a file cannot be read, an error names it, the other files are still shown, and the exit code is 1. Control
characters in names and values are escaped.")]
pub(crate) struct FooterArgs {
    /// Parquet files, directories to search, quoted patterns, @LIST, or - for standard input.
    ///
    /// A search leaves out names that start with _ or . . Patterns have *, ?, [a-z], and ** for any directories. @LIST
    /// is a file with one path on each line, @- standard input, - one Parquet file on standard input. Paths may be
    /// URLs: s3://, gs://, az://, abfss://, http(s)://.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Take only one of several parts of the files: 2/4, or auto/4 for the index that a job scheduler has set
    /// (Kubernetes, Slurm, AWS Batch).
    #[arg(long, value_name = "K/N", value_parser = part_arg::part)]
    part: Option<Part>,
    /// Show the schema, as a message type and as a tree.
    #[arg(long, help_heading = "Views")]
    schema: bool,
    /// Show rows, sizes, offsets and sort orders of the row groups.
    #[arg(long, help_heading = "Views")]
    row_groups: bool,
    /// Show types, codecs, encodings, sizes and offsets of the column chunks.
    #[arg(long = "chunks", help_heading = "Views")]
    columns: bool,
    /// Show bounds and counts of the column chunks (-v: long values in full).
    #[arg(long = "bounds", help_heading = "Views")]
    statistics: bool,
    /// Show the data pages of the column chunks, from the page indexes: offsets, rows, bounds.
    #[arg(long = "data-pages", help_heading = "Views")]
    page_index: bool,
    /// Read all pages of the column chunks, and show their headers: types, offsets, sizes, values, CRCs.
    #[arg(long, help_heading = "Views")]
    page_headers: bool,
    /// Show the file's keys and values (-v: long values in full).
    #[arg(long = "metadata", help_heading = "Views")]
    key_value: bool,
    /// Show where the bytes of the file and of its footer go, by column (-v: all columns).
    #[arg(long, help_heading = "Views")]
    sizes: bool,
    /// Show the footer's Thrift: byte offset, field id, name and value (-v: long values in full).
    #[arg(long, help_heading = "Views")]
    dump: bool,
    /// Check offsets, sizes, overlaps, counts and indexes, and show everything that is wrong (exit code 1 if
    /// anything is). For several files, show only findings and a total.
    #[arg(long, help_heading = "Checks")]
    check: bool,
    /// With --check: read all pages, too, compare their levels with their headers and rows, and verify the checksums of
    /// those that have one.
    #[arg(long, help_heading = "Checks", requires = "check")]
    pages: bool,
    /// Print one line of JSON for each column chunk, with its bounds.
    #[arg(long, help_heading = "Formats", conflicts_with_all = VIEWS.split(' '), conflicts_with = "csv")]
    ndjson: bool,
    /// Print one line of comma-separated values for each column chunk, with its bounds.
    #[arg(long, help_heading = "Formats", conflicts_with_all = VIEWS.split(' '))]
    csv: bool,
    /// Plan which small files to merge into files of up to BYTES: files of one directory and schema, in the
    /// order of their names (with --json, all of their names).
    #[arg(long, value_name = "BYTES", value_parser = size_arg::bytes, num_args = 0..=1, require_equals = true,
        default_missing_value = "256MiB", help_heading = "Checks", conflicts_with_all = VIEWS.split(' '),
        conflicts_with_all = PARTS.split(' '), conflicts_with_all = ["ndjson", "csv"])]
    plan_merge: Option<u64>,
    /// Only columns whose paths match: * is any part of a name, ** any part of a path, ? any character. A
    /// text without these selects the columns at or below that path. A \ makes the next character literal.
    /// May be repeated.
    #[arg(long, value_name = "GLOB", help_heading = "Selection")]
    column: Vec<String>,
    /// Only the columns with these numbers, starting at 0, and those that --column names.
    #[arg(long, value_name = "N,N", value_delimiter = ',', help_heading = "Selection")]
    column_number: Vec<usize>,
    /// Only these row groups: 3, 2..5 (without 5), 2.. or ..5; rows=..5000 for those with fewer than 5000 rows;
    /// bytes=0..64MB for those whose data starts in this range of the file. Adjacent ranges of bytes that cover the file
    /// select each row group exactly once.
    #[arg(long, value_name = "N..M", value_parser = RowGroups::parse, help_heading = "Selection")]
    row_group: Option<RowGroups>,
    /// How many bytes to read from the end of a file at first. A longer footer takes a second read.
    #[arg(long, value_name = "BYTES", value_parser = size_arg::bytes, allow_hyphen_values = true,
        default_value = "64KiB", help_heading = "Opening")]
    tail_hint: u64,
    /// The longest footer to accept, such as 2GiB: a damaged file may claim a footer of 4 GiB.
    #[arg(long, value_name = "BYTES", value_parser = size_arg::bytes, allow_hyphen_values = true,
        default_value = "1GiB", help_heading = "Opening")]
    max_footer: u64,
    /// How much of a footer to verify before showing it. Anything wrong is an error.
    #[arg(long = "strictness", value_name = "LEVEL", value_enum, default_value_t = selection::Level::Decoded,
        help_heading = "Opening")]
    verify: selection::Level,
    /// Map footers into memory instead of reading them: for footers of hundreds of megabytes in the page
    /// cache. Nothing may change or truncate the files until the command ends.
    #[cfg(target_pointer_width = "64")]
    #[arg(long, help_heading = "Opening")]
    mapped: bool,
    #[command(flatten)]
    stores: StoreArgs,
    /// How many objects to read at the same time.
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::new(64).unwrap_or(NonZeroUsize::MIN),
        help_heading = "Stores")]
    requests: NonZeroUsize,
}

/// The options that select parts of a footer.
const PARTS: &str = "column column_number row_group";

/// The options for views.
const VIEWS: &str = "schema row_groups columns statistics page_index page_headers key_value sizes dump check";

impl FooterArgs {
    /// The files and what to decode of them, for a benchmark, which shows nothing.
    pub(crate) fn without_views(&self) -> Result<(Places, Opening)> {
        if !self.views().is_empty() || self.ndjson || self.csv || self.plan_merge.is_some() {
            return Err(Error::usage("a benchmark shows nothing of the files", "a view", "leave out views"));
        }
        Ok((self.located()?, self.opening()))
    }

    /// The files that are named, or this part of them: neighbours, and as many in each part.
    fn located(&self) -> Result<Places> {
        let is_size = |path: &&PathBuf| path.to_str().is_some_and(|text| size_arg::bytes(text).is_ok());
        if let Some(size) =
            self.files.first().filter(|path| self.plan_merge.is_some() && !path.exists()).filter(is_size)
        {
            let (what, size) = ("expected a file, found a size", escaped_path(size));
            return Err(Error::usage(what, &size, format!("write --plan-merge={size}")));
        }
        let mut located = Places::new(&self.files, &self.stores)?;
        if let Some(part) = self.part {
            let bound = |parts: u32| located.places.len() * parts as usize / part.parts() as usize;
            let (from, to) = (bound(part.number() - 1), bound(part.number()));
            located.places.truncate(to);
            located.places.drain(..from);
        }
        Ok(located)
    }

    /// Checks that the options suit these places.
    fn suit(&self, places: &[Place]) -> Result<()> {
        #[cfg(target_pointer_width = "64")]
        if let Some(other) = places.iter().find(|place| self.mapped && !matches!(place, Place::Path(_))) {
            let what = match other {
                Place::StandardInput(_) => "standard input cannot be mapped into memory",
                _ => "an object cannot be mapped into memory",
            };
            return Err(Error::usage(what, escaped_place(other), "leave out --mapped"));
        }
        if let (Some(_), [Place::StandardInput(_)]) = (self.plan_merge, places) {
            let what = "expected files whose merge to plan, found standard input, which is one file";
            return Err(Error::usage(what, "-", "name the files, their directory, or a pattern"));
        }
        Ok(())
    }

    fn opening(&self) -> Opening {
        Opening {
            options: selection::options(self),
            is_checked: self.verify == selection::Level::Consistency,
            row_groups: self.row_group.clone(),
            #[cfg(target_pointer_width = "64")]
            mapped: self.mapped,
            tail: self.tail_hint,
            max_footer: self.max_footer,
            requests: self.requests.get(),
        }
    }

    fn views(&self) -> Vec<View> {
        let asked = [
            (self.schema, View::Schema),
            (self.row_groups, View::RowGroups),
            (self.columns, View::Columns),
            (self.statistics, View::Statistics),
            (self.page_index, View::PageIndex),
            (self.page_headers, View::PageHeaders),
            (self.key_value, View::KeyValue),
            (self.sizes, View::Sizes),
            (self.dump, View::Dump),
            (self.check, View::Check { pages: self.pages }),
        ];
        asked.into_iter().filter_map(|(asked, view)| asked.then_some(view)).collect()
    }
}

/// How numbers are written for people.
pub(crate) fn style(console: Console) -> TextStyle {
    TextStyle::new(thousands, bytes, seconds).whole_values(console.verbose > 0)
}

/// A path as a terminal shows it.
fn escaped_path(path: &Path) -> String {
    escaped(&path.display().to_string()).into_owned()
}

/// A place as a terminal shows it.
fn escaped_place(place: &impl fmt::Display) -> String {
    escaped(&place.to_string()).into_owned()
}

/// Decodes what `options` select of the footer of one file.
pub(crate) fn decode(
    file: &Path,
    options: &Options,
) -> Result<(FooterSummary, Footer), sawmill_footer::Error> {
    FooterSummary::new(file, || open_footer(file, options))
}

/// Decodes the footer of one file.
pub(crate) fn summarise(file: &Path) -> Result<FooterSummary> {
    decode(file, &Options::new()).map(|(summary, _)| summary).map_err(Error::from)
}

pub(crate) fn run(command: &FooterCommand, console: Console) -> Result<()> {
    let FooterCommand { other, args } = command;
    match other {
        Some(Command::Diff(args)) => return diff::run(args, console),
        Some(Command::Head(args)) => return values::head(&args.args, args.rows, console),
        Some(Command::Cat(args)) => return values::head(&args.args, u64::MAX, console),
        Some(Command::Bloom(args)) => return values::bloom(args, console),
        Some(Command::Dictionary(args)) => return values::dictionary(args, console),
        Some(Command::Fix(args)) => return fix::run(args, console),
        Some(Command::Extract(args)) => return extract::run(args, console),
        None => {}
    }
    if console.json && (args.ndjson || args.csv) {
        let advice = "give one of --json, --ndjson and --csv";
        return Err(Error::usage("several formats for one output", "", advice));
    }
    let Places { places, objects } = args.located()?;
    args.suit(&places)?;
    let opening = args.opening();
    if let Some(target) = args.plan_merge {
        return Run::new((&places, &objects), opening, Vec::new(), OutputFormat::MergePlan, console)
            .plan_merge(target);
    }
    let format = match (console.json, args.ndjson, args.csv) {
        (true, ..) => OutputFormat::Json,
        (_, true, _) => OutputFormat::Ndjson,
        (_, _, true) => OutputFormat::Csv,
        _ => OutputFormat::Text,
    };
    Run::new((&places, &objects), opening, args.views(), format, console).run()
}
