//! What becomes of values that PostgreSQL cannot hold as they are, and which types a new table gets for them.

use serde::Serialize;

/// What is finer than PostgreSQL's microsecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Nanoseconds {
    /// A value that is no whole microsecond is refused.
    #[default]
    Error,
    /// It is cut, towards the past.
    Truncate,
}

/// 0x00 in text, which PostgreSQL's text types cannot hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Nul {
    /// The value is refused.
    #[default]
    Error,
    /// The 0x00 is left out.
    Strip,
}

/// What columns of a few values that come again and again become in a new table: those that Parquet annotates as
/// ENUM, and Arrow dictionaries of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Enums {
    /// `text`.
    #[default]
    Text,
    /// An enumeration `TABLE_COLUMN` that is made with the table. Its labels are the values of the column, which is
    /// read for that before the load.
    Enum,
}

/// How values are taken; by default nothing is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ValueOptions {
    /// What timestamps, times, durations and intervals finer than a microsecond become.
    pub nanoseconds: Nanoseconds,
    /// What text with 0x00 becomes.
    pub nul: Nul,
    /// What columns of a few values become in a new table.
    pub enums: Enums,
}

impl ValueOptions {
    /// As a part of a load's identity: units of one load are all made the same way.
    pub fn mapping(&self) -> String {
        match *self == Self::default() {
            true => String::new(),
            false => format!("{self:?}"),
        }
    }
}
