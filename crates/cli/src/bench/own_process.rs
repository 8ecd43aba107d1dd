//! One of our runs as a separate process, measured like other programs from its start to its end.
//!
//! The process is this program with the same arguments. Its environment tells it to do one run of one point
//! of the sweep, where to do it, and in which file to leave its own measurements.

use std::path::{Path, PathBuf};

use sawmill_profile::{CommandLine, Output, PhaseReport, Run, Timeline};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::interrupt;

const REPORT: &str = "SAWMILL_BENCH_REPORT";
const POINT: &str = "SAWMILL_BENCH_POINT";

/// What a run measured of itself.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Observed {
    pub run: Run,
    pub phases: Vec<PhaseReport>,
    pub timeline: Timeline,
}

/// The order to do one run.
pub(crate) struct Once {
    report: PathBuf,
    /// Which point of the sweep.
    pub point: usize,
}

impl Once {
    /// The order in the environment; `None` in a process that a user started.
    pub(crate) fn asked() -> Option<Self> {
        let report = std::env::var_os(REPORT)?.into();
        let point = std::env::var(POINT).ok()?.parse().ok()?;
        Some(Self { report, point })
    }

    /// Leaves the measurements to the process that started this one.
    pub(crate) fn report(&self, seen: &Observed) -> Result<()> {
        let place = || self.report.display().to_string();
        let text =
            serde_json::to_vec(seen).map_err(|error| Error::failure(error.to_string(), place(), ""))?;
        std::fs::write(&self.report, text).map_err(|error| Error::failure(error.to_string(), place(), ""))
    }
}

/// The place that the environment names for the run, such as a directory or a table.
pub(crate) fn place(variable: &str) -> Option<String> {
    Once::asked()?;
    std::env::var(variable).ok()
}

/// Does one run in a separate process. Time, CPU time and memory count the whole process; the rest is in its
/// report.
pub(crate) fn run(point: usize, environment: &[(&'static str, String)]) -> Result<Observed> {
    let failed = |what: &dyn std::fmt::Display| Error::failure(what.to_string(), "a run of our own", "");
    let folder = tempfile::tempdir().map_err(|error| failed(&error))?;
    let report = folder.path().join("report.json");
    let words = crate::program().iter().chain(crate::words()).map(|word| word.to_string_lossy().into_owned());
    let mut line = CommandLine::new(words)?.output(Output::Capture);
    for (variable, value) in environment {
        line = line.environment(variable, value);
    }
    line = line.environment(REPORT, &report.to_string_lossy()).environment(POINT, &point.to_string());
    let ran = line.run(interrupt::flag())?.checked()?;
    let seen = read(&report).map_err(|error| failed(&error))?;
    let run =
        Run { rows: seen.run.rows, bytes: seen.run.bytes, checksum: seen.run.checksum, ..ran.figures() };
    Ok(Observed { run, ..seen })
}

fn read(report: &Path) -> std::io::Result<Observed> {
    Ok(serde_json::from_slice(&std::fs::read(report)?)?)
}
