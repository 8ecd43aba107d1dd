//! Addresses: connection strings, service and password files, TLS modes, and the server to look for.

pub(crate) mod keep_alive;
pub(crate) mod parameters;
pub(crate) mod password_file;
pub(crate) mod server;
pub(crate) mod service_file;
pub(crate) mod session_kind;
pub(crate) mod sslmode;
