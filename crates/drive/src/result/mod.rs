//! The result of a load test: the documented JSON, and histograms that merge exactly.

mod consistency;
pub(crate) mod file;
pub(crate) mod histogram;
pub(crate) mod latency;
pub(crate) mod proof;
pub(crate) mod second;
pub(crate) mod stored;
