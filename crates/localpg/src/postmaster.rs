//! The server process: started, waited for until it takes connections, ended.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Error;
use crate::home::Home;
use crate::process::{Shutdown, signal};

/// How often a waiting caller looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(3);
/// How long a shutdown may take before the next stronger one; an immediate one gives its children
/// five seconds by itself (postmaster.c, `SIGKILL_CHILDREN_AFTER_SECS`).
const PATIENCE: Duration = Duration::from_secs(20);
/// How much of the log an error carries.
const LOG_TAIL_LINES: usize = 20;

/// A running postmaster. Dropping it ends it as a crash would.
#[derive(Debug)]
pub(crate) struct Postmaster {
    /// None when it was let go or its end was waited for.
    child: Option<Child>,
    pid: u32,
}

/// Why a postmaster did not come up.
pub(crate) enum Failure {
    /// Somebody else listens on the port.
    PortTaken,
    Other(Error),
}

impl Postmaster {
    /// Starts `postgres` and waits until it takes connections.
    ///
    /// It is in a process group of its own, so that the terminal's Ctrl-C reaches us alone and we
    /// can end the server when nothing uses it any more. (Linux could end it with us by
    /// `PR_SET_PDEATHSIG`, but that signal comes when the *thread* that started it ends.)
    pub(crate) fn launch(mut command: Command, home: &Home, timeout: Duration) -> Result<Self, Failure> {
        let log_start = fs::metadata(home.log()).map_or(0, |log| log.len());
        let child = open_log(home)
            .and_then(|(out, err)| {
                command.stdout(out).stderr(err).current_dir(home.path()).process_group(0).spawn()
            })
            .map_err(|cause| {
                let program = Path::new(command.get_program());
                Failure::Other(Error::io("cannot start the server", cause).at_path(program))
            })?;
        let mut postmaster = Self { pid: child.id(), child: Some(child) };
        let deadline = Instant::now() + timeout;
        loop {
            if postmaster.is_ready(home.data()) {
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
                    .at_path(home.path()),
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
                    .at_path(home.path())
                    .advise("give it more time if the machine is busy"),
                ));
            }
            sleep(LOOK_AGAIN);
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it takes connections, as it writes in the eighth line of its lock file (since
    /// PostgreSQL 10; `LOCK_FILE_LINE_PM_STATUS` in miscadmin.h).
    fn is_ready(&self, data: &Path) -> bool {
        let Ok(lock_file) = fs::read_to_string(data.join("postmaster.pid")) else { return false };
        let mut lines = lock_file.lines().map(str::trim);
        lines.next().and_then(|pid| pid.parse().ok()) == Some(self.pid) && lines.nth(6) == Some("ready")
    }

    /// How it ended, if it has.
    fn try_wait(&mut self) -> Option<ExitStatus> {
        // Waiting for a child of ours that nobody else waits for does not fail.
        self.child.as_mut()?.try_wait().ok().flatten()
    }

    /// Ends it: as asked, and more firmly when it takes too long. An error is a server that had
    /// ended before or did not end well; it is gone in any case.
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
                        (_, false) => Err(format!("the server ended badly ({status})")),
                        (false, true) => Err("the server took too long to end in order".to_owned()),
                    };
                }
                sleep(LOOK_AGAIN);
            }
        }
        if let Some(mut child) = self.child.take() {
            // Killing and waiting for a child of ours fails only when it is gone.
            let _ = child.kill();
            let _ = child.wait();
        }
        Err("the server had to be killed".to_owned())
    }

    /// Lets it run on when this value is dropped.
    pub(crate) fn release(&mut self) {
        self.child = None;
    }
}

impl Drop for Postmaster {
    fn drop(&mut self) {
        if self.child.is_some() {
            // Its data goes too: there is nothing to say and nobody to tell.
            let _ = self.shut_down(Shutdown::Immediate);
        }
    }
}

fn open_log(home: &Home) -> io::Result<(File, File)> {
    let log = OpenOptions::new().create(true).append(true).open(home.log())?;
    Ok((log.try_clone()?, log))
}

/// What was written to the log from a position on; empty when it cannot be read.
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
