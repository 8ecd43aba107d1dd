//! Clients of stores, over the crate `object_store`: asynchronous inside, blocking outside.
//!
//! ```text
//! caller's thread ── Object::start ─▶ task on the runtime's threads ─ request, retried ─▶ bytes ─▶ Pending::wait
//! ```

mod aws_profile;
mod build;
mod client;
mod faults;
mod listing;
mod options;
mod stores;

pub use options::StoreOptions;
pub use stores::Stores;
