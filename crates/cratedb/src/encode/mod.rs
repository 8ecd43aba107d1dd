//! Arrow batches into JSON rows and binary column parameters.

pub(crate) mod bodies;
pub(crate) mod canonical;
pub(crate) mod encoder;
pub(crate) mod form;
pub(crate) mod geometry;
pub(crate) mod json;
pub(crate) mod json_column;
pub(crate) mod native_column;
pub(crate) mod numbers;
pub(crate) mod unnest;
