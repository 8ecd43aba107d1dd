//! Processes: short ones that are asked something, signals, and who lives in a server's directory.

use std::io;
use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Runs a program and takes its output.
///
/// A program that was written a moment ago may be "busy": another thread that was just starting a
/// process of its own still holds the file open for writing, until that process has its program.
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
    /// SIGKILL, for a process that answers nothing else.
    Kill,
}

/// Sends a signal. A process that is gone already is no error.
pub(crate) fn signal(pid: u32, how: Shutdown) -> io::Result<()> {
    let number = match how {
        Shutdown::Fast => libc::SIGINT,
        Shutdown::Immediate => libc::SIGQUIT,
        Shutdown::Kill => libc::SIGKILL,
    };
    // kill(2) takes 0 and negative numbers as groups; a process id is neither.
    let pid = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 0).ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: kill touches no memory; which process may be signalled is the caller's knowledge.
    if unsafe { libc::kill(pid, number) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        gone if gone.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        error => Err(error),
    }
}

/// Whether there is a process of this id. Some other one may have been given an id anew, and one in
/// another container is not seen: an answer to decide how long to wait, not whether to remove.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Some(pid) = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 0) else { return false };
    // SAFETY: kill touches no memory, and signal 0 only asks (kill(2)).
    unsafe { libc::kill(pid, 0) == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM) }
}

/// Processes of PostgreSQL that live in the directory: `postgres` (the postmaster and its children,
/// which work in the data directory) and `initdb`, with the directory's owner as their user.
///
/// A process counts by its working directory or, where the kernel does not tell that (a container's
/// root without `CAP_SYS_PTRACE`), by naming the data directory on its command line.
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

/// Processes of PostgreSQL that name the directory's data directory on their command line, with the
/// directory's owner as their user; `ps` tells, in the columns that POSIX gives it.
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

/// Whether a command line has `-D` and then the directory's data directory.
fn names_data_directory<'a>(mut words: impl Iterator<Item = &'a [u8]>, directory: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;

    let data = directory.join(crate::home::DATA);
    words.any(|word| word == b"-D") && words.next() == Some(data.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::effective_uid;

    #[test]
    fn a_process_that_only_works_in_the_directory_is_no_resident() {
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
    fn signalling_a_process_that_is_gone_is_no_error_and_a_group_is_refused() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        signal(pid, Shutdown::Immediate).unwrap();
        assert!(signal(0, Shutdown::Immediate).is_err());
    }
}
