//! The arguments of statements as PostgreSQL takes them: parameters, rows of a COPY, or an array of each column.

use sawmill_pgcopy::PgType;

use crate::mix::block::fields;
use crate::work::statements;
use crate::work::step::Arguments;

/// The length of NULL.
const NULL: [u8; 4] = (-1_i32).to_be_bytes();

/// Parameters, one after the other.
pub(super) struct Parameters<'a> {
    pub out: &'a mut Vec<u8>,
    /// The values of the operation's variables.
    pub variables: &'a [Vec<u8>],
}

impl Arguments for Parameters<'_> {
    fn row(&mut self, row: &[u8]) {
        // After its number of fields, a row has the form of parameters.
        self.out.extend_from_slice(row.get(2..).unwrap_or_default());
    }

    fn key(&mut self, number: u64) {
        append(self.out, Some(&(number as i64).to_be_bytes()));
    }

    fn field(&mut self, _: PgType, field: Option<&[u8]>) {
        append(self.out, field);
    }

    fn variable(&mut self, number: usize) {
        append(self.out, self.variables.get(number).map(Vec::as_slice));
    }
}

/// Rows of a COPY.
pub(super) struct CopyRows<'a>(pub &'a mut Vec<u8>);

impl Arguments for CopyRows<'_> {
    fn row(&mut self, row: &[u8]) {
        self.0.extend_from_slice(row);
    }
}

/// An array of each column, for UNNEST.
#[derive(Default)]
pub(super) struct ArrayColumns {
    columns: Vec<ArrayColumn>,
    rows: u32,
}

#[derive(Default)]
struct ArrayColumn {
    elements: Vec<u8>,
    has_nulls: bool,
}

impl ArrayColumns {
    /// Appends the arrays as parameters, and empties them.
    pub(super) fn append_to(&mut self, out: &mut Vec<u8>, types: &[PgType]) {
        for (column, pg_type) in self.columns.iter_mut().zip(types) {
            out.extend_from_slice(&(20 + column.elements.len() as u32).to_be_bytes());
            // One dimension, whether there are NULLs, the elements' type, how many there are, numbered from 1.
            for number in [1, u32::from(column.has_nulls), statements::oid(*pg_type), self.rows, 1] {
                out.extend_from_slice(&number.to_be_bytes());
            }
            out.append(&mut column.elements);
            column.has_nulls = false;
        }
        self.rows = 0;
    }
}

impl Arguments for ArrayColumns {
    fn row(&mut self, row: &[u8]) {
        for (place, field) in fields(row).enumerate() {
            if self.columns.len() <= place {
                self.columns.push(ArrayColumn::default());
            }
            let column = &mut self.columns[place];
            column.has_nulls |= field.is_none();
            append(&mut column.elements, field);
        }
        self.rows += 1;
    }
}

/// A field with its length before it.
fn append(out: &mut Vec<u8>, field: Option<&[u8]>) {
    match field {
        Some(field) => {
            out.extend_from_slice(&(field.len() as u32).to_be_bytes());
            out.extend_from_slice(field);
        }
        None => out.extend_from_slice(&NULL),
    }
}
