//! Matches column chunks against shapes: compares what neighbouring chunks have in common instead of parsing
//! it.

#[cfg(all(feature = "fast", target_arch = "x86_64"))]
pub(crate) mod avx2;
pub(crate) mod boundary;
pub(crate) mod engine;
pub(crate) mod kernel;
pub(crate) mod portable;
pub(crate) mod resolve;
pub(crate) mod shape;
