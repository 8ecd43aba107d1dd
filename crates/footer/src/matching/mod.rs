//! Matches column chunks against shapes: compares what neighbouring chunks have in common instead of parsing
//! it.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512_values;
#[cfg(target_arch = "x86_64")]
pub(crate) mod bmi2;
pub(crate) mod boundary;
pub(crate) mod engine;
pub(crate) mod kernel;
pub(crate) mod portable;
pub(crate) mod prefixes;
pub(crate) mod resolve;
pub(crate) mod shape;
