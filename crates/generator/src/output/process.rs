//! The names of runs, for people and for other runs: in lock files, and in the manifests of folders without
//! locks.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Error, ErrorKind};

pub(crate) fn this_process() -> String {
    match host().as_str() {
        "" => format!("process {}", std::process::id()),
        host => format!("process {} on {host}", std::process::id()),
    }
}

/// This run: its process and a number unique to the run.
pub(crate) fn this_run() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}, run {:x}", this_process(), now.as_nanos())
}

/// The process of a run.
pub(crate) fn process_of(run: &str) -> &str {
    run.split(',').next().unwrap_or(run)
}

/// Whether a run is on this machine.
pub(crate) fn is_here(run: &str) -> bool {
    number_here(run).is_some()
}

/// Whether the process of a run exists on this machine and is a program like this one.
pub(crate) fn is_alive(run: &str) -> bool {
    let Some(process) = number_here(run) else { return false };
    let program = |process: &str| fs::read_to_string(format!("/proc/{process}/comm")).ok();
    let other = program(process);
    process != std::process::id().to_string() && other.is_some() && other == program("self")
}

/// The number of a run's process if it is on this machine.
fn number_here(run: &str) -> Option<&str> {
    let (process, on) = process_of(run).strip_prefix("process ")?.split_once(" on ")?;
    (on == host()).then_some(process)
}

/// The error of a run that has not ended, in a folder without locks.
pub(crate) fn not_ended(run: &str, place: &Path) -> Error {
    let what = format!("another run ({}) is writing here, or was killed", process_of(run));
    let advice = "wait until it ends; if it was killed, pass --resume to keep its complete files, --overwrite to \
                  replace them, or remove what it left with sawmill gen clean";
    Error::new(ErrorKind::Busy, what, place.display().to_string(), advice)
}

fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_process_of_this_program_on_this_machine_is_alive() {
        let own = this_run();
        assert!(!is_alive(&own), "{own}");
        assert_eq!(process_of(&own), this_process());
        assert!(is_here(&own) || host().is_empty());
        assert!(!is_here("process 1 on another, run 1") && !is_here("") && !is_here("process 1"));
    }
}
