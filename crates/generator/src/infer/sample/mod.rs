//! The values of a sample, column by column.

pub(crate) mod cells;
pub(crate) mod inferred_field;
pub(crate) mod leaf_sample;
pub(crate) mod numbered;
pub(crate) mod stored;
pub(crate) mod text_sample;
