//! Records born as columns: blocks of definition levels, repetition levels and values.

pub(crate) mod block;
pub(crate) mod chosen_fields;
pub(crate) mod cut_values;
pub(crate) mod first_misfit;
pub(crate) mod leaf_draws;
pub(crate) mod levels;
pub(crate) mod operands;
pub(crate) mod row_maker;
pub(crate) mod value_buffer;
