//! The command `sawmill-cluster` under test, and its messages.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

pub fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_sawmill-cluster"))
}

/// `sawmill-cluster sql`.
pub fn sql(arguments: &[&str]) -> Command {
    let mut command = command();
    command.arg("sql").args(arguments);
    command
}

/// What a command that failed wrote to standard error.
#[track_caller]
pub fn refused(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{error}");
    error
}

/// Waits until something is there, a minute at most.
#[track_caller]
pub fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_there() {
        assert!(started.elapsed() < Duration::from_secs(60), "no {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
