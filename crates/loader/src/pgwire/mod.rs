//! Connections: addresses, parameters, TLS, sockets, what servers answer, and which server it is.

pub(crate) mod address;
pub(crate) mod connection;
pub(crate) mod pooler;
pub(crate) mod server_error;
pub(crate) mod server_identity;
pub(crate) mod socket;
