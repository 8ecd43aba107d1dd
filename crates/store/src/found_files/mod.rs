//! Files of this machine by a pattern of their names, or below a directory.

mod globs;
mod walk;

pub use globs::{is_pattern, matches, matching};
pub use walk::{Found, is_left_out, parquet_files};
