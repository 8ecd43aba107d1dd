//! Files whose footers are decoded: opened in their order, selected from, and summed up.

pub(crate) mod dataset;
pub(crate) mod document;
pub(crate) mod in_order;
pub(crate) mod open_file;
pub(crate) mod run;
pub(crate) mod selection;
