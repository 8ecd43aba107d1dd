//! What all chunks of a column have in common.

use sawmill_footer::{Element, PhysicalType};

use crate::text::values::{Reader, meaning};
use crate::views::schema::physical_type;

/// A column's names, and how to read its values.
///
/// ```
/// # let footer = sawmill_footer::Footer::open("../../fixtures/foreign/pyarrow_plain.parquet")?;
/// use sawmill_inspect::Column;
///
/// for leaf in footer.schema().leaves() {
///     let column = Column::new(leaf);
///     println!("{} {}", column.path, column.physical_type);
/// }
/// # Ok::<(), sawmill_footer::Error>(())
/// ```
pub struct Column {
    /// The names from the root down, joined by dots, as the file has them.
    pub path: String,
    /// `INT64`, `FIXED_LEN_BYTE_ARRAY(16)`.
    pub physical_type: String,
    /// What the values mean, if the schema says so: `STRING`.
    pub logical_type: Option<String>,
    pub(crate) reader: Reader,
}

impl Column {
    /// What the schema says of a leaf.
    pub fn new(leaf: Element<'_>) -> Self {
        // A leaf is an element with a physical type.
        let physical = leaf.physical_type().unwrap_or(PhysicalType::Unknown(-1));
        Column {
            path: leaf.path(),
            physical_type: physical_type(leaf),
            logical_type: meaning(leaf).map(|logical| logical.to_string()),
            reader: Reader::new(leaf, physical),
        }
    }

    /// A bound of the column's values as text: numbers, dates and UUIDs as usual, other bytes as hexadecimal digits.
    pub fn text(&self, bound: &[u8]) -> String {
        self.reader.value(bound).to_string()
    }
}
