//! `sawmill gen clean`: removes what killed runs left.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use sawmill_store::{Location, WholeFile, name_of_partial};
use serde::Serialize;

use crate::arguments::stores::StoreArgs;
use crate::error::{Error, Result};
use crate::r#gen::destination::{location, store};
use crate::screen::console::Console;

/// Remove what killed runs left: unfinished files of a directory, or unfinished uploads of a folder in a
/// store.
///
/// Complete files stay, and so does the manifest that lists them: gen --resume continues from there. The next
/// run with --resume or --overwrite also cleans up. A run that is under way on this machine is an error.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill gen clean /tmp/contacts
  sawmill gen clean s3://bucket/contacts --dry-run
  sawmill gen clean s3://bucket/contacts --force --json | jq '.unfinished[].path'")]
pub(crate) struct CleanArgs {
    /// The directory or URL that was given to gen as --out.
    out: PathBuf,
    /// List what would be removed, and remove nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Also abort the uploads of runs on other machines. This machine cannot tell whether they have ended; a run
    /// that has not ended fails.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub stores: StoreArgs,
}

/// Unfinished files, uploads and runs, as `--json` prints them.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Cleaned {
    /// Whether they were removed.
    pub removed: bool,
    pub unfinished: Vec<UnfinishedFile>,
    /// The processes that have not ended their runs.
    pub runs: Vec<String>,
}

/// An unfinished file or upload.
#[derive(Debug, Serialize)]
pub(crate) struct UnfinishedFile {
    pub path: PathBuf,
    /// When its upload began, as the store says it.
    pub begun: Option<String>,
}

pub(super) fn run(args: &CleanArgs, console: Console) -> Result<()> {
    let mut cleaned = match location(&args.out)? {
        Location::Path(path) => local(&path, args.dry_run)?,
        Location::Object(url) => store::clean(&url, args)?,
    };
    cleaned.removed = !args.dry_run;
    console.result(&cleaned, || text(&cleaned, &args.out))
}

/// Removes the partial files of killed processes in a directory and in the folders `COLUMN=VALUE` below it.
fn local(path: &Path, dry_run: bool) -> Result<Cleaned> {
    let failed = |path: &Path, error: &std::io::Error| {
        let what = format!("reading the directory failed: {error}");
        Error::failure(what, path.display().to_string(), "give the directory that gen wrote to")
    };
    let mut folders = vec![path.to_owned()];
    for entry in fs::read_dir(path).map_err(|error| failed(path, &error))?.flatten() {
        if entry.file_name().to_string_lossy().contains('=') && entry.path().is_dir() {
            folders.push(entry.path());
        }
    }
    let mut cleaned = Cleaned::default();
    for folder in folders {
        let entries = fs::read_dir(&folder).map_err(|error| failed(&folder, &error))?;
        let mut partial: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        partial.sort();
        for path in partial {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(whole) = name_of_partial(&name).filter(|whole| is_generated(whole)) else { continue };
            if !dry_run {
                // Files of running processes are locked and stay.
                WholeFile::remove_abandoned(&folder.join(whole)).map_err(|error| failed(&folder, &error))?;
            }
            if dry_run || !path.exists() {
                cleaned.unfinished.push(UnfinishedFile { path, begun: None });
            }
        }
    }
    Ok(cleaned)
}

/// Whether generated files and their manifests have such names.
fn is_generated(name: &str) -> bool {
    [".parquet", ".arrow", ".ndjson", ".csv"].iter().any(|end| name.ends_with(end))
        || name.starts_with("_sawmill.") && name.ends_with(".json")
}

fn text(cleaned: &Cleaned, out: &Path) -> String {
    let done = if cleaned.removed { "removed" } else { "would be removed" };
    let mut text = match cleaned.unfinished.len() {
        0 => format!("no unfinished files in {}\n", out.display()),
        1 => format!("1 unfinished file {done}\n"),
        n => format!("{n} unfinished files {done}\n"),
    };
    for file in &cleaned.unfinished {
        let begun = file.begun.as_ref().map_or_else(String::new, |begun| format!(" (begun {begun})"));
        text.push_str(&format!("  {}{begun}\n", file.path.display()));
    }
    for run in &cleaned.runs {
        text.push_str(&format!("  of {run}\n"));
    }
    text
}
