//! Random numbers and the distributions of values: each draw is a function of seed, field, block and number.

pub(crate) mod choice;
pub(crate) mod distribution;
pub(crate) mod elementary;
pub(crate) mod instruction_sets;
pub(crate) mod leaf;
pub(crate) mod lengths;
pub(crate) mod monotone;
pub(crate) mod rng;
pub(crate) mod sampler;
pub(crate) mod values;
pub(crate) mod weights;
pub(crate) mod ziggurat;
pub(crate) mod zipf;
