//! `sawmill doctor`: what would make files, a server or this machine faster, with the command that does it.

mod cluster;
mod machine;
mod server;

use std::path::{Path, PathBuf};

use clap::Args;
use sawmill_cratedb::CrateServer;
use sawmill_footer::Options;
use sawmill_inspect::{Checkup, Finding};
use serde::Serialize;

use crate::arguments::stores::StoreArgs;
use crate::error::{Error, Result};
use crate::footer::place::Places;
use crate::footer::{Opening, style};
use crate::forms::{is_address, without_table};
use crate::interrupt;
use crate::screen::console::Console;

/// Look at files, a server or this machine, and say what to change, in order of gain.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill doctor                             # cores, memory, rings, PostgreSQL
  sawmill doctor /data/trips                 # footers: row groups, order, codecs
  sawmill doctor s3://bucket/trips --json
  sawmill doctor postgres://me@localhost/db  # version, disk, settings, privileges
  sawmill doctor crate://localhost:4200      # disks, heap, shards, its own checks

It changes nothing.")]
pub(crate) struct DoctorArgs {
    /// A file, a directory, a pattern or URLs of objects; or the URL of a server. Without one, this machine.
    targets: Vec<PathBuf>,
    #[command(flatten)]
    stores: StoreArgs,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    looked_at: String,
    findings: Vec<Finding>,
    /// Errors of files that could not be read.
    errors: Vec<String>,
}

impl Report {
    fn new(looked_at: String, findings: Vec<Finding>) -> Self {
        Self { looked_at, findings, errors: Vec::new() }
    }
}

/// Whether a target is the address of a server: a URL, or `host=... dbname=...`.
fn is_server(target: &Path) -> bool {
    let keywords = ["host=", "hostaddr=", "port=", "dbname=", "user=", "password=", "service=", "sslmode="];
    let is_keyword = |word: &str| keywords.iter().any(|keyword| word.starts_with(keyword));
    let has_keywords = |text: &str| !text.contains('*') && text.split_whitespace().all(is_keyword);
    target.to_str().is_some_and(|text| is_address(text) || has_keywords(text) && !target.exists())
}

pub(crate) fn run(args: &DoctorArgs, console: Console) -> Result<()> {
    let report = match args.targets.as_slice() {
        [] => machine::check(),
        [server] if is_server(server) => {
            // The server's address ends before the table.
            let address = match server.to_string_lossy() {
                url if is_address(&url) => without_table(&url).0,
                keywords => keywords.into_owned(),
            };
            match CrateServer::understands(&address) {
                true => cluster::check(&address)?,
                false => server::check(&address)?,
            }
        }
        files if files.iter().any(|file| is_server(file)) => {
            return Err(Error::usage("a server beside other targets", "sawmill doctor", "give it alone"));
        }
        files => return check_files(files, &args.stores, console),
    };
    console.result(&report, || text(&report))
}

fn text(report: &Report) -> String {
    let mut text = format!("looked at {}\n", report.looked_at);
    if report.findings.is_empty() && report.errors.is_empty() {
        text += "nothing to change\n";
    }
    let all = report.findings.iter().map(|finding| finding.commands.as_slice());
    let mut mended = all.filter(|commands| !commands.is_empty());
    let first = mended.next().unwrap_or_default();
    // Files are converted once for all findings.
    let shared = if mended.next() == Some(first) && mended.all(|other| other == first) { first } else { &[] };
    let lines =
        |commands: &[String]| commands.iter().map(|line| format!("   -> {line}\n")).collect::<String>();
    for (number, Finding { what, cost, commands, advice }) in (1..).zip(&report.findings) {
        text += &format!("\n{number}. {what}\n   {cost}\n");
        if shared.is_empty() {
            text += &lines(commands);
        }
        if !advice.is_empty() {
            text += &format!("   {advice}\n");
        }
    }
    if !shared.is_empty() {
        text += &format!("\none command for all:\n{}", lines(shared));
    }
    text
}

/// More names than these are shown as a pattern, if there is one.
const MAX_NAMED: usize = 8;

/// The files as a command names them: all names of a folder, as a shell writes them for `*.parquet`, by that pattern.
fn named(files: Vec<PathBuf>) -> Vec<PathBuf> {
    let is_parquet = |path: &Path| path.extension().is_some_and(|extension| extension == "parquet");
    let parent = files.first().and_then(|file| file.parent()).map(Path::to_owned);
    let Some(folder) = parent.filter(|_| files.len() > MAX_NAMED) else { return files };
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
    let Ok(entries) = here.read_dir() else { return files };
    let all = entries.flatten().filter(|entry| is_parquet(&entry.path())).count();
    let is_all = files.iter().all(|file| file.parent() == Some(&folder) && is_parquet(file));
    if is_all && all == files.len() { vec![folder.join("*.parquet")] } else { files }
}

/// Decodes the footers, one after the other, and prints the findings. A file that cannot be read is an error once the
/// others are reported.
fn check_files(files: &[PathBuf], stores: &StoreArgs, console: Console) -> Result<()> {
    let Places { places, objects } = Places::new(files, stores)?;
    let opening = Opening::new(Options::new());
    let (mut checkup, mut failed, mut read) = (Checkup::default(), Vec::new(), files.to_vec());
    for place in &places {
        interrupt::check()?;
        let opened = opening.open(place, &objects).and_then(|(summary, footer, _)| {
            footer.check_has_data("pages")?;
            Ok((summary, footer))
        });
        match opened {
            Ok((summary, footer)) => checkup.add(&summary, &footer),
            Err(error) => {
                read.retain(|file| *file != place.name());
                failed.push(error);
            }
        }
    }
    if failed.len() < places.len() {
        let style = style(console);
        let errors = failed.iter().map(ToString::to_string).collect();
        let (looked_at, mut findings) = (checkup.looked_at(&style), checkup.findings(&named(read), &style));
        if cfg!(not(feature = "full")) {
            let commands = findings.iter_mut().flat_map(|finding| &mut finding.commands);
            // The demo's build does not convert.
            commands.for_each(|line| {
                *line = line.replacen("sawmill", "cargo run --release --features full --", 1);
            });
        }
        let report = Report { looked_at, findings, errors };
        console.result(&report, || text(&report))?;
    }
    Error::of_files(failed, places.len())
}
