//! Column chunks matched against shapes: what neighbouring chunks have in common is compared, not parsed.

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
pub(crate) mod resolve;
pub(crate) mod shape;
