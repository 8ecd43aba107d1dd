//! One run of ours as a process of its own, so that it is measured as other programs are: from its start to
//! its end.
//!
//! The process is this program with the same arguments; its environment says that it is to do one run of one point
//! of the sweep, where, and in which file to leave what it saw of itself.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use sawmill_profile::{CommandLine, Output, PhaseReport, Run, Timeline};
use serde::{Deserialize, Serialize};

use crate::error::Error;

const REPORT: &str = "SAWMILL_BENCH_REPORT";
const POINT: &str = "SAWMILL_BENCH_POINT";

/// What a run of ours saw of itself.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Seen {
    pub run: Run,
    pub phases: Vec<PhaseReport>,
    pub timeline: Timeline,
}

/// That this process is to do one run, and how.
pub(crate) struct Once {
    report: PathBuf,
    /// Which point of the sweep.
    pub point: usize,
}

impl Once {
    /// What the environment says; none in a process that a user has started.
    pub(crate) fn asked() -> Option<Self> {
        let report = std::env::var_os(REPORT)?.into();
        let point = std::env::var(POINT).ok()?.parse().ok()?;
        Some(Self { report, point })
    }

    pub(crate) fn leave(&self, seen: &Seen) -> Result<(), Error> {
        let place = || self.report.display().to_string();
        let text =
            serde_json::to_vec(seen).map_err(|error| Error::failure(error.to_string(), place(), ""))?;
        std::fs::write(&self.report, text).map_err(|error| Error::failure(error.to_string(), place(), ""))
    }
}

/// The place that the environment names for the run, such as the directory or the table.
pub(crate) fn place(variable: &str) -> Option<String> {
    Once::asked()?;
    std::env::var(variable).ok()
}

/// Does one run in a process of its own. Time, CPU time and memory are those of the whole process; what else
/// is known of it stands in its report.
pub(crate) fn run(
    point: usize,
    environment: &[(&'static str, String)],
    cancel: &AtomicBool,
) -> Result<Seen, Error> {
    let failed = |what: &dyn std::fmt::Display| Error::failure(what.to_string(), "a run of our own", "");
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let folder = tempfile::tempdir().map_err(|error| failed(&error))?;
    let report = folder.path().join("report.json");
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let words = std::iter::once(program.to_string_lossy().into_owned()).chain(words);
    let mut line = CommandLine::new(words)?.output(Output::Capture);
    for (variable, value) in environment {
        line = line.environment(variable, value);
    }
    line = line.environment(REPORT, &report.to_string_lossy()).environment(POINT, &point.to_string());
    let ran = line.run(cancel)?.checked()?;
    let seen = read(&report).map_err(|error| failed(&error))?;
    let run =
        Run { rows: seen.run.rows, bytes: seen.run.bytes, checksum: seen.run.checksum, ..ran.figures() };
    Ok(Seen { run, ..seen })
}

fn read(report: &Path) -> std::io::Result<Seen> {
    Ok(serde_json::from_slice(&std::fs::read(report)?)?)
}
