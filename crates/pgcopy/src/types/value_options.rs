//! Options for values that PostgreSQL cannot store unchanged, and for the types of a new table.

use crate::types::zone::Zone;

/// How to load values with digits beyond PostgreSQL's microsecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nanoseconds {
    /// Reject a value that is not a whole number of microseconds.
    #[default]
    Error,
    /// Truncate it, towards the past.
    Truncate,
}

/// How to load text that contains 0x00, which PostgreSQL's text types cannot store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nul {
    /// Reject the value.
    #[default]
    Error,
    /// Remove the 0x00.
    Strip,
}

/// The type in a new table of columns with few distinct values: those that Parquet annotates as ENUM, and
/// Arrow dictionaries of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enums {
    /// `text`.
    #[default]
    Text,
    /// An enumeration `TABLE_COLUMN`, created with the table. Its labels are the values of the column, which
    /// the loader reads before the load.
    Enum,
}

/// Options for values. By default nothing is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueOptions {
    /// How to load timestamps, times, durations and intervals with digits beyond the microsecond.
    pub nanoseconds: Nanoseconds,
    /// How to load text that contains 0x00.
    pub nul: Nul,
    /// The type of columns with few distinct values in a new table.
    pub enums: Enums,
    /// The zone whose local times the timestamps without a zone are, in columns with one, and the reverse.
    pub timezone: Option<Zone>,
}

impl ValueOptions {
    /// Returns the options as text, a part of a load's identity: all units of a load are encoded alike.
    pub fn mapping(&self) -> String {
        if *self == Self::default() { String::new() } else { format!("{self:?}") }
    }
}
