//! A line of JSON each second, and a line on a terminal.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use sawmill_drive::{ChaosEvent, Observer, Snapshot};
use sawmill_profile::format_count;

use crate::error::Error;
use crate::screen::console::Console;

/// Writes what happens as it happens.
pub(super) struct Lines {
    console: Console,
    file: Option<Box<dyn Write + Send>>,
    failed: Option<std::io::Error>,
}

impl Lines {
    pub(super) fn new(console: Console, path: Option<&Path>) -> Result<Self, Error> {
        let file: Option<Box<dyn Write + Send>> = match path {
            None => None,
            Some(path) if path == Path::new("-") => Some(Box::new(std::io::stdout())),
            Some(path) => Some(Box::new(File::create(path).map_err(|error| {
                Error::failure(
                    error.to_string(),
                    path.display().to_string(),
                    "write elsewhere with --json-lines",
                )
            })?)),
        };
        Ok(Self { console, file, failed: None })
    }

    /// Why lines could not be written.
    pub(super) fn failure(self) -> Option<std::io::Error> {
        self.failed
    }
}

impl Observer for Lines {
    fn second(&mut self, snapshot: &Snapshot<'_>) {
        let second = snapshot.second;
        if let Some(file) = &mut self.file {
            let line = serde_json::to_string(second).map_err(std::io::Error::from);
            let written = line.and_then(|line| writeln!(file, "{line}")).and_then(|()| file.flush());
            if let Err(error) = written {
                self.failed.get_or_insert(error);
                self.file = None;
            }
        }
        let (mut worst, mut errors) = (0, 0);
        for operation in second.operations.values() {
            worst = worst.max(operation.latency.p99_us);
            errors += operation.errors.values().sum::<u64>();
        }
        self.console.step(&format!(
            "{:>5.0} s  intended {:>8}/s  achieved {:>8}/s  p99 {:>9.2} ms  errors {errors}  late {}{}",
            second.at,
            format_count(second.intended.round() as u64),
            format_count(second.achieved.round() as u64),
            worst as f64 / 1000.0,
            second.late,
            if second.warm_up { "  (warm-up)" } else { "" }
        ));
    }

    fn chaos(&mut self, event: &ChaosEvent) {
        let failed = event.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        self.console
            .notice(&format!("{:>5.1} s  {} (took {:.1} s){failed}", event.at, event.what, event.took));
    }
}
