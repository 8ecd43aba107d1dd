//! Clients of stores, over the crate `object_store`: asynchronous inside, blocking outside.
//!
//! ```text
//! caller's thread ── Object::start ─▶ task on the runtime's threads ─ request, retried ─▶ bytes ─▶ Pending::wait
//!
//! row groups ─ ObjectWriter ─▶ parts, several under way ─▶ completed: the object is there, whole
//!                           └─ dropped: the upload is aborted; after a crash, by ObjectFolder::abort
//! ```

mod answers;
mod build;
mod checksums;
mod client;
mod connections;
mod copying;
mod faults;
mod hedging;
mod listing;
mod stores;
mod writing;

pub use build::StoreOptions;
pub use stores::Stores;
pub use writing::simulated;
#[cfg(fuzzing)]
pub use writing::uploads::fuzzed_answer;
pub use writing::{Entry, ObjectFolder, ObjectWriter, Sent, Unfinished, UploadLimits, WholeFolder};
