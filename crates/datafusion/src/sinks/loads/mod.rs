//! Loads as jobs: what they read, and a row for each of their parts.

pub(crate) mod parts;
pub(crate) mod source;
