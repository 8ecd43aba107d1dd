//! A spec from existing data: from its schema alone or from a sample of its rows (feature `infer`).

pub(crate) mod fidelity;
pub(crate) mod inferred_spec;
mod known;
mod leaf_sample;
mod lengths;
mod notation;
mod numbers;
mod quantiles;
mod relations;
pub(crate) mod texts;
