//! Counts bytes on our own connections where they are sent and received.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes sent and received. Clones share the counts: a transport increments one, a
/// sampler reads another.
#[derive(Clone, Debug, Default)]
pub struct WireCounters {
    counts: Arc<Counts>,
}

/// Separate, so that a sending and a receiving thread do not share a cache line.
#[derive(Debug, Default)]
struct Counts {
    sent: Padded,
    received: Padded,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded(AtomicU64);

impl WireCounters {
    /// Counters at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts bytes passed to a socket.
    pub fn add_sent(&self, bytes: u64) {
        self.counts.sent.0.fetch_add(bytes, Relaxed);
    }

    /// Counts bytes read from a socket.
    pub fn add_received(&self, bytes: u64) {
        self.counts.received.0.fetch_add(bytes, Relaxed);
    }

    /// Bytes sent so far.
    pub fn sent(&self) -> u64 {
        self.counts.sent.0.load(Relaxed)
    }

    /// Bytes received so far.
    pub fn received(&self) -> u64 {
        self.counts.received.0.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_counted_apart() {
        let counters = WireCounters::new();
        let transport = counters.clone();
        transport.add_received(6);
        transport.add_sent(3);
        assert_eq!((counters.sent(), counters.received()), (3, 6));
    }
}
