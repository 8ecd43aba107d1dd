//! `sawmill footer bench-files`: the files whose footers `--bench` is about, made by the generator.
//!
//! Columns all of one type, many of them, in row groups of few rows: what is large about such a file is
//! its footer. Values, statistics and page indexes are real. One row group is in memory at a time,
//! besides what a writer must keep of every chunk for the footer.

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::{Args, ValueEnum};
use sawmill_generator::{Dataset, Existing, Layout, Output, WrittenFile};
use sawmill_profile::Profile;
use serde::Serialize;

use crate::error::Error;
use crate::r#gen::{GenJob, generate};
use crate::screen::console::Console;
use crate::screen::phases;

/// Make files of many columns, whose footers are what `--bench` measures.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill footer bench-files --dir /tmp/footers
  sawmill footer bench-files --dir /tmp/footers --columns 1000 --kind string
  sawmill footer /tmp/footers --bench      # measure them

The names are those of the kind and the number of columns: float-100.parquet. A file of 100,000 columns
takes 0.5 GB (float) or 1.3 GB (string) of disk, and 2 GB of memory while it is made: what the footer
says of every chunk.")]
pub(crate) struct BenchFilesArgs {
    /// The directory for the files, made if need be.
    #[arg(long)]
    dir: PathBuf,
    /// Numbers of columns, a file each.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000, 10_000, 100_000], value_parser = columns)]
    columns: Vec<u32>,
    /// What the columns hold.
    #[arg(long, value_delimiter = ',', default_values_t = [Kind::Float, Kind::String])]
    kind: Vec<Kind>,
    /// Row groups of every file.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    row_groups: u32,
    /// Rows of every row group.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    row_group_rows: u32,
    /// The seed of all draws.
    #[arg(long, default_value_t = 42)]
    seed: u64,
}

/// Columns of a dataset spec, which a person may want more of than a machine can hold.
fn columns(text: &str) -> Result<u32, String> {
    match phases::count(text)? {
        count @ 1..=1_000_000 => Ok(count as u32),
        count => Err(format!("{count} columns: give 1 to 1,000,000")),
    }
}

/// What all columns of a file hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// FLOAT, every value another.
    Float,
    /// Text, every value another.
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

pub(crate) fn run(args: &BenchFilesArgs, console: Console, cancel: &AtomicBool) -> Result<(), Error> {
    let profile = Profile::new();
    let rows = u64::from(args.row_groups) * u64::from(args.row_group_rows);
    let layout = Layout::new(rows, 1)?.with_row_group_rows(args.row_group_rows.into())?;
    std::fs::create_dir_all(&args.dir).map_err(|error| {
        let advice = "give a directory that can be made";
        Error::failure(
            format!("making the directory failed: {error}"),
            args.dir.display().to_string(),
            advice,
        )
    })?;
    let mut made = Made { files: Vec::new() };
    for &kind in &args.kind {
        for &columns in &args.columns {
            let dataset = Dataset::from_toml(&spec(kind, columns))?;
            let output = Output::from_path(&args.dir.join(format!("{kind}-{columns}.parquet")));
            let job = GenJob {
                seed: args.seed,
                // A row group at a time: that is what bounds memory.
                threads: Some(NonZeroUsize::MIN),
                existing: Existing::Replace,
                ..GenJob::new(&dataset, &layout, &output)
            };
            let (files, _) = generate(&job, &profile, console, cancel)?;
            made.files.extend(files);
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

/// The spec of a file of these columns, which are optional and never null.
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
    fn the_specs_are_datasets_of_as_many_columns() {
        for kind in [Kind::Float, Kind::String] {
            assert_eq!(Dataset::from_toml(&spec(kind, 12)).unwrap().columns(), 12);
        }
    }
}
