//! Another program run as a whole process and measured by the operating system.
//!
//! The program runs in a process group of its own, so that a timeout or a cancelled run ends what it
//! started, too. A thread waits for its end (`waitid(2)` with `WNOWAIT`), so that the wall time is
//! taken at once; then `wait4(2)` tells what it and its reaped children used.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::measure::captured_output::CapturedOutput;
use crate::measure::run::Run;

/// What becomes of a program's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// It is thrown away.
    #[default]
    Discard,
    /// It is read, and its end is kept.
    Capture,
}

/// A program with its arguments.
#[derive(Clone, Debug)]
pub struct CommandLine {
    pub(crate) words: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) output: Output,
    pub(crate) timeout: Option<Duration>,
}

impl CommandLine {
    /// A program and its arguments. Its input is empty and its output is thrown away.
    ///
    /// # Errors
    /// There is no word.
    pub fn new(words: impl IntoIterator<Item = impl Into<String>>) -> Result<Self> {
        let words: Vec<String> = words.into_iter().map(Into::into).collect();
        if words.first().is_none_or(String::is_empty) {
            return Err(Error::new("the command is empty", "", "name a program"));
        }
        Ok(Self { words, environment: Vec::new(), directory: None, output: Output::Discard, timeout: None })
    }

    /// Sets a variable of its environment; the rest is ours.
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the directory it runs in.
    pub fn directory(self, directory: impl Into<PathBuf>) -> Self {
        Self { directory: Some(directory.into()), ..self }
    }

    /// Sets what becomes of its output.
    pub fn output(self, output: Output) -> Self {
        Self { output, ..self }
    }

    /// Ends it when it runs for longer: first politely, after two seconds by force.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// The words in one text, for messages and results.
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

    /// Runs it once and measures it. How it ended is in the answer: a program that fails is no
    /// error here; ask [`CommandRun::checked`] for that.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use std::sync::atomic::AtomicBool;
    /// let echo = sawmill_profile::CommandLine::new(["sh", "-c", "exit 3"]).unwrap();
    /// let run = echo.run(&AtomicBool::new(false)).unwrap();
    /// assert_eq!(run.ending, sawmill_profile::Ending::Exited(3));
    /// # }
    /// ```
    ///
    /// # Errors
    /// The program cannot be started, or the system does not tell what it used.
    pub fn run(&self, cancel: &AtomicBool) -> Result<CommandRun> {
        #[cfg(unix)]
        return crate::measure::measured_child::run(self, cancel);
        #[cfg(not(unix))]
        {
            let _ = cancel;
            Err(Error::new("other programs are measured on Unix only", self.text(), ""))
        }
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal, which was not ours.
    Signalled(i32),
    /// By us: its time was over.
    TimedOut,
    /// By us: the flag was set.
    Cancelled,
}

/// A program that was run and measured.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandRun {
    /// Its command line.
    pub command: String,
    /// How it ended.
    pub ending: Ending,
    /// Wall-clock time from just before its start to its end.
    pub wall: Duration,
    /// CPU time in user space, of it and of its children that it waited for.
    pub user: Duration,
    /// CPU time in the kernel, of the same.
    pub system: Duration,
    /// The largest resident memory in bytes of it or of one of its children: from the system where
    /// that is more than ours was, sampled every 10 ms otherwise (a program that we start inherits
    /// our own peak in `ru_maxrss`, so below it that says nothing). `None` where it is not known.
    pub peak_memory: Option<u64>,
    /// What it wrote to its output, where that was captured.
    pub stdout: CapturedOutput,
    /// What it wrote to its errors, where that was captured.
    pub stderr: CapturedOutput,
}

impl CommandRun {
    /// Whether it ended by itself with exit code 0.
    pub fn succeeded(&self) -> bool {
        self.ending == Ending::Exited(0)
    }

    /// The run itself where it succeeded.
    ///
    /// # Errors
    /// How it ended otherwise, with the last lines that it wrote.
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
        let mut said = self.stderr.last_lines(5);
        if said.is_empty() {
            said = self.stdout.last_lines(5);
        }
        let advice = if said.is_empty() { String::new() } else { format!("it said: {said}") };
        Err(Error::new(what, self.command, advice))
    }

    /// Its figures as a run, without rows and checksum: what it did it alone knows.
    pub fn figures(&self) -> Run {
        Run {
            wall: self.wall,
            user: self.user,
            system: self.system,
            peak_memory: self.peak_memory,
            ..Run::default()
        }
    }
}
