//! Files whose footers are decoded: what views share of one, and many in their order.

pub(crate) mod column;
pub(crate) mod in_order;
pub(crate) mod open_file;
