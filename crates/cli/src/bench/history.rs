//! `sawmill bench report`: draws result files as one page; several files as a history.

use std::path::PathBuf;

use clap::Args;
use sawmill_profile::{ResultFile, results_table, write_html_report};

use crate::error::Error;
use crate::screen::console::Console;

/// Draw result files as one page, in the given order.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill bench report a.json --html a.html
  sawmill bench report monday.json tuesday.json --html history.html")]
pub(crate) struct ReportArgs {
    /// Files written by --json. The last one is shown in detail.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The page to write.
    #[arg(long, value_name = "FILE")]
    html: PathBuf,
}

pub(crate) fn run(args: &ReportArgs, console: Console) -> Result<(), Error> {
    let files = args.files.iter().map(|path| ResultFile::read(path)).collect::<Result<Vec<_>, _>>()?;
    write_html_report(&args.html, &files)?;
    console.result(&files, || {
        let tables = files.iter().map(|file| format!("{}\n{}", file.label, results_table(file)));
        tables.collect::<Vec<_>>().join("\n")
    })
}
