//! Records born as columns: blocks of definition levels, repetition levels and values.

pub(crate) mod block;
pub(crate) mod cut_values;
pub(crate) mod levels;
pub(crate) mod misfit;
pub(crate) mod operands;
pub(crate) mod value_buffer;
pub(crate) mod value_length;
