//! A dataset: found by its name, read from its spec and checked, the tree of its fields, the JSON schema of specs.

pub(crate) mod dataset;
pub(crate) mod json_schema;
pub(crate) mod named;
pub(crate) mod reader;
pub(crate) mod tables;
pub(crate) mod unique_values;
pub(crate) mod value_length;
pub(crate) mod wide;
