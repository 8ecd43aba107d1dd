//! PostgreSQL: tables that statements fill (feature `postgres`), and loads as jobs (feature `cluster`).

pub(crate) mod insert;
#[cfg(feature = "cluster")]
pub(crate) mod parts;
pub(crate) mod schema;
#[cfg(feature = "cluster")]
pub(crate) mod source;
pub(crate) mod statement;
pub(crate) mod table;
