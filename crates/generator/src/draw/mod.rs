//! How the values of fields are drawn: distributions, lists, formulas, references, text, lengths and nulls.

pub(crate) mod choice;
pub(crate) mod copula;
pub(crate) mod distribution;
pub(crate) mod expression;
pub(crate) mod lengths;
pub(crate) mod misfit;
pub(crate) mod monotone;
pub(crate) mod nulls;
pub(crate) mod quantiles;
pub(crate) mod sampler;
pub(crate) mod text;
pub(crate) mod value_spec;
