//! A spec from existing data: from its schema alone or from a sample of its rows (feature `infer`).

mod by_column;
mod bytes;
pub(crate) mod correlation;
pub(crate) mod dependence;
pub(crate) mod fidelity;
mod inferred_field;
pub(crate) mod inferred_spec;
mod known;
mod leaf_sample;
mod lengths;
mod notation;
mod numbers;
mod quantiles;
pub(crate) mod references;
mod relations;
mod shapes;
pub(crate) mod texts;
mod values;
