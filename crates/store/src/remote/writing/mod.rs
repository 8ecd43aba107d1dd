//! Writes objects whole or not at all, and removes what killed runs left.

pub(super) mod create_only;
mod folder;
mod put;
pub(super) mod uploads;
mod writer;

pub use folder::{Entry, ObjectFolder};
pub use uploads::Unfinished;
pub use writer::{ObjectWriter, UploadLimits};
