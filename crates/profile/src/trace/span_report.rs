//! The sums of spans: a tree of names for each thread, as in a report.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::trace::seconds;
use crate::trace::wait::WaitKind;

/// All spans with one name at one place in the nesting, on one thread or on threads with one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpanReport {
    /// The spans' name; for waits, the label of their kind.
    pub name: String,
    /// The kind of wait, if these spans are waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitKind>,
    /// How many such spans were closed.
    pub calls: u64,
    /// Wall-clock time inside, including nested spans.
    #[serde(with = "seconds")]
    pub wall: Duration,
    /// CPU time of the thread inside, including nested spans; accurate to 50 µs at each edge.
    #[serde(with = "seconds")]
    pub cpu: Duration,
    /// Rows counted directly on these spans.
    pub rows: u64,
    /// Bytes counted directly on these spans.
    pub bytes: u64,
    /// The spans nested directly in these, in order of first opening.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<SpanReport>,
}

/// Merges `more` into `into` by name.
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

/// The activity of one thread in a phase; threads with the same name share an entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadReport {
    /// The name that the thread was attached with.
    pub name: String,
    /// How many times a thread with this name was attached.
    pub attached: u64,
    /// Wall-clock time while attached.
    #[serde(with = "seconds")]
    pub wall: Duration,
    /// CPU time while attached.
    #[serde(with = "seconds")]
    pub cpu: Duration,
    /// Time while attached in which it was ready to run but did not get a processor, if the system counts it.
    #[serde(with = "seconds::optional", default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Duration>,
    /// The outermost spans.
    #[serde(default)]
    pub spans: Vec<SpanReport>,
}

impl ThreadReport {
    /// The stage that a thread works for: its name without a trailing number, so that `writer 1` and
    /// `writer-2` are both `writer`.
    pub fn stage(&self) -> &str {
        let stage = self.name.trim_end_matches(|c: char| c.is_ascii_digit());
        let stage = stage.trim_end_matches([' ', '-', '_', '#', '.']);
        if stage.is_empty() { &self.name } else { stage }
    }

    /// Wall-clock time waited, by kind. Waits within waits count once, as the outer kind.
    pub fn waits(&self) -> BTreeMap<WaitKind, Duration> {
        let mut waits = BTreeMap::new();
        collect_waits(&self.spans, &mut waits);
        waits
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
    fn merging_adds_spans_with_equal_names_and_keeps_the_others() {
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
    }
}
