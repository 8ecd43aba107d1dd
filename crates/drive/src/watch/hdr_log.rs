//! HdrHistogram's interval log: the exact histogram of each operation in each second, for HistogramLogAnalyzer
//! and its like.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::observer::{Observer, Snapshot};
use crate::result::file::RunDescription;
use crate::watch::hdr_v2;
use crate::watch::watchers::{Output, Troubles};

/// Writes an interval log, `.hlog`: a line for each operation and second, tagged with the operation's name. Readers
/// add all lines up: those without an operation that counts are left out.
/// Values are microseconds from the intended start; the greatest of a line is in milliseconds, as usual.
pub struct HdrLog(Output);

impl HdrLog {
    /// Writes to `out`; `place` names it in errors.
    pub fn new(out: impl Write + Send + 'static, place: &str, troubles: &Troubles) -> Self {
        Self(Output::new(out, place, troubles))
    }

    fn write(&mut self, text: std::io::Result<String>) {
        self.0.write(text, ("the histograms cannot be written", "the seconds before this one are complete"));
    }
}

impl Observer for HdrLog {
    fn started(&mut self, run: &RunDescription) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let name: String = run.name.chars().filter(|char| !char.is_control()).collect();
        self.write(Ok(format!(
            "#[Logged with sawmill drive {name}: latencies from the intended start, in microseconds]\n\
             #[Histogram log format version 1.3]\n\
             #[StartTime: {now:.3} (seconds since epoch)]\n\
             #[BaseTime: {now:.3} (seconds since epoch)]\n\
             \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
        )));
    }

    fn second(&mut self, snapshot: &Snapshot<'_>) {
        let second = snapshot.second;
        let mut lines = Ok(String::new());
        let intervals = snapshot.intervals.iter().zip(snapshot.warming);
        for (name, (interval, warming)) in snapshot.run.operations.iter().zip(intervals) {
            let mut latency = interval.latency.clone();
            latency.subtract(&warming.latency);
            if latency.count() == 0 {
                continue;
            }
            let max = latency.max() as f64 / 1000.0;
            let begin = (second.at - second.length).max(0.0);
            let text = hdr_v2::text(latency.hdr());
            lines = lines.and_then(|lines| {
                let tag = tag(name);
                Ok(format!("{lines}Tag={tag},{begin:.3},{:.3},{max:.3},{}\n", second.length, text?))
            });
        }
        self.write(lines);
    }
}

/// A name as a tag, which has no commas, blanks and line ends.
fn tag(name: &str) -> String {
    name.chars()
        .map(|char| if char == ',' || char.is_whitespace() || char.is_control() { '_' } else { char })
        .collect()
}
