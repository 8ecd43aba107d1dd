//! A line of JSON for each second, and for what else happens.

use std::io::Write;

use serde::Serialize;

use crate::observer::{Observer, Snapshot};
use crate::result::file::{DriveResult, RunDescription};
use crate::result::second::{ChaosEvent, Second};
use crate::watch::watchers::{Output, Troubles};

/// Writes a line of JSON at the start, for each second, each chaos event and the end; flushed each, so that a
/// reader of a pipe sees it at once. The lines differ by their field `event`.
pub struct JsonLines(Output);

/// One line.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Started {
        #[serde(flatten)]
        run: &'a RunDescription,
    },
    Second {
        #[serde(flatten)]
        second: &'a Second,
    },
    Chaos {
        #[serde(flatten)]
        chaos: &'a ChaosEvent,
    },
    Ended {
        valid: bool,
        invalid_because: &'a [String],
        interrupted: bool,
        ok: u64,
        failed: u64,
        rate: f64,
    },
}

impl JsonLines {
    /// Writes to `out`; `place` names it in errors.
    pub fn new(out: impl Write + Send + 'static, place: &str, troubles: &Troubles) -> Self {
        Self(Output::new(out, place, troubles))
    }

    fn write(&mut self, event: &Event<'_>) {
        let line = serde_json::to_string(event).map_err(std::io::Error::other);
        let told = ("the JSON lines cannot be written", "the lines before this one are complete");
        self.0.write(line.map(|line| line + "\n"), told);
    }
}

impl Observer for JsonLines {
    fn started(&mut self, run: &RunDescription) {
        self.write(&Event::Started { run });
    }

    fn second(&mut self, snapshot: &Snapshot<'_>) {
        self.write(&Event::Second { second: snapshot.second });
    }

    fn chaos(&mut self, event: &ChaosEvent) {
        self.write(&Event::Chaos { chaos: event });
    }

    fn ended(&mut self, result: &DriveResult) {
        self.write(&Event::Ended {
            valid: result.valid,
            invalid_because: &result.invalid_because,
            interrupted: result.interrupted,
            ok: result.total.ok,
            failed: result.total.failed(),
            rate: result.total.rate,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk without room.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::from(std::io::ErrorKind::StorageFull))
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_reported_once_and_does_not_stop_the_run() {
        let troubles = Troubles::default();
        let mut lines = JsonLines::new(Full, "run.jsonl", &troubles);
        lines.started(&RunDescription::default());
        lines.chaos(&ChaosEvent::default());
        let error = troubles.first().unwrap();
        assert!(error.what().starts_with("the JSON lines cannot be written"), "{error}");
        assert_eq!(error.place(), "run.jsonl");
    }
}
