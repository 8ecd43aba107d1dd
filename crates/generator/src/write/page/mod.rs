//! One page: its rows, its header, and what a thread needs to make it.

pub(crate) mod header;
pub(crate) mod maker;
pub(crate) mod rows;
