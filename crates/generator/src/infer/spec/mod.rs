//! A spec that is inferred.

pub(crate) mod inferred_spec;
mod type_keys;
mod written;
