//! Tables: names, the catalogue, types, and whether a source's values fit the columns.

pub(crate) mod catalogue;
pub(crate) mod columns;
pub(crate) mod crate_type;
pub(crate) mod ddl;
pub(crate) mod existing;
pub(crate) mod names;
pub(crate) mod native;
