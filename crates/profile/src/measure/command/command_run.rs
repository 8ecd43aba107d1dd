//! Runs another program as a whole process, measured by the operating system.
//!
//! The program runs in its own process group, so that a timeout or a cancelled run also ends the processes it
//! started. A thread waits for its end (`waitid(2)` with `WNOWAIT`), so that the wall time is taken
//! immediately; then `wait4(2)` reports the resources of the program and its reaped children.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::measure::command::captured_output::CapturedOutput;
use crate::measure::run::Run;

/// What to do with a program's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Discard it.
    #[default]
    Discard,
    /// Read it and keep its end.
    Capture,
}

/// A program with its arguments.
#[derive(Clone, Debug)]
pub struct CommandLine {
    pub(crate) words: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) output: Output,
    pub(crate) timeout: Option<Duration>,
}

impl CommandLine {
    /// A program and its arguments. Its input is empty and its output is discarded.
    ///
    /// # Errors
    /// `words` is empty.
    pub fn new(words: impl IntoIterator<Item = impl Into<String>>) -> Result<Self> {
        let words: Vec<String> = words.into_iter().map(Into::into).collect();
        if words.first().is_none_or(String::is_empty) {
            return Err(Error::failed("the command is empty", "", "name a program"));
        }
        Ok(Self { words, environment: Vec::new(), output: Output::Discard, timeout: None })
    }

    /// Sets an environment variable; the program inherits the others.
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets what to do with its output.
    pub fn output(self, output: Output) -> Self {
        Self { output, ..self }
    }

    /// Ends the program after this time: with a signal first, and by force two seconds later.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// The words as one text, for messages and results.
    pub fn text(&self) -> String {
        let quoted = self.words.iter().map(|word| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c);
            if !word.is_empty() && word.chars().all(plain) {
                word.clone()
            } else {
                format!("'{}'", word.replace('\'', r"'\''"))
            }
        });
        quoted.collect::<Vec<_>>().join(" ")
    }

    /// Runs the program once and measures it. The result says how it ended: failure of the program is not an
    /// error here; use [`CommandRun::checked`] for that.
    ///
    /// ```
    /// use std::sync::atomic::AtomicBool;
    /// let echo = sawmill_profile::CommandLine::new(["sh", "-c", "exit 3"]).unwrap();
    /// let run = echo.run(&AtomicBool::new(false)).unwrap();
    /// assert_eq!(run.ending, sawmill_profile::Ending::Exited(3));
    /// ```
    ///
    /// # Errors
    /// The program cannot be started, or the system does not report its resources.
    pub fn run(&self, cancel: &AtomicBool) -> Result<CommandRun> {
        crate::measure::command::measured_child::run(self, cancel)
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// On its own, with this exit code.
    Exited(i32),
    /// By this signal, which we did not send.
    Signalled(i32),
    /// Stopped by us at the timeout.
    TimedOut,
    /// Stopped by us because the flag was set.
    Cancelled,
}

/// A program after its measured run.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandRun {
    /// Its command line.
    pub command: String,
    /// How it ended.
    pub ending: Ending,
    /// Wall-clock time from just before its start to its end.
    pub wall: Duration,
    /// CPU time in user space, including children that it waited for.
    pub user: Duration,
    /// CPU time in the kernel, including those children.
    pub system: Duration,
    /// The largest resident memory of the program or one of its children, in bytes. `ru_maxrss` if it is
    /// above our own peak, which a child inherits there; otherwise sampled every 10 ms. `None` if unknown.
    pub peak_memory: Option<u64>,
    /// Its standard output, if captured.
    pub stdout: CapturedOutput,
    /// Its standard error, if captured.
    pub stderr: CapturedOutput,
}

impl CommandRun {
    /// Returns the run if it succeeded.
    ///
    /// # Errors
    /// The program ended in another way; the error includes the last lines it wrote.
    pub fn checked(self) -> Result<Self> {
        let what = match self.ending {
            Ending::Exited(0) => return Ok(self),
            Ending::Exited(code) => format!("the program failed with exit code {code}"),
            Ending::Signalled(signal) => format!("the program was ended by signal {signal}"),
            Ending::TimedOut => {
                format!("the program did not end in {:.1} s and was stopped", self.wall.as_secs_f64())
            }
            Ending::Cancelled => "the program was stopped".to_owned(),
        };
        let mut output = self.stderr.last_lines(5);
        if output.is_empty() {
            output = self.stdout.last_lines(5);
        }
        let advice = if output.is_empty() { String::new() } else { format!("its output: {output}") };
        Err(Error::failed(what, self.command, advice))
    }

    /// The figures as a run, without rows and checksum, which only the program knows.
    pub fn figures(&self) -> Run {
        let Self { wall, user, system, peak_memory, .. } = *self;
        Run { wall, user, system, peak_memory, ..Run::default() }
    }
}
