//! The identity of a piece of work, the same in a plan, in an error and in the record of a load.

use serde::Serialize;

/// The identity of a unit: stable for a source as long as its files do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct UnitKey {
    /// Position of the file in the source's files.
    pub file: u32,
    /// Row group in the file.
    pub row_group: u32,
    /// First row, counted from the start of the row group; with a condition, only passing rows count.
    pub first_row: u64,
}
