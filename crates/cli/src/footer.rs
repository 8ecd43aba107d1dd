//! `sawmill footer`: what the footers of Parquet files say.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use sawmill_footer::Footer;
use serde::Serialize;

use crate::console::Console;
use crate::error::Error;
use crate::inputs;
use crate::phases::{bytes, seconds, table, thousands};

/// Decode the footers of Parquet files and summarise them.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill footer data.parquet
  sawmill footer /data/trips            # every .parquet file below the directory
  sawmill footer *.parquet --json | jq '.files[].rows'

A file that cannot be read is an error that names it; the others are shown all the same.")]
pub(crate) struct FooterArgs {
    /// Parquet files, or directories that are searched for them.
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// One file's footer, summarised.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FooterSummary {
    pub file: PathBuf,
    pub rows: i64,
    pub row_groups: usize,
    pub columns: usize,
    /// Bytes of all column chunks, as stored and as encoded before compression.
    pub compressed_bytes: i64,
    pub uncompressed_bytes: i64,
    pub footer_bytes: usize,
    /// Opening the file, reading the footer's bytes and decoding them.
    pub decode_seconds: f64,
    pub created_by: Option<String>,
}

#[derive(Serialize)]
struct FooterResult<'a> {
    files: &'a [FooterSummary],
}

pub(crate) fn run(args: &FooterArgs, console: Console) -> Result<(), Error> {
    let files = inputs::parquet_files(&args.files)?;
    let mut summaries = Vec::with_capacity(files.len());
    let mut failed: Vec<Error> = Vec::new();
    for file in &files {
        match summarise(file) {
            Ok(summary) => summaries.push(summary),
            Err(error) => failed.push(error),
        }
    }
    if !summaries.is_empty() || failed.is_empty() {
        console.result(&FooterResult { files: &summaries }, || table_of(&summaries))?;
    }
    let total = failed.len();
    match failed.pop() {
        None => Ok(()),
        Some(only) if total == 1 => Err(only),
        Some(last) => {
            for error in failed {
                eprintln!("error: {error}");
            }
            eprintln!("error: {last}");
            Err(Error::failure(format!("{total} of {} files could not be read", files.len()), "", ""))
        }
    }
}

/// Decodes the footer of one file.
pub(crate) fn summarise(file: &Path) -> Result<FooterSummary, Error> {
    let started = Instant::now();
    let footer = Footer::open(file)?;
    let decode_seconds = started.elapsed().as_secs_f64();
    let sum = |of: fn(&sawmill_footer::ColumnChunk<'_>) -> i64| {
        footer
            .row_groups()
            .flat_map(|group| group.columns())
            .map(|chunk| of(&chunk))
            .fold(0, i64::saturating_add)
    };
    Ok(FooterSummary {
        file: file.to_owned(),
        rows: footer.num_rows(),
        row_groups: footer.num_row_groups(),
        columns: footer.num_columns(),
        compressed_bytes: sum(|chunk| chunk.compressed_size()),
        uncompressed_bytes: sum(|chunk| chunk.uncompressed_size()),
        footer_bytes: footer.footer_len(),
        decode_seconds,
        created_by: footer.created_by().map(str::to_owned),
    })
}

/// The summaries as a table, with a total below more than one.
pub(crate) fn table_of(summaries: &[FooterSummary]) -> String {
    let head = ["file", "rows", "row groups", "columns", "compressed", "uncompressed", "footer", "decode"];
    let mut rows = vec![head.map(str::to_owned)];
    let line = |name: String, s: &FooterSummary, columns: String| {
        [
            name,
            thousands(s.rows.max(0) as u64),
            thousands(s.row_groups as u64),
            columns,
            bytes(s.compressed_bytes.max(0) as u64),
            bytes(s.uncompressed_bytes.max(0) as u64),
            bytes(s.footer_bytes as u64),
            seconds(Duration::from_secs_f64(s.decode_seconds)),
        ]
    };
    for summary in summaries {
        rows.push(line(summary.file.display().to_string(), summary, thousands(summary.columns as u64)));
    }
    if let [first, _, ..] = summaries {
        let mut total = first.clone();
        for summary in &summaries[1..] {
            total.rows = total.rows.saturating_add(summary.rows);
            total.row_groups += summary.row_groups;
            total.compressed_bytes = total.compressed_bytes.saturating_add(summary.compressed_bytes);
            total.uncompressed_bytes = total.uncompressed_bytes.saturating_add(summary.uncompressed_bytes);
            total.footer_bytes += summary.footer_bytes;
            total.decode_seconds += summary.decode_seconds;
        }
        rows.push(line(format!("{} files", summaries.len()), &total, String::new()));
    }
    table(&rows)
}
