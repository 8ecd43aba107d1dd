//! Random numbers that are functions of seed, stream and position, and draws made from them.

pub(crate) mod elementary;
pub(crate) mod instruction_sets;
pub(crate) mod normal;
pub(crate) mod permutation;
pub(crate) mod rng;
pub(crate) mod weights;
pub(crate) mod ziggurat;
pub(crate) mod zipf;
