//! Writes objects whole or not at all, and removes what killed runs left.

pub(super) mod create_only;
mod folder;
mod put;
pub mod simulated;
pub(super) mod uploads;
mod whole_folder;
mod writer;

pub use folder::{Entry, ObjectFolder};
pub use uploads::Unfinished;
pub use whole_folder::{Sent, WholeFolder};
pub use writer::{ObjectWriter, UploadLimits};
