//! The views of a footer: what each option of `sawmill footer` shows.

pub(crate) mod checked;
pub(crate) mod chunks;
pub(crate) mod columns;
pub(crate) mod dumped;
pub(crate) mod indexed;
pub(crate) mod key_value;
pub(crate) mod page_index;
pub(crate) mod row_groups;
pub(crate) mod schema;
pub(crate) mod schema_difference;
pub(crate) mod sizes;
pub(crate) mod statistics;
pub(crate) mod summary;
