//! Whether every acknowledged write is found afterwards.

pub(crate) mod check;
pub(crate) mod states;
