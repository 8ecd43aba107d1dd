//! Short-lived query processes, signals, and the processes in a server's directory.

use std::io;
use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Runs a program and returns its output.
///
/// A program file written a moment ago may be "busy": a process that another thread is just starting holds
/// the file open for writing until it executes its own program.
pub(crate) fn ask(command: &mut Command) -> io::Result<Output> {
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        match command.output() {
            Err(busy) if busy.kind() == io::ErrorKind::ExecutableFileBusy && Instant::now() < deadline => {
                sleep(Duration::from_millis(5));
            }
            outcome => return outcome,
        }
    }
}

/// A signal of PostgreSQL's shutdown protocol
/// (<https://www.postgresql.org/docs/current/server-shutdown.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shutdown {
    /// SIGINT to the postmaster: ends the sessions, writes a checkpoint, exits.
    Fast,
    /// SIGQUIT: exits at once, as in a crash; the next start replays the log.
    Immediate,
    /// SIGKILL, if a process reacts to nothing else.
    Kill,
}

/// Sends a signal. If the process is already gone, this is not an error.
pub(crate) fn signal(pid: u32, how: Shutdown) -> io::Result<()> {
    let number = match how {
        Shutdown::Fast => libc::SIGINT,
        Shutdown::Immediate => libc::SIGQUIT,
        Shutdown::Kill => libc::SIGKILL,
    };
    // For kill(2), 0 and negative numbers mean groups; a process id is neither.
    let pid = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 0).ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: kill touches no memory; the caller ensures that the process may be signalled.
    if unsafe { libc::kill(pid, number) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        gone if gone.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        error => Err(error),
    }
}

/// Whether a process with this id exists. The id may have been reused, and a process in another container is
/// invisible: use the result only to decide how long to wait, not whether to remove.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Some(pid) = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 0) else { return false };
    // SAFETY: kill touches no memory, and signal 0 only tests (kill(2)).
    unsafe { libc::kill(pid, 0) == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM) }
}

/// The PostgreSQL processes in the directory that run as its owner: `postgres` (the postmaster and its
/// children, which work in the data directory) and `initdb`.
///
/// A process is recognised by its working directory or, if the kernel hides that (from a container's root
/// without `CAP_SYS_PTRACE`), by the data directory on its command line.
#[cfg(target_os = "linux")]
pub(crate) fn residents(directory: &Path, owner: u32) -> Vec<u32> {
    use std::os::unix::fs::MetadataExt;

    let lives_there = |process: &Path| -> Option<bool> {
        if std::fs::metadata(process).ok()?.uid() != owner {
            return None;
        }
        let name = std::fs::read_to_string(process.join("comm")).ok()?;
        if !matches!(name.trim_end(), "postgres" | "initdb") {
            return None;
        }
        if let Ok(working_directory) = std::fs::read_link(process.join("cwd")) {
            return Some(working_directory.starts_with(directory));
        }
        let command_line = std::fs::read(process.join("cmdline")).ok()?;
        Some(names_data_directory(command_line.split(|byte| *byte == 0), directory))
    };
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .filter(|(_, process)| lives_there(process).unwrap_or(false))
        .map(|(pid, _)| pid)
        .collect()
}

/// The PostgreSQL processes with the directory's data directory on their command line that run as the
/// directory's owner, as listed by `ps` in its POSIX columns.
#[cfg(not(target_os = "linux"))]
pub(crate) fn residents(directory: &Path, owner: u32) -> Vec<u32> {
    let Ok(listing) = std::process::Command::new("ps").args(["-A", "-o", "pid=,uid=,args="]).output() else {
        return Vec::new();
    };
    String::from_utf8_lossy(&listing.stdout)
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let pid: u32 = words.next()?.parse().ok()?;
            let uid: u32 = words.next()?.parse().ok()?;
            let words = words.map(str::as_bytes);
            (uid == owner && names_data_directory(words, directory)).then_some(pid)
        })
        .collect()
}

/// Whether a command line contains `-D` followed by the directory's data directory.
fn names_data_directory<'a>(mut words: impl Iterator<Item = &'a [u8]>, directory: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;

    let data = directory.join(crate::housekeeping::home::DATA);
    words.any(|word| word == b"-D") && words.next() == Some(data.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::housekeeping::account::effective_uid;

    #[test]
    fn a_process_that_only_works_in_the_directory_is_not_a_resident() {
        let directory = tempfile::tempdir().unwrap();
        let mut sleeper = Command::new("sleep").arg("30").current_dir(directory.path()).spawn().unwrap();
        let found = residents(directory.path(), effective_uid());
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn the_data_directory_must_follow_its_flag() {
        let names = |line: &[&str]| {
            names_data_directory(line.iter().map(|word| word.as_bytes()), Path::new("/tmp/sawmill-pg-x"))
        };
        assert!(names(&["/usr/bin/postgres", "-D", "/tmp/sawmill-pg-x/data"]));
        assert!(!names(&["vi", "/tmp/sawmill-pg-x/data"]));
        assert!(!names(&["postgres", "-D", "/tmp/sawmill-pg-xy/data"]));
    }

    #[test]
    fn signalling_a_missing_process_succeeds_and_a_group_is_rejected() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        signal(pid, Shutdown::Immediate).unwrap();
        assert!(signal(0, Shutdown::Immediate).is_err());
    }
}
