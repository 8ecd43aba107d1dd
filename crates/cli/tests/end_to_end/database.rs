//! Tests share a PostgreSQL; each has its own database.

pub use crate::shared_server::SharedDatabase as Database;
