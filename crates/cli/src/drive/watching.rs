//! How a load test is watched: the options, and the observers that they ask for.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use sawmill_drive::{HdrLog, JsonLines, LiveScreen, Prometheus, Troubles, Watchers};

use crate::drive::progress::Progress;
use crate::error::{Error, Result};
use crate::screen::console::Console;
use crate::screen::flame;

/// What to show, store and serve while a load test runs.
#[derive(Args, Debug)]
#[command(next_help_heading = "Watching")]
pub(crate) struct WatchArgs {
    /// Serve metrics to Prometheus at http://HOST:PORT/metrics while the test runs; :9400 listens on all
    /// interfaces.
    #[arg(long, value_name = "[HOST]:PORT")]
    prometheus: Option<String>,
    /// Write a line of JSON for each second to this file, or with - to standard output.
    #[arg(long, value_name = "FILE|-", conflicts_with = "json")]
    jsonl: Option<PathBuf>,
    /// Write the histogram of each operation in each second to this file, as an interval log of HdrHistogram.
    #[arg(long, value_name = "FILE.hlog")]
    hlog: Option<PathBuf>,
    /// Draw the result as a self-contained HTML page.
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
}

impl WatchArgs {
    /// The observers, and their later errors: look at these when the run has ended.
    ///
    /// # Errors
    /// A file cannot be created, or the port is taken.
    pub(super) fn watchers(&self, console: Console) -> Result<(Watchers, Troubles)> {
        if let Some(path) = &self.html {
            flame::may_replace(path, b'<', &format!("--html {}", path.display()))?;
        }
        let (mut watchers, troubles) = (Watchers::default(), Troubles::default());
        if let Some(address) = &self.prometheus {
            watchers.add(Prometheus::listen(address)?);
        }
        if let Some(path) = &self.jsonl {
            let place = path.display().to_string();
            watchers.add(match path.as_os_str() == "-" {
                true => JsonLines::new(std::io::stdout(), "standard output", &troubles),
                false => JsonLines::new(created(path, "--jsonl", b'{')?, &place, &troubles),
            });
        }
        if let Some(path) = &self.hlog {
            watchers.add(HdrLog::new(created(path, "--hlog", b'#')?, &path.display().to_string(), &troubles));
        }
        match console.quiet {
            true => {}
            false if std::io::stderr().is_terminal() => watchers.add(LiveScreen::default()),
            false => watchers.add(Progress::new(console)),
        }
        Ok((watchers, troubles))
    }

    /// The options that name a file, and their files.
    pub(super) fn files(&self) -> [(&'static str, Option<&PathBuf>); 3] {
        [("--jsonl", self.jsonl.as_ref()), ("--hlog", self.hlog.as_ref()), ("--html", self.html.as_ref())]
    }

    /// Whether standard output belongs to the lines of JSON.
    pub(super) fn takes_stdout(&self) -> bool {
        self.jsonl.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }
}

/// Creates the file that grows second by second.
fn created(path: &Path, option: &str, begins: u8) -> Result<impl Write + Send + use<>> {
    flame::may_replace(path, begins, &format!("{option} {}", path.display()))?;
    let file = path.to_owned();
    sawmill_store::unless_stopped(move || File::create(file)).map_err(|error| {
        let place = format!("{option} {}", path.display());
        let advice = "check that its folder exists and is writable";
        Error::failure(format!("the file cannot be created: {error}"), place, advice)
    })
}
