//! `sawmill drive merge`: the results of several driving processes as one.

use std::path::PathBuf;

use clap::Args;
use sawmill_drive::{NamedResult, merge, text_report};

use crate::arguments::paths::each_has_its_file;
use crate::drive::results;
use crate::drive::run::{may_write, refuse, refuse_lost};
use crate::error::{Error, Result};
use crate::screen::console::Console;
use crate::screen::flame;

/// Merge the results of several driving processes; histograms are added count by count.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill drive merge one.json two.json --json-file both.json
  sawmill drive merge part-1.json part-2.json --json-file all.json --html all.html
  sawmill drive merge one.json two.json --json | jq .total.latency.p99_us

The results must have one plan, target and time, and each of --part 1/n to n/n must occur once. The percentiles of
the whole run are exact, and limits are judged by them. Percentiles of a single second come from coarse buckets and
are up to a fifth too high.

Exit codes: 1 a result is invalid or interrupted, or has no proof of its rows. 3 a limit was missed, or --abort-when
ended a part. 4 rows are lost or wrong.")]
pub(crate) struct MergeArgs {
    /// Files written by sawmill drive --json-file.
    #[arg(required = true, num_args = 2..)]
    files: Vec<PathBuf>,
    /// Write the merged result to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    json_file: Option<PathBuf>,
    /// Draw the merged result as a self-contained HTML page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(args: &MergeArgs, console: Console) -> Result<()> {
    let files = args.files.iter().map(|part| ("a part", Some(part)));
    let outputs = [("--json-file", args.json_file.as_ref()), ("--html", args.html.as_ref())];
    each_has_its_file(files.chain(outputs))?;
    if let Some(path) = &args.json_file {
        may_write(path)?;
    }
    if let Some(path) = &args.html {
        flame::may_replace(path, b'<', &path.display().to_string())?;
    }
    let parts = args.files.iter().map(|path| {
        let place = path.display().to_string();
        let text = sawmill_store::read_text(path)
            .map_err(|error| Error::failure(format!("the result cannot be read: {error}"), &place, ""))?;
        Ok::<_, Error>(NamedResult::from_json(&text, path)?)
    });
    let result = merge(&parts.collect::<Result<Vec<_>, _>>()?)?;
    if let Some(path) = &args.json_file {
        results::write_json(path, &result)?;
    }
    let name = args
        .json_file
        .as_ref()
        .and_then(|path| path.file_stem())
        .map(|name| name.to_string_lossy().into_owned());
    let merged = [NamedResult { name: name.unwrap_or_else(|| "merged".to_owned()), result }];
    if let Some(path) = &args.html {
        results::write_html(path, &merged)?;
    }
    let [NamedResult { result, .. }] = &merged;
    console.result(result, || text_report(result))?;
    refuse_lost(result)?;
    if result.interrupted {
        let what = "a part was interrupted: its figures end there, and it looked for no row";
        return Err(Error::failure(what, "", "drive again"));
    }
    refuse(result, "")
}
