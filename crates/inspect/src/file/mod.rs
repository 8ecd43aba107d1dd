//! Files whose footers are decoded: what views share of one.

pub(crate) mod column;
pub(crate) mod open_file;
