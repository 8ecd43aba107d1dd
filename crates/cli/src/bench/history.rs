//! `sawmill bench report`: draws result files as one page; several files of benchmarks as a history, several of
//! load tests side by side.

use std::path::{Path, PathBuf};

use clap::Args;
use sawmill_profile::{ResultFile, results_table, write_html_report};

use crate::error::{Error, Result};
use crate::screen::console::Console;
use crate::screen::flame;

/// Draw result files as one page, in the given order.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill bench report a.json --html a.html
  sawmill bench report monday.json tuesday.json --html history.html
  sawmill bench report fsync-on.json fsync-off.json --html load-tests.html

Results of sawmill bench are a history, whose last file is shown in detail. Results of sawmill drive stand side by
side, named after their files.")]
pub(crate) struct ReportArgs {
    /// Files written by --json-file, all of benchmarks or all of load tests.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The page to write.
    #[arg(long, value_name = "FILE")]
    html: PathBuf,
}

pub(crate) fn run(args: &ReportArgs, console: Console) -> Result<()> {
    flame::may_replace(&args.html, b'<', &format!("--html {}", args.html.display()))?;
    let texts =
        args.files.iter().map(|path| Ok((path.as_path(), read(path)?))).collect::<Result<Vec<_>>>()?;
    if texts.iter().any(|(_, text)| sawmill_drive::DriveResult::is_in(text)) {
        return crate::drive::report(&texts, &args.html, console);
    }
    let results = texts.iter().map(|(path, text)| ResultFile::from_json(text, &path.display().to_string()));
    let files = results.collect::<Result<Vec<_>, _>>()?;
    write_html_report(&args.html, &files)?;
    console.result(&files, || {
        let tables = files.iter().map(|file| format!("{}\n{}", file.label, results_table(file)));
        tables.collect::<Vec<_>>().join("\n")
    })
}

fn read(path: &Path) -> Result<String> {
    sawmill_store::read_text(path).map_err(|error| {
        Error::failure(format!("the results cannot be read: {error}"), path.display().to_string(), "")
    })
}
