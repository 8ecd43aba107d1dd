//! A line of JSON for each second, and for what else happens.

use std::io::Write;

use sawmill_profile::Error;
use serde::Serialize;

use crate::observer::{Observer, Snapshot};
use crate::result::file::{DriveResult, RunDescription};
use crate::result::second::{ChaosEvent, Second};
use crate::watch::watchers::Troubles;

/// Writes a line of JSON at the start, for each second, each chaos event and the end; flushed each, so that a
/// reader of a pipe sees it at once. The lines differ by their field `event`.
pub struct JsonLines {
    out: Box<dyn Write + Send>,
    place: String,
    troubles: Troubles,
    failed: bool,
}

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
        Self { out: Box::new(out), place: place.to_owned(), troubles: troubles.clone(), failed: false }
    }

    fn write(&mut self, event: &Event<'_>) {
        if self.failed {
            return;
        }
        let line = serde_json::to_string(event).map_err(std::io::Error::other);
        let written = line.and_then(|line| {
            self.out.write_all(line.as_bytes())?;
            self.out.write_all(b"\n")?;
            self.out.flush()
        });
        if let Err(error) = written {
            self.failed = true;
            let what = format!("the JSON lines cannot be written: {error}");
            self.troubles.keep(Error::failed(what, &self.place, "the lines before this one are complete"));
        }
    }
}

impl std::fmt::Debug for JsonLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JsonLines").field("place", &self.place).finish_non_exhaustive()
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
