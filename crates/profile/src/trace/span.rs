//! Spans: short, named, nested stretches of one thread's time, cheap enough for release builds.
//!
//! A span costs **90 to 110 ns** on a thread attached to a phase ([`crate::Phase::attach`]), 60 ns of it
//! for two readings of the monotonic clock. On an unattached thread it costs 8 ns (Xeon, KVM, Linux 6.18). Measure
//! it with `cargo bench -p sawmill-benches --bench span`. A span around at least 10 µs of work costs at most
//! 1 % of the run: use one for a page, a batch or a message, not for a value.
//!
//! The thread's CPU time is read from the system at most every 50 µs and extrapolated by the wall clock in
//! between, so it is accurate to 50 µs at each edge.

use std::cell::Cell;
use std::marker::PhantomData;

use crate::trace::ledger::{Closed, Ledger};
use crate::trace::wait::WaitKind;

/// Opens a span of work. It ends when the guard is dropped.
///
/// Names are constants: put what varies (a file, a batch) into counts, not into names.
///
/// ```
/// let phase = sawmill_profile::Profile::new().phase("generate");
/// let attached = phase.attach("main");
/// {
///     let _row_group = sawmill_profile::span("row group");
///     let values = sawmill_profile::span("draw values");
///     values.add_rows(1000);
/// }
/// drop(attached);
/// let report = phase.finish();
/// assert_eq!(report.threads[0].spans[0].children[0].name, "draw values");
/// ```
pub fn span(name: &'static str) -> Span {
    Span::open(name, None)
}

/// Opens a span in which the thread waits. It ends when the guard is dropped.
///
/// ```
/// use sawmill_profile::{WaitKind, wait};
/// let (send, receive) = std::sync::mpsc::sync_channel(1);
/// send.send(7).unwrap();
/// let value = {
///     let _waiting = wait(WaitKind::ChannelEmpty);
///     receive.recv()
/// };
/// # assert_eq!(value, Ok(7));
/// ```
pub fn wait(kind: WaitKind) -> Span {
    Span::open("", Some(kind))
}

/// An open span. Dropping it closes it.
#[derive(Debug)]
#[must_use = "a span ends when it is dropped"]
pub struct Span {
    open: Option<Open>,
    /// A span belongs to its thread.
    not_send: PhantomData<*const ()>,
}

#[derive(Debug)]
struct Open {
    generation: u64,
    node: u32,
    /// Wall and CPU time by the ledger's clock, in ns.
    started: u64,
    cpu: u64,
    rows: Cell<u64>,
    bytes: Cell<u64>,
}

impl Span {
    fn open(name: &'static str, wait: Option<WaitKind>) -> Self {
        let open = Ledger::with(|ledger| {
            let node = ledger.enter(name, wait)?;
            let started = ledger.clock.wall();
            Some(Open {
                generation: ledger.generation,
                node,
                started,
                cpu: ledger.clock.cpu_at(started),
                rows: Cell::new(0),
                bytes: Cell::new(0),
            })
        });
        Self { open: open.flatten(), not_send: PhantomData }
    }

    /// Counts rows on this span.
    pub fn add_rows(&self, rows: u64) {
        if let Some(open) = &self.open {
            open.rows.set(open.rows.get().wrapping_add(rows));
        }
    }

    /// Counts bytes on this span.
    pub fn add_bytes(&self, bytes: u64) {
        if let Some(open) = &self.open {
            open.bytes.set(open.bytes.get().wrapping_add(bytes));
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let Some(open) = self.open.take() else { return };
        Ledger::with(|ledger| {
            // A span that outlived its attachment has nowhere to go.
            if ledger.generation != open.generation {
                return;
            }
            let now = ledger.clock.wall();
            let cpu = ledger.clock.cpu_at(now);
            ledger.leave(&Closed {
                node: open.node,
                wall: now.saturating_sub(open.started),
                cpu: cpu.saturating_sub(open.cpu),
                rows: open.rows.get(),
                bytes: open.bytes.get(),
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Profile;

    #[test]
    fn spans_on_an_unattached_thread_are_not_recorded() {
        let phase = Profile::new().phase("idle");
        span("unattached").add_rows(1);
        assert!(phase.finish().threads.is_empty());
    }

    #[test]
    fn spans_nest_and_count_calls_rows_bytes_and_both_clocks() {
        let phase = Profile::new().phase("work");
        let attached = phase.attach("worker 1");
        for _ in 0..3 {
            let outer = span("outer");
            outer.add_bytes(10);
            let inner = span("inner");
            inner.add_rows(2);
            std::thread::sleep(Duration::from_millis(2));
            drop(inner);
            drop(wait(WaitKind::Disk));
        }
        drop(attached);
        let report = phase.finish();
        let outer = &report.threads[0].spans[0];
        assert_eq!((outer.name.as_str(), outer.calls, outer.bytes), ("outer", 3, 30));
        let inner = &outer.children[0];
        assert_eq!((inner.name.as_str(), inner.calls, inner.rows), ("inner", 3, 6));
        assert!(inner.wall >= Duration::from_millis(6) && inner.wall <= outer.wall);
        assert!(inner.cpu < inner.wall / 2, "sleeping uses no CPU time: {inner:?}");
        assert_eq!(outer.children[1].wait, Some(WaitKind::Disk));
    }

    #[test]
    fn threads_with_one_name_are_one_entry() {
        let phase = Profile::new().phase("work");
        for _ in 0..2 {
            let attached = phase.attach("pool");
            drop(span("job"));
            drop(span("job"));
            drop(attached);
        }
        let report = phase.finish();
        assert_eq!(report.threads.len(), 1);
        assert_eq!((report.threads[0].attached, report.threads[0].spans[0].calls), (2, 4));
    }

    #[test]
    fn an_inner_phase_returns_the_thread_to_the_outer_one() {
        let profile = Profile::new();
        let (outer, inner) = (profile.phase("outer"), profile.phase("inner"));
        let attached_outer = outer.attach("main");
        {
            let _attached = inner.attach("main");
            drop(span("in"));
        }
        drop(span("out"));
        drop(attached_outer);
        assert_eq!(inner.finish().threads[0].spans[0].name, "in");
        assert_eq!(outer.finish().threads[0].spans[0].name, "out");
    }

    #[test]
    fn a_recursion_does_not_fill_the_memory() {
        fn descend(depth: u32) {
            let _span = span("again");
            if depth > 0 {
                descend(depth - 1);
            }
        }
        let phase = Profile::new().phase("deep");
        let attached = phase.attach("main");
        descend(6000);
        drop(attached);
        assert_eq!(phase.finish().threads[0].spans[0].calls, 1);
    }
}
