//! The server process: starts it, waits until it accepts connections, and ends it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Error;
use crate::housekeeping::home::Home;
use crate::housekeeping::process::{Shutdown, signal};

/// How often to poll while waiting.
const LOOK_AGAIN: Duration = Duration::from_millis(3);
/// How long a shutdown may take before a stronger one follows. An immediate shutdown already gives child
/// processes five seconds (postmaster.c, `SIGKILL_CHILDREN_AFTER_SECS`).
const PATIENCE: Duration = Duration::from_secs(20);
/// How many lines of the log an error includes.
const LOG_TAIL_LINES: usize = 20;

/// A running postmaster. Dropping it ends it as in a crash.
#[derive(Debug)]
pub(crate) struct Postmaster {
    /// `None` once it was released or waited for.
    child: Option<Child>,
    pub(crate) pid: u32,
}

/// Why a postmaster did not start.
pub(crate) enum Failure {
    /// Another process listens on the port.
    PortTaken,
    Other(Error),
}

impl Postmaster {
    /// Starts `postgres` and waits until it accepts connections.
    ///
    /// It runs in its own process group, so that the terminal's Ctrl-C reaches only us and we can end the
    /// server after its last use. (On Linux, `PR_SET_PDEATHSIG` could end it with us, but that signal is sent
    /// when the *thread* that started it ends.)
    pub(crate) fn launch(mut command: Command, home: &Home, timeout: Duration) -> Result<Self, Failure> {
        let log_start = fs::metadata(home.log()).map_or(0, |log| log.len());
        let child = open_log(home)
            .and_then(|(out, err)| {
                command.stdout(out).stderr(err).current_dir(&home.path).process_group(0).spawn()
            })
            .map_err(|cause| {
                let program = Path::new(command.get_program());
                Failure::Other(Error::io("cannot start the server", cause).at_path(program))
            })?;
        let mut postmaster = Self { pid: child.id(), child: Some(child) };
        let deadline = Instant::now() + timeout;
        loop {
            if postmaster.is_ready(&home.data) {
                return Ok(postmaster);
            }
            if let Some(status) = postmaster.try_wait() {
                let log = log_since(&home.log(), log_start);
                if log.contains("could not create any TCP/IP sockets") {
                    return Err(Failure::PortTaken);
                }
                return Err(Failure::Other(
                    Error::new(format!(
                        "the server ended while it started ({status}); its log:\n{}",
                        tail(&log)
                    ))
                    .at_path(&home.path),
                ));
            }
            if Instant::now() >= deadline {
                let log = log_since(&home.log(), log_start);
                return Err(Failure::Other(
                    Error::new(format!(
                        "the server was not ready after {} s; its log:\n{}",
                        timeout.as_secs_f64(),
                        tail(&log)
                    ))
                    .at_path(&home.path)
                    .advise("raise the timeout if the machine is busy"),
                ));
            }
            sleep(LOOK_AGAIN);
        }
    }

    /// Whether it accepts connections, according to the eighth line of its lock file (since PostgreSQL 10;
    /// `LOCK_FILE_LINE_PM_STATUS` in miscadmin.h).
    fn is_ready(&self, data: &Path) -> bool {
        let Ok(lock_file) = fs::read_to_string(data.join("postmaster.pid")) else { return false };
        let mut lines = lock_file.lines().map(str::trim);
        lines.next().and_then(|pid| pid.parse().ok()) == Some(self.pid) && lines.nth(6) == Some("ready")
    }

    /// Its exit status, if it has ended.
    fn try_wait(&mut self) -> Option<ExitStatus> {
        // Waiting for our own child cannot fail while nothing else waits for it.
        self.child.as_mut()?.try_wait().ok().flatten()
    }

    /// Ends the server as requested, and more forcefully if it takes too long. An error means that the server
    /// had already ended or did not end well; it is gone in any case.
    pub(crate) fn shut_down(&mut self, how: Shutdown) -> Result<(), String> {
        if let Some(status) = self.try_wait() {
            self.child = None;
            return Err(format!("the server had ended by itself ({status})"));
        }
        let mut asked = None;
        for step in [Shutdown::Fast, Shutdown::Immediate] {
            if asked.is_none() && step != how {
                continue;
            }
            asked = Some(step);
            if let Err(error) = signal(self.pid, step) {
                return Err(format!("the server cannot be signalled: {error}"));
            }
            let deadline = Instant::now() + PATIENCE;
            while Instant::now() < deadline {
                if let Some(status) = self.try_wait() {
                    self.child = None;
                    return match (step == how, status.success()) {
                        (true, true) => Ok(()),
                        (_, false) => Err(format!("the server ended abnormally ({status})")),
                        (false, true) => Err("the server took too long to shut down cleanly".to_owned()),
                    };
                }
                sleep(LOOK_AGAIN);
            }
        }
        if let Some(mut child) = self.child.take() {
            // Killing or waiting for our own child fails only if it is gone.
            let _ = child.kill();
            let _ = child.wait();
        }
        Err("the server had to be killed".to_owned())
    }

    /// Keeps the server running after this value is dropped.
    pub(crate) fn release(&mut self) {
        self.child = None;
    }
}

impl Drop for Postmaster {
    fn drop(&mut self) {
        if self.child.is_some() {
            // Its data is removed too, and errors cannot be reported here.
            let _ = self.shut_down(Shutdown::Immediate);
        }
    }
}

fn open_log(home: &Home) -> io::Result<(File, File)> {
    let log = OpenOptions::new().create(true).append(true).open(home.log())?;
    Ok((log.try_clone()?, log))
}

/// The log from a position on; empty if it cannot be read.
fn log_since(log: &Path, start: u64) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let start = usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len());
    String::from_utf8_lossy(&bytes[start..]).into_owned()
}

/// The last lines of a log.
pub(crate) fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
}

/// The last lines of a server's log file.
pub(crate) fn log_tail(home: &Home) -> String {
    tail(&log_since(&home.log(), 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_a_log_is_its_last_lines() {
        assert_eq!(tail(""), "");
        assert_eq!(tail("one\ntwo\n"), "one\ntwo");
        let long: String = (0..100).map(|n| format!("{n}\n")).collect();
        assert!(tail(&long).starts_with("80\n"));
        assert!(tail(&long).ends_with("\n99"));
    }
}
