//! Prints a line of progress where standard error is not a terminal: every ten seconds, with -v each second.

use sawmill_drive::{ChaosEvent, Observer, Snapshot};
use sawmill_profile::format_count;

use crate::screen::console::Console;

/// Writes a line every ten seconds, or with `-v` each second, to standard error.
pub(super) struct Progress {
    console: Console,
    seconds: u64,
}

impl Progress {
    pub(super) fn new(console: Console) -> Self {
        Self { console, seconds: 0 }
    }
}

impl Observer for Progress {
    fn second(&mut self, snapshot: &Snapshot<'_>) {
        self.seconds += 1;
        if self.console.verbose == 0 && !self.seconds.is_multiple_of(10) {
            return;
        }
        let second = snapshot.second;
        let (mut worst, mut errors) = (0, 0);
        for operation in second.operations.values() {
            worst = worst.max(operation.latency.p99_us);
            errors += operation.errors.values().sum::<u64>();
        }
        self.console.notice(&format!(
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
