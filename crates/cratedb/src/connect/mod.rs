//! Connections: addresses, HTTP, the PostgreSQL wire, TLS, and waiting for a cluster that restarts.

pub(crate) mod activity;
pub(crate) mod address;
pub(crate) mod client;
pub(crate) mod http;
pub(crate) mod pg;
pub(crate) mod sql;
pub(crate) mod tls;
