//! Arrow batches into JSON rows and binary column parameters.

pub(crate) mod bodies;
pub(crate) mod bound;
pub(crate) mod canonical;
pub(crate) mod cells;
pub(crate) mod digits;
pub(crate) mod encoder;
pub(crate) mod form;
pub(crate) mod integers;
pub(crate) mod json;
pub(crate) mod text_cells;
pub(crate) mod unnest;
