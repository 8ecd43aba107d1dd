//! A spec from existing data: from its schema alone or from a sample of its rows (feature `infer`).

pub(crate) mod inferred_spec;
pub(crate) mod sampled_values;
