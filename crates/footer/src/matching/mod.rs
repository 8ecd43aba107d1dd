//! Matches column chunks against shapes: compares what neighbouring chunks have in common instead of parsing
//! it.

#[cfg_attr(not(all(feature = "fast", target_arch = "x86_64")), path = "avx2_elsewhere.rs")]
pub(crate) mod avx2;
pub(crate) mod boundary;
pub(crate) mod engine;
pub(crate) mod kernel;
pub(crate) mod resolve;
#[cfg_attr(
    not(all(feature = "fast", target_arch = "x86_64")),
    allow(dead_code, reason = "only the kernel compares a shape's parts")
)]
pub(crate) mod shape;
