//! Sockets: reading ahead and sending, TLS, and the certificates that it trusts.

pub mod certificates;
pub(crate) mod incoming;
pub(crate) mod session;
pub(crate) mod stream;
