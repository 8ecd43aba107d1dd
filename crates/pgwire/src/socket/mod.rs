//! Sockets: what is read ahead and sent, TLS, and the certificates it takes.

pub mod certificates;
pub(crate) mod incoming;
pub(crate) mod session;
pub(crate) mod stream;
