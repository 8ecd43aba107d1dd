//! `sawmill verify`: compares a table with Parquet files.

use std::path::PathBuf;

use clap::Args;
use sawmill_loader::{LoadOptions, Located, Verification};
use sawmill_source::UnlikeFiles;
use serde::Serialize;

use crate::arguments::crate_options::CrateArgs;
use crate::arguments::inputs::{self, ColumnArgs, ForTable, ObjectArgs};
use crate::arguments::nested_args::NestedArgs;
use crate::arguments::row_args::RowArgs;
use crate::arguments::target::{Destination, EffortArgs, TargetArgs};
use crate::arguments::text::{TableText, TextArgs};
use crate::arguments::value_args::ValueArgs;
use crate::error::{Error, Exit, Result};
use crate::interrupt;
use crate::load::reading::Reading;
use crate::load::report::except;
use crate::load::tables as load_tables;
use crate::screen::console::Console;
use crate::screen::phases::{self, counted, thousands};

/// Compare a table with Parquet or CSV files: number of rows, non-null values of each column, and content
/// sum.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill verify /data/trips --to postgres://me@localhost/db --table trips
  sawmill verify contacts.parquet --to postgres://localhost/db --table contacts --nested tables
  sawmill verify /data/trips --to postgres://me@localhost/db --table trips --where 'vendor = 2'
  sawmill verify /data/trips --to postgres://me@localhost/db --table trips --columns id,pickup
  sawmill verify /data/trips --to postgres://me@localhost/db --table trips --locate
  sawmill verify trips.csv --to postgres://me@localhost/db --table trips --types 'fare=decimal(10,2)'
  sawmill verify new.parquet --to postgres://me@localhost/db --table trips --rejects rejected.parquet
  sawmill verify /data/trips --to crate://localhost:4200 --table trips --timestamps truncate

Any program may have loaded the table. The exit code is 4 if the two differ.")]
pub(crate) struct VerifyArgs {
    /// Parquet or text files, directories, patterns, @LIST, gen:DATASET, also as URLs of stores.
    ///
    /// Text is .csv, .ndjson and the like, compressed or not, all of one kind. Directories are searched, except for names
    /// that start with _ or . . @LIST is a file with one path on each line (@- is standard input), - a file on standard
    /// input (text with --format csv), gen:DATASET?rows=10M&seed=7 generated rows. URLs: s3://, gs://, az://, abfss://,
    /// http(s)://.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// If they differ, report the missing rows and their row groups. PostgreSQL only.
    #[arg(long)]
    locate: bool,
    /// The file of rejected rows that a load of these files wrote: leave these rows out. PostgreSQL only, but
    /// for lines of text that cannot be read (FILE.csv). May be given twice, once for each.
    #[arg(long, value_name = "FILE")]
    rejects: Vec<PathBuf>,
    #[command(flatten)]
    columns: ColumnArgs,
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    objects: ObjectArgs,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    nested: NestedArgs,
    #[command(flatten)]
    effort: EffortArgs,
    #[command(flatten)]
    values: ValueArgs,
    #[command(flatten)]
    crate_options: CrateArgs,
}

pub(crate) fn run(args: &VerifyArgs, console: Console) -> Result<()> {
    let target = args.values.apply(args.target.destination(&args.crate_options, &args.effort)?)?;
    target.refuse_for_crate_db(args.locate, "--locate")?;
    let json = matches!(target, Destination::Postgres(_));
    let (lines, rows) = args.text.files_of_rejects(&args.files, &args.rejects, json)?;
    let text = args.text.with_rejects(lines, None);
    let text = text.with_types_of(&target, &args.columns.rename, false)?;
    let target = text.typed(target, &args.columns.rename)?;
    target.refuse_for_crate_db(rows.is_some(), "--rejects")?;
    let target = target.rejects(rows, None);
    let options = LoadOptions { locate: args.locate, ..args.effort.options_for(&target)? };
    let table_text = || match text.table_types.is_empty() {
        true => TableText::find(&target, &options, &args.columns, false),
        false => Ok(TableText::default()),
    };
    // A table may have followed its files.
    let inputs = inputs::open_unlike(
        &args.files,
        &args.columns,
        &text,
        &args.objects,
        ForTable { text: &table_text, ..ForTable::none(UnlikeFiles::United) },
        console,
    )?;
    let filtered = args.rows.filtered(&inputs, console)?;
    let reading = Reading::new(&inputs, filtered.as_ref());
    if let Some(folders) = reading.folders() {
        console.notice(&folders);
    }
    let source = filtered.as_ref().map_or(inputs.source(), |filtered| filtered);
    let limited = args.rows.limited(source);
    let source = limited.as_ref().map_or(source, |limited| limited);
    let target = args.nested.apply(target)?;
    if let Some(tables) = args.nested.tables(&target, source)? {
        return load_tables::verify(&tables, &options, console);
    }
    console.step(&format!("verifying {}", args.target.table()));
    let verification = interrupt::during(|control| target.verify(source, &options, control))?;
    let report = Report { verification: &verification, reading };
    let text = || table_of(&verification, report.reading.records_left_out.unwrap_or_default());
    if verification.matches() {
        console.summary(&report, text)?;
    } else {
        console.result(&report, text)?;
    }
    check(&verification, args.target.table()).map_err(|error| target.advised(error))
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    verification: &'a Verification,
    #[serde(flatten)]
    reading: Reading,
}

/// An error if the two sides differ.
pub(crate) fn check(verification: &Verification, table: &str) -> Result<()> {
    if verification.matches() {
        return Ok(());
    }
    let mut what = "the table does not hold what the files hold".to_owned();
    let (source, target) = (verification.source.rows, verification.target.rows);
    if source != target {
        what += &format!(": {} instead of {}", counted(target, "row"), thousands(source));
    }
    let place = match verification.differing.as_slice() {
        [] => format!("table {table}"),
        columns => format!("table {table}, columns {}", columns.join(", ")),
    };
    let advice = match verification.located {
        None => "--locate shows where; load with --mode replace loads it from the beginning",
        Some(_) => "load with --mode replace loads it from the beginning",
    };
    Err(Error::new(Exit::Mismatch, what, place, advice))
}

/// Both sides, line by line; `left_out` records of the files cannot be read.
pub(crate) fn table_of(verification: &Verification, left_out: u64) -> String {
    let (source, target) = (&verification.source, &verification.target);
    let mut rows = vec![["", "files", "table"].map(str::to_owned)];
    rows.push(["rows".to_owned(), thousands(source.rows), thousands(target.rows)]);
    let counts = source.non_null.iter().zip(&target.non_null);
    for (name, (source, target)) in verification.columns.iter().zip(counts) {
        rows.push([format!("{name} not null"), thousands(*source), thousands(*target)]);
    }
    let sums = [source, target].map(|side| side.content_sum.to_string());
    let [source_sum, target_sum] = sums;
    rows.push(["content sum".to_owned(), source_sum, target_sum]);
    let rejected = verification.rejected + left_out;
    if rejected > 0 {
        rows.push(["rejected, left out".to_owned(), thousands(rejected), String::new()]);
    }
    let rejected = except(rejected);
    let mut verdict = match (verification.matches(), verification.not_compared.as_slice()) {
        (true, []) => format!("verified: both hold the same{rejected}\n"),
        (true, _) => format!("verified: both hold the same in these columns{rejected}\n"),
        (false, _) => "they differ\n".to_owned(),
    };
    if !verification.not_compared.is_empty() {
        let columns = verification.not_compared.join(", ");
        verdict += &format!("not compared: columns {columns} of the table\n");
    }
    phases::table(&rows) + &verdict + &located(verification.located.as_ref())
}

/// Where the two sides differ.
fn located(located: Option<&Located>) -> String {
    const SHOWN: usize = 20;
    let Some(Located { units, rows_of_none }) = located else { return String::new() };
    let mut text: String = units.iter().take(SHOWN).map(|unit| format!("{unit}\n")).collect();
    if units.len() > SHOWN {
        let more = counted((units.len() - SHOWN) as u64, "more unit");
        text += &format!("and {more}; --json lists all of them\n");
    }
    text + &format!("the table has {} that the files lack\n", counted(*rows_of_none, "row"))
}
