//! Determines which stage limited the speed of a pipeline, from the waits of its threads.
//!
//! In a pipeline of bounded channels every stage except the slowest waits for its neighbours: earlier stages
//! find the channel full, later ones find it empty. So the stage that waits least for channels is the limit,
//! and how it spent its time tells why: it worked; it waited for the server, the disk or a lock; or it was
//! ready to run while the processors were busy with something else. The last is a figure of the system, not
//! the remainder: a wait without a span is not blamed on the processors.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::trace::span_report::ThreadReport;
use crate::trace::wait::WaitKind;

/// Shorter phases have no bottleneck: starting and stopping the threads takes too large a part of them.
const MIN_LENGTH: Duration = Duration::from_millis(20);

/// What limited a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The server at the other end of a connection, or the network.
    Server,
    /// Files.
    Disk,
    /// A lock between our threads.
    Lock,
    /// The CPU work of one of our stages.
    Work,
    /// Processors: the stage was ready to run but did not get one.
    Processors,
    /// The connection: the stage waited for the server, and the server for the stage.
    Connection,
    /// Something unmeasured.
    Unseen,
}

/// The verdict on a pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// The limit.
    pub limit: Limit,
    /// The stage that was limited: its threads' name without their number.
    pub stage: String,
    /// The fraction of the stage's time spent there, 0 to 1.
    pub share: f64,
}

/// The time of all threads of one stage, by activity.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StageTime {
    /// The stage: its threads' name without their number.
    pub stage: String,
    /// How many times its threads were attached.
    pub attached: u64,
    /// Total wall-clock time of its threads, in seconds.
    pub wall: f64,
    /// Total CPU time of its threads, in seconds.
    pub cpu: f64,
    /// Time ready to run without a processor, in seconds, if the system counts it.
    pub ready: Option<f64>,
    /// Time waited, by kind, in seconds.
    pub waits: BTreeMap<WaitKind, f64>,
}

impl StageTime {
    /// Time outside waits in which it was ready to run but did not get a processor, in seconds.
    pub fn without_processor(&self) -> f64 {
        self.ready.unwrap_or(0.0).min(self.not_running())
    }

    /// Unexplained time, in seconds: a wait without a span, or time without a processor if the system does
    /// not count that.
    pub fn unseen(&self) -> f64 {
        self.not_running() - self.without_processor()
    }

    /// Time neither in a measured wait nor on a processor, in seconds.
    fn not_running(&self) -> f64 {
        (self.wall - self.waits.values().sum::<f64>() - self.cpu).max(0.0)
    }

    /// Time waiting for another stage, in seconds.
    fn for_others(&self) -> f64 {
        [WaitKind::ChannelFull, WaitKind::ChannelEmpty].iter().filter_map(|kind| self.waits.get(kind)).sum()
    }
}

/// The threads of a phase by stage, in name order.
pub(crate) fn stages(threads: &[ThreadReport]) -> Vec<StageTime> {
    let mut stages: BTreeMap<&str, StageTime> = BTreeMap::new();
    for thread in threads {
        let ready = thread.ready.map(|ready| ready.as_secs_f64());
        let stage = match stages.entry(thread.stage()) {
            Entry::Vacant(entry) => entry.insert(StageTime { ready, ..StageTime::default() }),
            Entry::Occupied(entry) => {
                let stage = entry.into_mut();
                stage.ready = stage.ready.zip(ready).map(|(have, more)| have + more);
                stage
            }
        };
        stage.attached += thread.attached;
        stage.wall += thread.wall.as_secs_f64();
        stage.cpu += thread.cpu.as_secs_f64();
        for (kind, time) in thread.waits() {
            *stage.waits.entry(kind).or_default() += time.as_secs_f64();
        }
    }
    stages.into_iter().map(|(name, time)| StageTime { stage: name.to_owned(), ..time }).collect()
}

/// Determines the bottleneck of a phase; `None` if no thread was attached for at least 20 ms.
///
/// Ignores stages attached for less than a tenth of the longest one's time: they neither limited nor were
/// limited. If two stages wait equally little, chooses the one with the larger fraction of its time in
/// one activity.
pub fn bottleneck(threads: &[ThreadReport]) -> Option<Bottleneck> {
    let longest: Duration = threads.iter().map(|thread| thread.wall).max()?;
    if longest < MIN_LENGTH {
        return None;
    }
    stages(threads)
        .into_iter()
        .filter(|stage| stage.wall * 10.0 >= longest.as_secs_f64())
        .min_by(|a, b| (a.for_others() / a.wall).total_cmp(&(b.for_others() / b.wall)))
        .and_then(|stage| {
            let waited = |kind| stage.waits.get(&kind).copied().unwrap_or(0.0);
            [
                (Limit::Server, waited(WaitKind::Network)),
                (Limit::Disk, waited(WaitKind::Disk)),
                (Limit::Lock, waited(WaitKind::Lock)),
                (Limit::Work, stage.cpu),
                (Limit::Processors, stage.without_processor()),
                (Limit::Unseen, stage.unseen()),
            ]
            .into_iter()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(limit, time)| Bottleneck {
                limit,
                share: (time / stage.wall).clamp(0.0, 1.0),
                stage: stage.stage.clone(),
            })
        })
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stage, percent) = (&self.stage, self.share * 100.0);
        let waited = |for_what: &str| {
            format!("{for_what} was the limit: {stage} waited for it {percent:.0} % of its time")
        };
        f.write_str(&match self.limit {
            Limit::Server => waited("the server"),
            Limit::Disk => waited("the disk"),
            Limit::Lock => waited("a lock"),
            Limit::Work => format!("{stage} was the limit: it worked {percent:.0} % of its time"),
            Limit::Processors => format!(
                "the processors were the limit: {stage} was ready but did not run {percent:.0} % of its time"
            ),
            Limit::Connection => format!(
                "the connection to the server was the limit: {stage} waited for the server {percent:.0} % of its time, \
                 and the server for {stage}"
            ),
            Limit::Unseen => format!(
                "the limit is unknown: {stage} neither worked nor was seen to wait {percent:.0} % of its time"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::span_report::SpanReport;

    fn thread(name: &str, wall: u64, cpu: u64, waits: &[(WaitKind, u64)]) -> ThreadReport {
        let spans = waits.iter().map(|(kind, seconds)| SpanReport {
            name: kind.label().into(),
            wait: Some(*kind),
            wall: Duration::from_secs(*seconds),
            ..SpanReport::default()
        });
        ThreadReport {
            name: name.into(),
            attached: 1,
            wall: Duration::from_secs(wall),
            cpu: Duration::from_secs(cpu),
            ready: None,
            spans: spans.collect(),
        }
    }

    #[test]
    fn the_server_is_the_limit_if_senders_wait_for_it_and_encoders_find_the_channel_full() {
        let found = bottleneck(&[
            thread("reader", 10, 1, &[(WaitKind::ChannelFull, 9)]),
            thread("encoder 1", 10, 3, &[(WaitKind::ChannelFull, 7)]),
            thread("encoder 2", 10, 3, &[(WaitKind::ChannelFull, 6)]),
            thread("sender 1", 10, 1, &[(WaitKind::Network, 8), (WaitKind::ChannelEmpty, 1)]),
        ])
        .unwrap();
        assert_eq!(found.limit, Limit::Server);
        let text = "the server was the limit: sender waited for it 80 % of its time";
        assert_eq!(found.to_string(), text);
    }

    #[test]
    fn a_stage_that_works_while_the_others_wait_for_it_is_the_limit() {
        let found = bottleneck(&[
            thread("reader", 10, 1, &[(WaitKind::ChannelFull, 9)]),
            thread("encoder", 10, 9, &[]),
            thread("sender", 10, 1, &[(WaitKind::ChannelEmpty, 8)]),
        ])
        .unwrap();
        assert_eq!((found.limit, found.stage.as_str()), (Limit::Work, "encoder"));
    }

    #[test]
    fn a_stage_lacks_processors_only_if_the_system_counts_ready_time() {
        let ready = |seconds| ThreadReport {
            ready: Some(Duration::from_secs(seconds)),
            ..thread("encoder", 10, 3, &[])
        };
        let found = bottleneck(&[ready(7)]).unwrap();
        assert_eq!((found.limit, found.share), (Limit::Processors, 0.7));
        let found = bottleneck(&[ready(1)]).unwrap();
        assert_eq!((found.limit, found.share), (Limit::Unseen, 0.6));
        let text = "the limit is unknown: encoder neither worked nor was seen to wait 60 % of its time";
        assert_eq!(found.to_string(), text);
        assert_eq!(bottleneck(&[thread("encoder", 10, 3, &[])]).unwrap().limit, Limit::Unseen);
    }

    #[test]
    fn a_phase_of_a_few_milliseconds_has_no_verdict() {
        let short = ThreadReport { wall: Duration::from_millis(19), ..thread("encoder", 1, 0, &[]) };
        assert_eq!(bottleneck(&[short]), None);
    }

    #[test]
    fn without_threads_there_is_no_verdict() {
        assert_eq!(bottleneck(&[]), None);
    }
}
