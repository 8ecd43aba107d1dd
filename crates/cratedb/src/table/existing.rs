//! Columns of a table that exists, and whether a source's values go into them without change.

mod declaration;
mod fitting;
mod stored_type;

pub use declaration::is_native_type;
pub(crate) use declaration::{declared_types, native_type};
pub(crate) use stored_type::{Policy, StoredType};

/// A column of an existing table.
#[derive(Clone, Debug)]
pub(crate) struct Existing {
    pub name: String,
    pub data_type: StoredType,
    pub nullable: bool,
    /// The server fills it: generated, or with a default.
    pub filled: bool,
    /// Its default is the time of the statement.
    pub stamped: bool,
    pub generated: bool,
}
