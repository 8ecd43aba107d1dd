//! What a run records about itself: phases, spans, waits, byte counters, and the bottleneck they reveal.

pub(crate) mod bottleneck;
pub(crate) mod ledger;
pub(crate) mod live;
pub(crate) mod peak_memory;
pub(crate) mod phase;
pub(crate) mod process;
pub(crate) mod span;
pub(crate) mod span_report;
pub(crate) mod thread_clock;
pub(crate) mod wait;
pub(crate) mod wire;
