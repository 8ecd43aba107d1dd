//! Connections over the PostgreSQL wire, to PostgreSQL and to CrateDB: addresses as libpq takes them, TLS,
//! and waiting that ends when the caller cancels.
//!
//! ```text
//! address ─ service file, password file, PG* variables ─▶ Server ─ open: hosts in turn, TLS ─▶ Connection ─ wait ─▶ answer
//!                                                                                                └── cancelled within 100 ms
//! ```
//!
//! ```
//! use sawmill_pgwire::Server;
//! let server: Server = "postgres://ada@localhost:5432/sales?sslmode=disable".parse()?;
//! println!("{server}");
//! # Ok::<(), sawmill_profile::Error>(())
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | `address` | connection strings, service and password files, TLS modes |
//! | `socket` | reading ahead and sending, TLS, and the certificates that it trusts |
//! | `blocking` | a connection that hands out the protocol's messages, for load tests |
//! | `connection` | connects, and waits for answers, but not through a cancel |
//! | `login` | TLS, authentication and the requirements on both, for all connections |
//! | `messages`, `untrusted` | the messages that a server may send, and limits on their length |
//! | `server_activity` | whether the server still works on a statement that it has not answered |
//! | `server_identity` | whether a server is still the one that a load began with |
//! | `server_report`, `server_error` | a server's report, and advice on it |
//! | `pooler` | finds out whether a pool of connections is in between |

mod address;
mod blocking;
mod connection;
mod login;
mod messages;
mod pooler;
mod server_activity;
mod server_error;
mod server_identity;
mod server_report;
mod socket;
mod untrusted;

pub use address::keep_alive::KeepAlive;
pub use address::server::Server;
pub use blocking::{BlockingConnection, Message};
pub use connection::{COMMIT_DURABLY, Connection, WireError};
pub use pooler::refuse_pooler;
pub use server_activity::Patience;
pub use server_error::{POLICIES, copy_line, from_report, from_server, is_about_rows};
pub use server_identity::KnownServer;
pub use server_report::ServerReport;
pub use socket::certificates;
pub use untrusted::{UntrustedLength, append, invalid};
