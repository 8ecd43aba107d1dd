//! What spans add up to: a tree of names for each thread, as it stands in a report.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::text::seconds;
use crate::trace::wait::WaitKind;

/// All spans of one name at one place in the nesting, on one thread (or on threads of one name).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpanReport {
    /// The name they were opened with; for waits the label of their kind.
    pub name: String,
    /// What was waited for, where these spans are waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitKind>,
    /// How many times such a span was closed.
    pub calls: u64,
    /// Wall-clock time inside, the nested spans included.
    #[serde(with = "seconds")]
    pub wall: Duration,
    /// CPU time of the thread inside, the nested spans included; exact to 50 µs at each edge.
    #[serde(with = "seconds")]
    pub cpu: Duration,
    /// Rows counted on these spans themselves.
    pub rows: u64,
    /// Bytes counted on these spans themselves.
    pub bytes: u64,
    /// The spans opened while these were the innermost, in the order of their first opening.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<SpanReport>,
}

impl SpanReport {
    /// Wall-clock time inside that no nested span accounts for.
    pub fn own_wall(&self) -> Duration {
        self.wall.saturating_sub(self.children.iter().map(|child| child.wall).sum())
    }

    /// CPU time inside that no nested span accounts for.
    pub fn own_cpu(&self) -> Duration {
        self.cpu.saturating_sub(self.children.iter().map(|child| child.cpu).sum())
    }
}

/// Enters `more` into `into`, name by name.
pub(crate) fn merge(into: &mut Vec<SpanReport>, more: Vec<SpanReport>) {
    for span in more {
        match into.iter_mut().find(|have| have.name == span.name && have.wait == span.wait) {
            Some(have) => {
                have.calls += span.calls;
                have.wall += span.wall;
                have.cpu += span.cpu;
                have.rows += span.rows;
                have.bytes += span.bytes;
                merge(&mut have.children, span.children);
            }
            None => into.push(span),
        }
    }
}

/// What one thread did in a phase; threads of one name are one entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadReport {
    /// The name given when the thread was attached.
    pub name: String,
    /// How many times a thread of this name was attached.
    pub attached: u64,
    /// Wall-clock time while attached.
    #[serde(with = "seconds")]
    pub wall: Duration,
    /// CPU time while attached.
    #[serde(with = "seconds")]
    pub cpu: Duration,
    /// Time while attached that it was ready to run and did not get a processor, where the system counts it.
    #[serde(with = "seconds::optional", default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Duration>,
    /// The outermost spans.
    #[serde(default)]
    pub spans: Vec<SpanReport>,
}

impl ThreadReport {
    /// The stage a thread works for: its name without the number at its end, so that `writer 1` and
    /// `writer-2` are both `writer`.
    pub fn stage(&self) -> &str {
        let stage = self.name.trim_end_matches(|c: char| c.is_ascii_digit());
        let stage = stage.trim_end_matches([' ', '-', '_', '#', '.']);
        if stage.is_empty() { &self.name } else { stage }
    }

    /// Wall-clock time waited, by kind. Waits inside waits count once, as the outer kind.
    pub fn waits(&self) -> BTreeMap<WaitKind, Duration> {
        let mut waits = BTreeMap::new();
        collect_waits(&self.spans, &mut waits);
        waits
    }

    /// Wall-clock time attached and not in a wait.
    pub fn worked(&self) -> Duration {
        self.wall.saturating_sub(self.waits().values().sum())
    }
}

fn collect_waits(spans: &[SpanReport], waits: &mut BTreeMap<WaitKind, Duration>) {
    for span in spans {
        match span.wait {
            Some(kind) => *waits.entry(kind).or_default() += span.wall,
            None => collect_waits(&span.children, waits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_a_thread_name_without_its_number() {
        let named = |name: &str| ThreadReport { name: name.into(), ..ThreadReport::default() };
        assert_eq!(named("writer 12").stage(), "writer");
        assert_eq!(named("writer-2").stage(), "writer");
        assert_eq!(named("main").stage(), "main");
        assert_eq!(named("42").stage(), "42");
    }

    #[test]
    fn merging_adds_what_has_the_same_name_and_keeps_what_has_not() {
        let span = |name: &str, calls| SpanReport {
            name: name.into(),
            calls,
            wall: Duration::from_secs(calls),
            ..SpanReport::default()
        };
        let mut all = vec![span("a", 1)];
        let mut again = span("a", 2);
        again.children.push(span("inner", 4));
        merge(&mut all, vec![again, span("b", 1)]);
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].calls, all[0].children[0].calls), (3, 4));
        assert_eq!(all[0].own_wall(), Duration::ZERO);
    }
}
