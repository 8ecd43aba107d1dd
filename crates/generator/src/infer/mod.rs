//! A spec from existing data: from its schema alone or from a sample of its rows (feature `infer`).

mod by_column;
mod copula;
pub(crate) mod fidelity;
mod notation;
pub(crate) mod references;
mod relations;
pub(crate) mod sample;
pub(crate) mod spec;
pub(crate) mod values;
