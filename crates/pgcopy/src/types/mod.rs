//! Types of PostgreSQL, which Arrow fields they take, and what becomes of values that they cannot hold.

pub(crate) mod column_type;
pub(crate) mod pg_type;
pub(crate) mod value_options;
