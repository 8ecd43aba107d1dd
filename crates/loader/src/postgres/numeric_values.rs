//! Rows by the values of their numerics: in a column of type `numeric` without a scale, 1.5 and 1.50 are one value that
//! the server keeps as it came, with the number of digits that it is shown with.
//!
//! In binary COPY form a numeric is the number of its base-10000 digits, a weight, a sign, that display scale, and the
//! digits, without zeros at either end (`numeric_send` in src/backend/utils/adt/numeric.c): values are equal where all but
//! the display scale is.

use super::copy_binary::Column;
use super::pg_type::PgType;

/// Takes the display scale out of some columns of rows in binary COPY form.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByValue {
    /// The columns without a scale, in order.
    columns: Vec<usize>,
    row: Vec<u8>,
}

/// Where the display scale is in a numeric.
const SCALE: std::ops::Range<usize> = 6..8;

impl ByValue {
    /// For rows of these columns.
    pub(crate) fn of(columns: &[Column]) -> Self {
        let unscaled = |column: &Column| column.column_type.plain() == Some(PgType::Numeric(None));
        let columns = columns.iter().enumerate().filter(|(_, column)| unscaled(column));
        Self { columns: columns.map(|(place, _)| place).collect(), row: Vec::new() }
    }

    /// Whether rows may differ in display scales at all.
    pub(crate) fn applies(&self) -> bool {
        !self.columns.is_empty()
    }

    /// The row without the display scales. It is whole, as the caller has found.
    pub(crate) fn row<'a>(&'a mut self, row: &'a [u8]) -> &'a [u8] {
        if !self.applies() {
            return row;
        }
        self.row.clear();
        self.row.extend_from_slice(row);
        let (mut at, mut column) = (2, 0);
        for wanted in &self.columns {
            while let Some(length) = row.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
                let start = at + 4;
                at = start + i32::from_be_bytes(*length).max(0) as usize;
                column += 1;
                if column > *wanted {
                    if let Some(scale) = self.row.get_mut(start..at).and_then(|value| value.get_mut(SCALE)) {
                        scale.fill(0);
                    }
                    break;
                }
            }
        }
        &self.row
    }
}
