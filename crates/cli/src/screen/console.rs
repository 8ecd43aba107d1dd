//! Output for people: results on standard output, everything else on standard error.
//!
//! Progress bars and steps appear only if standard error is a terminal. In a log, a line every ten seconds tells how far a
//! long job is.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::{ArgAction, Args};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use sawmill_inspect::{JsonSafe, NarrowLines};
use sawmill_profile::{Phase, beside, format_duration, format_rate};
use serde::Serialize;
use terminal_size::{Width, terminal_size_of};

use crate::error::{Error, Result};
use crate::interrupt;
use crate::screen::connections::ConnectionLines;
use crate::screen::escape;
use crate::screen::phases::thousands;

/// Where help lists the options of all commands: after the options of the command itself.
const LAST: usize = 900;

/// The options of all commands.
#[derive(Args, Debug)]
pub(crate) struct ScreenArgs {
    /// Print results as JSON.
    #[arg(long, global = true, display_order = LAST)]
    json: bool,
    /// Report details on standard error.
    #[arg(long, short, global = true, display_order = LAST, hide_short_help = true, action = ArgAction::Count)]
    verbose: u8,
    /// Print only errors and requested results: no progress, notes or job summaries.
    #[arg(long, short, global = true, display_order = LAST)]
    quiet: bool,
    /// Draw a flame graph of the CPU time of each thread, as an SVG for a browser; for a benchmark, of an
    /// extra run. Needs the full build.
    #[arg(long, global = true, display_order = LAST, hide_short_help = true, value_name = "FILE.svg")]
    pub flamegraph: Option<PathBuf>,
}

impl ScreenArgs {
    pub(crate) fn console(&self) -> Console {
        Console { json: self.json, quiet: self.quiet, verbose: self.verbose }
    }
}

/// What the user wants to see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Console {
    /// Results as JSON.
    pub json: bool,
    /// Only errors and requested results.
    pub quiet: bool,
    /// How many `-v` were given.
    pub verbose: u8,
}

/// How often a progress bar reads its phase.
const TICK: Duration = Duration::from_millis(100);
/// The interval between lines of progress without a terminal, unless `SAWMILL_PROGRESS` sets a shorter one.
const LINE: Duration = Duration::from_secs(10);

/// The bars on the screen, if any.
static SCREEN: Mutex<Option<MultiProgress>> = Mutex::new(None);

/// Bytes of output that are written at a time.
const OUTPUT_BUFFER: usize = 64 * 1024;

/// Standard output that fails when the command is asked to stop.
pub(crate) struct Output {
    stdout: StdoutLock<'static>,
    narrow: Option<NarrowLines>,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if interrupt::asked() {
            // Not `ErrorKind::Interrupted`, after which `write_all` would try again.
            return Err(io::Error::other("interrupted"));
        }
        match &mut self.narrow {
            None => self.stdout.write(bytes),
            Some(lines) => self.stdout.write_all(lines.take(bytes).as_bytes()).map(|()| bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(lines) = &mut self.narrow {
            self.stdout.write_all(lines.end().as_bytes())?;
        }
        self.stdout.flush()
    }
}

impl Console {
    /// Whether bars and steps are shown.
    fn live(self) -> bool {
        !self.quiet && std::io::stderr().is_terminal()
    }

    /// Prints a result: `text` for people, or `value` with `--json`.
    pub(crate) fn result(self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
        if !self.json {
            return print(&escape::lines(&text()));
        }
        let mut json = Vec::new();
        value
            .serialize(&mut serde_json::Serializer::pretty(JsonSafe(&mut json)))
            .map_err(|error| Error::failure(error.to_string(), "the result", ""))?;
        json.push(b'\n');
        print(&String::from_utf8_lossy(&json))
    }

    /// Prints the summary of a job whose product is a file or a table; with `--quiet` only as JSON.
    pub(crate) fn summary(self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
        if self.quiet && !self.json { Ok(()) } else { self.result(value, text) }
    }

    /// Prints a text that programs read, such as SQL or a dataset spec: as it is, but on a terminal as a result.
    pub(crate) fn document(self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
        if self.json || io::stdout().is_terminal() { self.result(value, text) } else { print(&text()) }
    }

    /// Prints the first part of a result; `--json` prints everything at the end.
    pub(crate) fn text(self, text: &str) -> Result<()> {
        if self.json { Ok(()) } else { print(&escape::lines(text)) }
    }

    /// Buffered standard output for results that are written piece by piece. Flush it at the end.
    pub(crate) fn output(self) -> BufWriter<Output> {
        let narrow = terminal_lines().filter(|_| !self.json);
        BufWriter::with_capacity(OUTPUT_BUFFER, Output { stdout: io::stdout().lock(), narrow })
    }

    /// A bar that counts files, if bars are shown.
    pub(crate) fn bar_of_files(self, files: u64) -> Option<ProgressBar> {
        if !self.live() {
            return None;
        }
        let bar = ProgressBar::new(files);
        let style = "{prefix:>10} [{bar:30}] {percent:>3}% {human_pos}/{human_len} files, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style.progress_chars("=> "));
        }
        Some(bar.with_prefix("read"))
    }

    /// Reports what happens next, on a terminal or with `-v`.
    pub(crate) fn step(self, text: &str) {
        self.report(&escape::message(text));
    }

    /// Reports a result of several lines, on a terminal or with `-v`, as standard output has something else.
    pub(crate) fn steps(self, text: &str) {
        self.report(&escape::lines(text));
    }

    fn report(self, text: &str) {
        if self.live() || self.verbose > 0 {
            // If standard error is closed, nothing can report it.
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }

    /// Reports something that the user should know at once, above the bars if there are any.
    pub(crate) fn notice(self, text: &str) {
        if self.quiet {
            return;
        }
        let text = &escape::message(text);
        let screen = SCREEN.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // If standard error is closed, nothing can report it.
        let _ = match screen {
            Some(screen) => screen.println(text),
            None => writeln!(std::io::stderr(), "{text}"),
        };
    }

    /// Reports what the user asked to know, also with `--quiet`.
    pub(crate) fn warn(self, text: &str) {
        // If standard error is closed, nothing can report it.
        let _ = writeln!(std::io::stderr(), "{}", escape::message(text));
    }

    /// Reports details, with `-v`.
    pub(crate) fn detail(self, text: impl FnOnce() -> String) {
        if self.verbose > 0 {
            let _ = writeln!(std::io::stderr(), "  {}", escape::message(&text()));
        }
    }

    /// A spinner for work of unknown size; hidden without a terminal.
    pub(crate) fn spinner(self) -> ProgressBar {
        if !self.live() {
            return ProgressBar::hidden();
        }
        let spinner = ProgressBar::new_spinner();
        spinner.enable_steady_tick(TICK);
        spinner
    }

    /// Runs `work` under a bar that shows how many of `rows` rows `phase` has counted, with a line for each
    /// connection that sends.
    pub(crate) fn with_bar<T>(self, title: &str, rows: u64, phase: &Phase, work: impl FnOnce() -> T) -> T {
        self.with_named_bar(title, rows, &AtomicU64::new(0), phase, |_| work())
    }

    /// The same for work that renames the bar while it runs. `kept` counts rows that turn out to need no work.
    pub(crate) fn with_named_bar<T>(
        self,
        title: &str,
        rows: u64,
        kept: &AtomicU64,
        phase: &Phase,
        work: impl FnOnce(&dyn Fn(String)) -> T,
    ) -> T {
        if self.quiet {
            return work(&|_| {});
        }
        let all = || rows.saturating_sub(kept.load(Relaxed));
        if !self.live() {
            return with_lines(title, &all, phase, work);
        }
        let screen = MultiProgress::new();
        *SCREEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(screen.clone());
        let bar = screen.add(ProgressBar::new(rows));
        if let Ok(style) = ProgressStyle::with_template("  {msg} [{wide_bar}]") {
            bar.set_style(style.progress_chars("=> "));
        }
        let (name, began) = (Mutex::new(title.to_owned()), Instant::now());
        let tick = |over: &AtomicBool| {
            let mut connections = ConnectionLines::below(screen.clone());
            while !over.load(Relaxed) {
                bar.set_length(all());
                bar.set_position(phase.rows());
                let name = name.lock().unwrap_or_else(PoisonError::into_inner).clone();
                bar.set_message(escape::message(&progress_line(&name, phase.rows(), all(), began.elapsed())));
                connections.sample(&phase.live());
                std::thread::park_timeout(TICK);
            }
            connections.clear();
        };
        let rename = |new: String| *name.lock().unwrap_or_else(PoisonError::into_inner) = new;
        let (result, _) = beside("progress bar", tick, || work(&rename));
        bar.finish_and_clear();
        *SCREEN.lock().unwrap_or_else(PoisonError::into_inner) = None;
        result
    }
}

/// The time between two lines of progress.
fn line_every() -> Duration {
    let asked = std::env::var("SAWMILL_PROGRESS").ok().and_then(|seconds| seconds.parse().ok());
    let asked = asked.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    asked.filter(|every| !every.is_zero()).unwrap_or(LINE)
}

/// Runs `work` on `all` rows while a line every ten seconds on standard error tells its progress.
fn with_lines<T>(
    title: &str,
    all: &(dyn Fn() -> u64 + Sync),
    phase: &Phase,
    work: impl FnOnce(&dyn Fn(String)) -> T,
) -> T {
    let name = Mutex::new(title.to_owned());
    let tell = |over: &AtomicBool| {
        let (began, every) = (Instant::now(), line_every());
        let mut next = every;
        while !over.load(Relaxed) {
            let seconds = began.elapsed();
            if seconds < next {
                std::thread::park_timeout(next.saturating_sub(seconds));
                continue;
            }
            next = seconds + every;
            let name = name.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let line = progress_line(&name, phase.rows(), all(), seconds);
            // If standard error is closed or full, nothing can report it.
            let _ = writeln!(std::io::stderr(), "{}", escape::message(&line));
        }
    };
    let rename = |new: String| *name.lock().unwrap_or_else(PoisonError::into_inner) = new;
    beside("progress lines", tell, || work(&rename)).0
}

/// How far a job is after `time`, in a line: `load: 45 %, 900 of 2,000 rows, 90.0 rows/s, 12 s left`.
fn progress_line(name: &str, done: u64, all: u64, time: Duration) -> String {
    let rate = done as f64 / time.as_secs_f64().max(1e-3);
    let percent = match all {
        0 => String::new(),
        _ => format!(" {} %,", (u128::from(done) * 100 / u128::from(all)).min(100)),
    };
    let left = match done {
        0 => String::new(),
        _ => {
            let seconds = (all.saturating_sub(done) as f64 / rate).round();
            let left = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
            match seconds < 100.0 {
                true => format!(", {seconds:.0} s left"),
                false => format!(", {} left", format_duration(left)),
            }
        }
    };
    let (done, all, rate) = (thousands(done), thousands(all), format_rate(rate, "rows"));
    format!("{name}:{percent} {done} of {all} rows, {rate}{left}")
}

/// Lines for the terminal that standard output is, if it is one.
fn terminal_lines() -> Option<NarrowLines> {
    terminal_size_of(io::stdout()).map(|(Width(width), _)| NarrowLines::new(width.into()))
}

fn print(text: &str) -> Result<()> {
    let text = match terminal_lines() {
        Some(mut lines) => lines.take(text.as_bytes()) + &lines.end(),
        None => text.to_owned(),
    };
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|e| Error::output(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_progress_has_the_share_the_rate_and_the_rest() {
        let line = |done, all| progress_line("load", done, all, Duration::from_secs(10));
        assert_eq!(line(900, 2000), "load: 45 %, 900 of 2,000 rows, 90.0 rows/s, 12 s left");
        assert_eq!(line(2100, 2000), "load: 100 %, 2,100 of 2,000 rows, 210 rows/s, 0 s left");
        assert_eq!(line(0, 2000), "load: 0 %, 0 of 2,000 rows, 0.00 rows/s");
        assert!(line(1, 7_269_716).ends_with(", 841 d 10 h left"), "{}", line(1, 7_269_716));
        assert_eq!(line(0, 0), "load: 0 of 0 rows, 0.00 rows/s");
    }

    #[test]
    fn work_is_not_held_up_by_its_lines() {
        let phase = sawmill_profile::Profile::new().phase("load");
        let began = Instant::now();
        let done = with_lines("load", &|| 10, &phase, |name| {
            name("other".to_owned());
            7
        });
        assert_eq!(done, 7);
        assert!(began.elapsed() < LINE / 2, "{:?}", began.elapsed());
    }
}
