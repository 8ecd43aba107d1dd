//! Starts a program, watches it and reaps it with its resource usage; see [`crate::CommandLine`].

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};

use crate::error::{Error, Result};
use crate::measure::command::captured_output::CapturedOutput;
use crate::measure::command::command_run::{CommandLine, CommandRun, Ending, Output};
use crate::measure::command::output_reader::OutputReader;
use crate::trace::system::peak_memory::PeakMemory;
use crate::trace::system::process;

/// How often to check the flag, the clock and the program's memory.
const TICK: Duration = Duration::from_millis(10);
/// How long a program has to end after the first signal before it is killed.
const GRACE: Duration = Duration::from_secs(2);
/// How long to wait for output after the program has ended.
const LATE_OUTPUT: Duration = Duration::from_secs(1);

pub(crate) fn run(line: &CommandLine, cancel: &AtomicBool) -> Result<CommandRun> {
    let mut command = prepare(line)?;
    // A child's ru_maxrss starts at the peak of our process, which started it: reset our peak to the memory
    // that is resident now, and record it.
    let own_peak = PeakMemory::start();
    let floor = process::peak_memory().unwrap_or(u64::MAX);
    let started = Instant::now();
    let mut child = command.spawn().map_err(|error| not_started(line, &error))?;
    let watched = watch(line, cancel, &mut child, started);
    drop(own_peak);
    let watched = watched.map_err(|error| {
        // The child must not keep running or remain a zombie.
        signal_group(child.id(), libc::SIGKILL);
        let _ = child.wait();
        Error::failed(format!("the program cannot be watched: {error}"), line.text(), "")
    })?;
    let (status, usage) = reap(child.id()).map_err(|error| {
        Error::failed(format!("the system does not report how it ended: {error}"), line.text(), "")
    })?;
    let reported = process::peak_of(&usage);
    Ok(CommandRun {
        command: line.text(),
        ending: watched.stopped.unwrap_or(if libc::WIFSIGNALED(status) {
            Ending::Signalled(libc::WTERMSIG(status))
        } else {
            Ending::Exited(libc::WEXITSTATUS(status))
        }),
        wall: watched.wall,
        user: process::user_time(&usage),
        system: process::system_time(&usage),
        peak_memory: if reported > floor { Some(reported) } else { watched.peak_memory },
        stdout: watched.stdout,
        stderr: watched.stderr,
    })
}

fn prepare(line: &CommandLine) -> Result<Command> {
    let Some((program, arguments)) = line.words.split_first() else {
        return Err(Error::failed("the command is empty", "", "name a program"));
    };
    let mut command = Command::new(program);
    let output = || match line.output {
        Output::Discard => Stdio::null(),
        Output::Capture => Stdio::piped(),
    };
    command.args(arguments).envs(line.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(output()).stderr(output()).process_group(0);
    Ok(command)
}

fn not_started(line: &CommandLine, error: &io::Error) -> Error {
    let advice = match error.kind() {
        io::ErrorKind::NotFound => "install it, or write the full path",
        io::ErrorKind::PermissionDenied => "make it executable",
        _ => "",
    };
    Error::failed(format!("the program cannot be started: {error}"), line.text(), advice)
}

struct Watched {
    wall: Duration,
    stopped: Option<Ending>,
    peak_memory: Option<u64>,
    stdout: CapturedOutput,
    stderr: CapturedOutput,
}

/// Watches until the program has ended. It is not reaped here, so that its process id stays its own and our
/// signals cannot reach another process.
fn watch(
    line: &CommandLine,
    cancel: &AtomicBool,
    child: &mut Child,
    started: Instant,
) -> io::Result<Watched> {
    let stdout = child.stdout.take().map(OutputReader::start).transpose()?;
    let stderr = child.stderr.take().map(OutputReader::start).transpose()?;
    let pid = child.id();
    let ended = end_of(pid)?;
    let mut memory = SampledPeak::new(pid);
    let mut stopped = None;
    let mut force_at: Option<Instant> = None;
    let ended_at = loop {
        match ended.recv_timeout(TICK) {
            Ok(moment) => break moment?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("its waiter is gone")),
        }
        memory.look(started.elapsed());
        let over = line.timeout.is_some_and(|most| started.elapsed() > most);
        match force_at {
            None if cancel.load(Relaxed) || over => {
                stopped = Some(if over { Ending::TimedOut } else { Ending::Cancelled });
                signal_group(pid, libc::SIGTERM);
                force_at = Some(Instant::now() + GRACE);
            }
            Some(moment) if Instant::now() >= moment => signal_group(pid, libc::SIGKILL),
            _ => {}
        }
    };
    if stopped.is_some() {
        // Its children may have survived the first signal; the group is still its own.
        signal_group(pid, libc::SIGKILL);
    }
    Ok(Watched {
        wall: ended_at.saturating_duration_since(started),
        stopped,
        peak_memory: memory.peak,
        stdout: stdout.map(|reader| reader.finish(LATE_OUTPUT)).unwrap_or_default(),
        stderr: stderr.map(|reader| reader.finish(LATE_OUTPUT)).unwrap_or_default(),
    })
}

/// Reports the moment at which a child ended, without reaping it.
fn end_of(pid: u32) -> io::Result<Receiver<io::Result<Instant>>> {
    let (send, receive) = bounded(1);
    std::thread::Builder::new().name("child waiter".into()).spawn(move || {
        let result = loop {
            // SAFETY: an all-zero siginfo_t is a valid value, and waitid writes one through the
            // valid pointer.
            let answer = unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, libc::WEXITED | libc::WNOWAIT)
            };
            let now = Instant::now();
            if answer == 0 {
                break Ok(now);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                break Err(error);
            }
        };
        // The receiver is gone only if watching has already failed.
        let _ = send.send(result);
    })?;
    Ok(receive)
}

fn reap(pid: u32) -> io::Result<(libc::c_int, libc::rusage)> {
    loop {
        let mut status = 0;
        // SAFETY: an all-zero rusage is a valid value; wait4 writes a status and a rusage through
        // valid pointers.
        let (answer, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            (libc::wait4(pid as libc::pid_t, &mut status, 0, &mut usage), usage)
        };
        if answer == pid as libc::pid_t {
            return Ok((status, usage));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Sends a signal to the process group of a child that has not been reaped.
fn signal_group(pid: u32, signal: libc::c_int) {
    // SAFETY: kill takes numbers. The group belongs to the child, which leads it and has not been reaped.
    unsafe { libc::kill(-(pid as libc::pid_t), signal) };
}

/// The sampled peak memory of a program and its descendants.
struct SampledPeak {
    #[cfg(target_os = "linux")]
    members: Vec<u32>,
    #[cfg(target_os = "linux")]
    list_at: Duration,
    peak: Option<u64>,
}

impl SampledPeak {
    #[cfg(target_os = "linux")]
    fn new(pid: u32) -> Self {
        Self { members: vec![pid], list_at: Duration::ZERO, peak: None }
    }

    /// Reads the peaks. Looks for new descendants only each time the run is half as long again, because that
    /// takes about 2 ms.
    #[cfg(target_os = "linux")]
    fn look(&mut self, elapsed: Duration) {
        if elapsed >= self.list_at
            && let Some(root) = self.members.first()
        {
            self.members = crate::watch::process_tree::descendants(*root);
            self.list_at = (elapsed + elapsed / 2).max(elapsed + 2 * TICK);
        }
        for pid in &self.members {
            let peak =
                crate::trace::system::proc_text::status_bytes(&format!("/proc/{pid}/status"), "VmHWM:");
            self.peak = self.peak.max(peak);
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn new(_: u32) -> Self {
        Self { peak: None }
    }

    #[cfg(not(target_os = "linux"))]
    fn look(&mut self, _: Duration) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    static GO: AtomicBool = AtomicBool::new(false);

    fn shell(script: &str) -> CommandLine {
        CommandLine::new(["sh", "-c", script]).unwrap().output(Output::Capture)
    }

    #[test]
    fn a_program_is_measured_and_its_output_and_exit_code_are_kept() {
        let run = shell("echo out; echo err >&2; sleep 0.1; exit 7").run(&GO).unwrap();
        assert_eq!(run.ending, Ending::Exited(7));
        assert_eq!((run.stdout.text(), run.stderr.text()), ("out\n".into(), "err\n".into()));
        assert!(run.wall >= Duration::from_millis(100), "{:?}", run.wall);
        let error = run.checked().unwrap_err();
        assert_eq!(error.what(), "the program failed with exit code 7");
        assert_eq!(error.advice(), "its output: err");
    }

    #[test]
    fn cpu_time_of_children_counts() {
        let run = shell("i=0; (while [ $i -lt 60000 ]; do i=$((i+1)); done); true").run(&GO).unwrap();
        assert!(run.ending == Ending::Exited(0) && run.user >= Duration::from_millis(10), "{run:?}");
        assert!(run.figures().cpu() <= run.wall * 2 + TICK);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn peak_memory_is_the_programs_not_ours() {
        let ours = std::hint::black_box(vec![1u8; 200 << 20]);
        let small = shell("sleep 0.15").run(&GO).unwrap();
        let large = shell("x=$(head -c 300000000 /dev/zero | tr '\\0' x); sleep 0.1").run(&GO).unwrap();
        assert!(small.peak_memory.unwrap() < 50 << 20, "{small:?}");
        assert!(large.peak_memory.unwrap() > 280 << 20, "{:?}", large.peak_memory);
        drop(ours);
    }

    #[test]
    fn a_timeout_ends_the_program_and_its_children() {
        let line = shell("sleep 30 & sleep 30").timeout(Duration::from_millis(100));
        let started = Instant::now();
        let run = line.run(&GO).unwrap();
        assert_eq!(run.ending, Ending::TimedOut);
        assert!(started.elapsed() < Duration::from_secs(8));
        assert!(run.checked().unwrap_err().what().contains("was stopped"));
    }

    #[test]
    fn a_program_that_ignores_the_first_signal_is_killed() {
        let line = shell("trap '' TERM; while :; do sleep 0.05; done");
        let run = line.timeout(Duration::from_millis(100)).run(&GO).unwrap();
        assert_eq!(run.ending, Ending::TimedOut);
        assert!(run.wall >= GRACE);
    }

    #[test]
    fn a_set_flag_ends_the_program() {
        assert_eq!(shell("sleep 30").run(&AtomicBool::new(true)).unwrap().ending, Ending::Cancelled);
    }

    #[test]
    fn a_missing_program_is_an_error_with_its_name() {
        let error = CommandLine::new(["/no/such/program", "a b"]).unwrap().run(&GO).unwrap_err();
        assert_eq!(error.place(), "/no/such/program 'a b'");
        assert!(error.advice().starts_with("install it"));
    }
}
