//! A connection that blocks its thread and hands out the protocol's messages one by one: for load tests, whose
//! processor time for an operation is a figure that counts.

mod messages;
mod stream;

pub use messages::{BlockingConnection, Message};
