//! Files of this machine, and objects among listed names: by a pattern, or below a folder.

mod globs;
mod keys;
mod walk;

pub use globs::{is_pattern, matches, matching};
pub use keys::{FoundKeys, UNFINISHED, is_parquet, literal_folder, refuse_unfinished};
pub use walk::{Found, is_left_out, parquet_files};
