//! What all chunks of a column have in common.

use sawmill_footer::{Element, PhysicalType};

use crate::text::values::{Reader, meaning};
use crate::views::schema::physical_type;

/// A column's names, and how to read its values.
pub(crate) struct Column {
    /// The names from the root down, joined by dots, as the file has them.
    pub path: String,
    /// `INT64`, `FIXED_LEN_BYTE_ARRAY(16)`.
    pub physical_type: String,
    /// What the values mean, if the schema says so: `STRING`.
    pub logical_type: Option<String>,
    pub reader: Reader,
}

impl Column {
    pub(crate) fn of(leaf: Element<'_>) -> Self {
        // A leaf is an element with a physical type.
        let physical = leaf.physical_type().unwrap_or(PhysicalType::Unknown(-1));
        Column {
            path: leaf.path(),
            physical_type: physical_type(leaf),
            logical_type: meaning(leaf).map(|logical| logical.to_string()),
            reader: Reader::new(leaf, physical),
        }
    }
}
