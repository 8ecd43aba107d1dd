//! Runs the `sawmill` binary as a user would, and keeps its output.

use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde_json::Value;

/// A run that ended.
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Gives this process, and so all that it starts, the signals as a shell's prompt sets them: the tests may have
/// been started with SIGINT ignored, as in a script's `cargo test &`. Setting them between fork and exec would
/// copy the page tables of this process, gigabytes of memory, for each command.
static SIGNALS: LazyLock<()> = LazyLock::new(|| {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the default action needs no handler, and nothing here installs one.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
});

/// The command, not started, with nothing on its standard input.
pub fn command<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    LazyLock::force(&SIGNALS);
    let mut command = Command::new(env!("CARGO_BIN_EXE_sawmill"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs `sawmill` with these arguments to its end.
pub fn sawmill<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Ran {
    Ran::from(command(args).output().expect("the sawmill binary starts"))
}

/// Starts `sawmill` in the background, its output kept for [`wait`].
pub fn start<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Child {
    command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the sawmill binary starts")
}

/// Waits for a background run.
pub fn wait(child: Child) -> Ran {
    Ran::from(child.wait_with_output().expect("the output of sawmill"))
}

/// Sends a signal, like `INT`, to a background run.
pub fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(status.expect("kill runs").success());
}

/// Whether a background run has written to its standard error.
pub fn has_spoken(child: &Child) -> bool {
    let pipe = child.stderr.as_ref().expect("a piped standard error").as_raw_fd();
    let mut unread: libc::c_int = 0;
    // SAFETY: FIONREAD writes one integer, and the descriptor is open as long as the child is borrowed.
    assert_eq!(unsafe { libc::ioctl(pipe, libc::FIONREAD, &raw mut unread) }, 0);
    unread > 0
}

/// Waits until `condition` holds, for at most a minute.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what} did not happen within a minute");
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("text on standard output"),
            err: String::from_utf8(output.stderr).expect("text on standard error"),
        }
    }
}

impl Ran {
    /// The run, which must have ended well.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{}\n{}", self.out, self.err);
        self
    }

    /// Its standard error. It must have ended with this exit code and exactly one line of error.
    #[track_caller]
    pub fn fails(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.err);
        let errors = self
            .err
            .lines()
            .filter(|line| line.starts_with("error: ") || line.starts_with("{\"error\":"))
            .count();
        assert_eq!(errors, 1, "one line of error: {}", self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self.err
    }

    /// The result it printed with `--json`.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}\n{}", self.out, self.err))
    }
}

/// Whether strace is installed and may trace processes.
pub fn can_trace() -> bool {
    let traced = Command::new("strace").args(["-e", "trace=none", "true"]).output();
    traced.is_ok_and(|run| run.status.success())
}

/// The names in a directory, sorted.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the directory is there");
    let mut names: Vec<String> =
        entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The most memory that a process had so far, in bytes (proc(5): VmHWM).
pub fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}
