//! Prints a line of progress each second with -v, where standard error is not a terminal.

use sawmill_drive::{ChaosEvent, Observer, Snapshot};
use sawmill_profile::format_count;

use crate::screen::console::Console;

/// Writes a line each second to standard error.
pub(super) struct Progress(pub Console);

impl Observer for Progress {
    fn second(&mut self, snapshot: &Snapshot<'_>) {
        let second = snapshot.second;
        let (mut worst, mut errors) = (0, 0);
        for operation in second.operations.values() {
            worst = worst.max(operation.latency.p99_us);
            errors += operation.errors.values().sum::<u64>();
        }
        self.0.step(&format!(
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
        self.0.notice(&format!("{:>5.1} s  {} (took {:.1} s){failed}", event.at, event.what, event.took));
    }
}
