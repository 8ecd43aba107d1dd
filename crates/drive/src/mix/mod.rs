//! The mix of a run: operations by weight, and the rows that they write and read.

pub(crate) mod block;
pub(crate) mod pick;
pub(crate) mod supply;
