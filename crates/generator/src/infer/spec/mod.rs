//! A spec that is inferred.

mod axes;
pub(crate) mod inferred_spec;
mod type_keys;
mod written;
