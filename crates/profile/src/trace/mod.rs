//! What a run records about itself: phases, spans, waits, byte counters, and the bottleneck they reveal.

pub(crate) mod bottleneck;
pub(crate) mod ledger;
pub(crate) mod live;
pub(crate) mod phase;
pub(crate) mod pool;
pub(crate) mod seconds;
pub(crate) mod span;
pub(crate) mod span_report;
pub(crate) mod system;
pub(crate) mod threads;
pub mod turns;
pub(crate) mod unit_key;
pub(crate) mod wait;
pub(crate) mod wire;
