//! Units into tables: COPY and the unit's record in one transaction, into the table itself or into part
//! tables.

pub(crate) mod binary_copy;
pub(crate) mod deletes;
pub(crate) mod history;
pub(crate) mod plan;
pub(crate) mod refusals;
pub(crate) mod rejecting_unit;
pub(crate) mod replace_files;
pub(crate) mod route;
pub(crate) mod table_writer;
pub(crate) mod upsert;
