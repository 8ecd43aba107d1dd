//! Connections: addresses, parameters, TLS, sockets, what servers answer, and which server it is.

pub(crate) mod connection;
pub(crate) mod incoming;
pub(crate) mod parameters;
pub(crate) mod password_file;
pub(crate) mod pooler;
pub(crate) mod server;
pub(crate) mod server_error;
pub(crate) mod server_identity;
pub(crate) mod service_file;
pub(crate) mod session_kind;
pub(crate) mod socket;
pub(crate) mod sslmode;
pub(crate) mod tls;
