//! The beginning of a session, the same for all connections: TLS, authentication, parameters.
//!
//! ```text
//! Wire / Stream ── bytes ─▶ Dialogue ─ messages ─▶ Login ─▶ what to send, or an error, or the greeting
//! ```
//!
//! Nothing here reads or writes: the two kinds of connections do that.

pub(crate) mod certificate;
pub(crate) mod dialogue;
pub(crate) mod requirements;
mod scram;
mod session_start;
