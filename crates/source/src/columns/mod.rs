//! Columns: which are read, under which names, and what those of several files have in common.

pub(crate) mod choice;
pub(crate) mod common;
pub(crate) mod known;
