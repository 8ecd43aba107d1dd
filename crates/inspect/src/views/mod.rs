//! The views of a footer, one file each.

pub(crate) mod check;
pub(crate) mod columns;
pub(crate) mod dictionary;
pub(crate) mod dump;
pub(crate) mod key_value;
pub(crate) mod page_headers;
pub(crate) mod page_index;
pub(crate) mod row_groups;
pub(crate) mod schema;
pub(crate) mod sizes;
pub(crate) mod statistics;
pub(crate) mod view;
