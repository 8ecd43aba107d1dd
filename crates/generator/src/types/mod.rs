//! The types of columns, and their values as a spec writes them and as a file stores them.

pub(crate) mod civil;
pub(crate) mod int256;
pub(crate) mod literal;
pub(crate) mod logical_type;
pub(crate) mod number;
