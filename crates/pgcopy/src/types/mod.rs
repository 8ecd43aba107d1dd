//! PostgreSQL types, the Arrow fields that each accepts, and options for values that they cannot hold.

pub(crate) mod column_type;
pub(crate) mod pg_type;
pub(crate) mod server_type;
pub(crate) mod value_options;
pub(crate) mod zone;
