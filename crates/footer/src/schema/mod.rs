//! The schema: its elements in one arena, their types, and selections of columns.

pub(crate) mod arena;
pub(crate) mod columns;
pub(crate) mod element;
pub(crate) mod element_kinds;
pub(crate) mod enums;
pub(crate) mod glob;
pub(crate) mod logical;
pub(crate) mod names;
pub(crate) mod tree;
