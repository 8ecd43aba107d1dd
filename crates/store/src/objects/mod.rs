//! Objects as everything but their store's client sees them: a name, a size, a version, and ranges of bytes.

mod access;
mod planned;
mod reader;

pub use access::{Access, Answer, Digest, Object, Pending, Traffic, Version};
pub use planned::{Fault, PlannedReader, ReadAhead, RequestPlan};
pub use reader::ObjectReader;
