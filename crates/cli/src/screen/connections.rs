//! One line for each connection of a load: its rate, and the reason if it waits.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use sawmill_profile::{LiveThread, WaitKind, format_byte_rate, format_rate};

/// Samples that make up a line, which covers the last few seconds.
const SAMPLES: usize = 20;

/// Most connections that get lines; more would not fit on a screen.
const MAX: usize = 16;

/// The lines below a bar.
pub(crate) struct ConnectionLines {
    screen: MultiProgress,
    lines: BTreeMap<usize, Line>,
}

struct Line {
    bar: ProgressBar,
    samples: VecDeque<Sample>,
}

struct Sample {
    at: Instant,
    rows: u64,
    bytes: u64,
    waiting: Option<WaitKind>,
}

impl ConnectionLines {
    /// Starts without lines, below the bars of `screen`.
    pub(crate) fn below(screen: MultiProgress) -> Self {
        Self { screen, lines: BTreeMap::new() }
    }

    /// Samples the sending threads, which are called `sender N`.
    pub(crate) fn sample(&mut self, threads: &[LiveThread]) {
        for thread in threads {
            let number = thread.name.strip_prefix("sender ").and_then(|number| number.parse().ok());
            let Some(number) = number.filter(|number| *number <= MAX) else { continue };
            // Below the bar, in the order of their numbers.
            let place = 1 + self.lines.range(..number).count();
            let line = self.lines.entry(number).or_insert_with(|| {
                let bar = ProgressBar::no_length();
                if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
                    bar.set_style(style);
                }
                Line { bar: self.screen.insert(place, bar), samples: VecDeque::with_capacity(SAMPLES + 1) }
            });
            let (rows, bytes) = (thread.rows, thread.bytes);
            line.samples.push_back(Sample { at: Instant::now(), rows, bytes, waiting: thread.waiting });
            if line.samples.len() > SAMPLES {
                line.samples.pop_front();
            }
            line.bar.set_message(format!("connection {number:<2} {}", line.text()));
        }
    }

    /// Removes the lines.
    pub(crate) fn clear(self) {
        self.lines.into_values().for_each(|line| line.bar.finish_and_clear());
    }
}

impl Line {
    fn text(&self) -> String {
        let (Some(first), Some(last)) = (self.samples.front(), self.samples.back()) else {
            return String::new();
        };
        let seconds = last.at.duration_since(first.at).as_secs_f64().max(1e-3);
        let rate = |first: u64, last: u64| last.saturating_sub(first) as f64 / seconds;
        let share = |kind: WaitKind| {
            let waiting = self.samples.iter().filter(|sample| sample.waiting == Some(kind)).count();
            100 * waiting / self.samples.len()
        };
        format!(
            "{}, {}, waits for the server {} %, for rows {} %",
            format_rate(rate(first.rows, last.rows), "rows"),
            format_byte_rate(rate(first.bytes, last.bytes)),
            share(WaitKind::Network),
            share(WaitKind::ChannelEmpty),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_what_its_connection_waited_for_lately() {
        let mut lines = ConnectionLines::below(MultiProgress::new());
        let thread = |waiting| LiveThread { name: "sender 2".into(), waiting, rows: 10, bytes: 100 };
        for _ in 0..3 {
            lines.sample(&[thread(Some(WaitKind::Network))]);
        }
        lines.sample(&[
            thread(Some(WaitKind::ChannelEmpty)),
            LiveThread { name: "encoder 2".into(), ..thread(None) },
        ]);
        assert_eq!(lines.lines.keys().collect::<Vec<_>>(), [&2]);
        let text = lines.lines[&2].text();
        assert!(text.ends_with("waits for the server 75 %, for rows 25 %"), "{text}");
        for _ in 0..SAMPLES {
            lines.sample(&[thread(None)]);
        }
        assert!(lines.lines[&2].text().ends_with("the server 0 %, for rows 0 %"));
    }
}
