//! `sawmill footer bench-files`: generates files with large footers, for `--bench`.
//!
//! They have many columns of one type in row groups of few rows, so that most of a file is its footer.
//! Values, statistics and page indexes are real. Besides what a writer must keep of every chunk for the
//! footer, one row group is in memory at a time.

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sawmill_generator::{Dataset, Existing, Job, Layout, Output, WrittenFile};
use sawmill_profile::Profile;
use serde::Serialize;

use crate::error::Error;
use crate::r#gen::generate;
use crate::screen::console::Console;
use crate::screen::phases;

/// Generate files of many columns, whose footers --bench measures.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill footer bench-files --dir /tmp/footers
  sawmill footer bench-files --dir /tmp/footers --widths 1000 --kind string
  sawmill footer /tmp/footers --bench      # measure them

A file is named after the type and the number of its columns: float-100.parquet. A file of 100,000 columns
takes 0.5 GB (float) or 1.3 GB (string) of disk and, while it is written, 2 GB of memory for the contents of
its footer.")]
pub(crate) struct BenchFilesArgs {
    /// The directory for the files; created if missing.
    #[arg(long)]
    dir: PathBuf,
    /// Numbers of columns; one file for each.
    #[arg(long = "widths", value_delimiter = ',', default_values_t = [100, 1_000, 10_000, 100_000],
        value_parser = columns)]
    columns: Vec<u32>,
    /// The type of the columns.
    #[arg(long, value_delimiter = ',', default_values_t = [Kind::Float, Kind::String])]
    kind: Vec<Kind>,
    /// Row groups of every file.
    #[arg(long = "groups", default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    row_groups: u32,
    /// Rows of every row group.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    row_group_rows: u32,
    /// The seed of all random values.
    #[arg(long, default_value_t = 42)]
    seed: u64,
}

/// Parses a number of columns, within what a machine can hold.
fn columns(text: &str) -> Result<u32, String> {
    match phases::count(text)? {
        count @ 1..=1_000_000 => Ok(count as u32),
        count => Err(format!("{count} columns: give 1 to 1,000,000")),
    }
}

/// The type of all columns of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// FLOAT; all values differ.
    Float,
    /// Text; all values differ.
    String,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Float => "float",
            Kind::String => "string",
        })
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Made {
    files: Vec<WrittenFile>,
}

pub(crate) fn run(args: &BenchFilesArgs, console: Console) -> Result<(), Error> {
    let profile = Profile::new();
    let rows = u64::from(args.row_groups) * u64::from(args.row_group_rows);
    let layout = Layout::new(rows, 1)?.with_row_group_rows(args.row_group_rows.into())?;
    std::fs::create_dir_all(&args.dir).map_err(|error| {
        let advice = "give a directory that can be created";
        let what = format!("creating the directory failed: {error}");
        Error::failure(what, args.dir.display().to_string(), advice)
    })?;
    let mut made = Made { files: Vec::new() };
    for &kind in &args.kind {
        for &columns in &args.columns {
            let dataset = Dataset::from_toml(&spec(kind, columns))?;
            let output = Output::from_path(&args.dir.join(format!("{kind}-{columns}.parquet")));
            let generated = generate(&dataset, &layout, &output, &profile, console, |job| Job {
                seed: args.seed,
                // One row group at a time bounds memory.
                threads: NonZeroUsize::MIN,
                existing: Existing::Replace,
                ..job
            });
            made.files.extend(generated?.0);
        }
    }
    console.result(&made, || {
        let mut text = String::new();
        for file in &made.files {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}: {}", file.path.display(), phases::bytes(file.bytes));
        }
        let _ = writeln!(text, "measure them: sawmill footer {} --bench", args.dir.display());
        text
    })
}

/// The spec of a file of these columns, which are optional but never null.
fn spec(kind: Kind, columns: u32) -> String {
    let mut spec = format!("name = \"{kind}-{columns}\"\n");
    for column in 0..columns {
        let values = match kind {
            Kind::Float => "{ uniform = { min = -1000.0, max = 1000.0 } }".to_owned(),
            Kind::String => format!("{{ unique = \"text of {column} {{id:08}}\" }}"),
        };
        // Writing to a string cannot fail.
        let _ = write!(
            spec,
            "[[fields]]\nname = \"column_{column:05}\"\ntype = \"{kind}\"\nnulls = 0\nvalues = {values}\n"
        );
    }
    spec
}

#[cfg(test)]
mod tests {
    use sawmill_generator::Dataset;

    use super::{Kind, spec};

    #[test]
    fn the_specs_have_the_right_number_of_columns() {
        for kind in [Kind::Float, Kind::String] {
            assert_eq!(Dataset::from_toml(&spec(kind, 12)).unwrap().columns(), 12);
        }
    }
}
