//! The bytes of a row that are hashed: its binary COPY form, except for the parts that depend on the server.
//!
//! Two things in that form are not part of the row's values, and are hashed as zeros:
//!
//! - the OIDs of types in arrays and composite values (`array_send`, `record_send`): the server assigns them
//!   to types that are created with a table, so they differ from table to table. They are always left out;
//! - the display scale of a numeric: in a column of type `numeric` without a scale, 1.5 and 1.50 are the same
//!   value, but the server keeps the number of digits that came. A numeric consists of the number of its
//!   base-10000 digits, a weight, a sign, the display scale, and the digits without zeros at either end
//!   (`numeric_send` in src/backend/utils/adt/numeric.c): two values are equal if everything but the display
//!   scale is. The scale is left out when rows are compared by value.
//!
//! Lengths and positions of fields stay as they are.

use sawmill_pgcopy::{Column, ColumnType, PgType};

/// Turns rows in binary COPY form into the bytes that are hashed.
#[derive(Clone, Debug, Default)]
pub(crate) struct CanonicalRow {
    /// The columns that are hashed only in part, in order.
    columns: Vec<(usize, Form)>,
    row: Vec<u8>,
}

/// The parts of a value that the hash leaves out.
#[derive(Clone, Debug)]
enum Form {
    /// Nothing.
    Bytes,
    /// The display scale.
    Numeric,
    /// The elements' form.
    Array(Box<Form>),
    /// The attributes' forms.
    Composite(Vec<Form>),
}

/// Where the display scale is in a numeric.
const SCALE: std::ops::Range<usize> = 6..8;
/// Where the type of the elements is in an array, behind the number of dimensions and the flags.
const ELEMENT_TYPE: std::ops::Range<usize> = 8..12;

impl Form {
    fn new(column_type: &ColumnType, by_value: bool) -> Self {
        match column_type {
            ColumnType::Plain(PgType::Numeric(None)) if by_value => Self::Numeric,
            ColumnType::Plain(_) | ColumnType::Enumeration(_) | ColumnType::OfServer(_) => Self::Bytes,
            ColumnType::Array(part) => Self::Array(Box::new(Self::new(&part.column_type, by_value))),
            ColumnType::Composite(composite) => {
                let attributes = composite.attributes.iter();
                Self::Composite(attributes.map(|a| Self::new(&a.part.column_type, by_value)).collect())
            }
        }
    }

    /// Whether it contains numerics.
    fn has_numerics(&self) -> bool {
        match self {
            Self::Bytes => false,
            Self::Numeric => true,
            Self::Array(element) => element.has_numerics(),
            Self::Composite(attributes) => attributes.iter().any(Self::has_numerics),
        }
    }

    /// Overwrites the parts that the hash leaves out with zeros. If the bytes are not a value of this form,
    /// it stops at the first one that shows it.
    fn apply(&self, value: &mut [u8]) -> Option<()> {
        match self {
            Self::Bytes => {}
            Self::Numeric => value.get_mut(SCALE)?.fill(0),
            Self::Array(element) => {
                let (dimensions, _) = value.split_first_chunk::<4>()?;
                let dimensions = usize::try_from(i32::from_be_bytes(*dimensions)).ok()?;
                value.get_mut(ELEMENT_TYPE)?.fill(0);
                if !matches!(**element, Self::Bytes) {
                    let mut rest = value.get_mut(ELEMENT_TYPE.end + dimensions.checked_mul(8)?..)?;
                    while !rest.is_empty() {
                        rest = element.apply_to_field(rest)?;
                    }
                }
            }
            Self::Composite(attributes) => {
                let mut rest = value.get_mut(4..)?;
                for attribute in attributes {
                    let (number, field) = rest.split_at_mut_checked(4)?;
                    number.fill(0);
                    rest = attribute.apply_to_field(field)?;
                }
            }
        }
        Some(())
    }

    /// Applies to a value preceded by its length; returns the bytes after it.
    fn apply_to_field<'a>(&self, field: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let (length, rest) = field.split_first_chunk_mut::<4>()?;
        let length = i32::from_be_bytes(*length);
        let (value, rest) = rest.split_at_mut_checked(length.max(0) as usize)?;
        if length >= 0 {
            self.apply(value)?;
        }
        Some(rest)
    }
}

impl CanonicalRow {
    /// For rows of these columns.
    pub(crate) fn new(columns: &[Column], by_value: bool) -> Self {
        let forms = columns.iter().map(|column| Form::new(&column.column_type, by_value)).enumerate();
        Self { columns: forms.filter(|(_, form)| !matches!(form, Form::Bytes)).collect(), row: Vec::new() }
    }

    /// Whether rows of these columns may differ only in display scales.
    pub(crate) fn numerics_in(columns: &[Column]) -> bool {
        columns.iter().any(|column| Form::new(&column.column_type, true).has_numerics())
    }

    /// The bytes of the row that are hashed. The caller has checked that the row is complete.
    #[inline]
    pub(crate) fn row<'a>(&'a mut self, row: &'a [u8]) -> &'a [u8] {
        if self.columns.is_empty() { row } else { self.without_the_rest(row) }
    }

    fn without_the_rest(&mut self, row: &[u8]) -> &[u8] {
        let Self { columns, row: canonical } = self;
        canonical.clear();
        canonical.extend_from_slice(row);
        let mut rest = canonical.get_mut(2..).unwrap_or_default();
        let mut place = 0;
        'columns: for (column, form) in columns {
            while place < *column {
                place += 1;
                match Form::Bytes.apply_to_field(rest) {
                    Some(behind) => rest = behind,
                    None => break 'columns,
                }
            }
            place += 1;
            match form.apply_to_field(rest) {
                Some(behind) => rest = behind,
                None => break,
            }
        }
        canonical
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(value: &[u8]) -> Vec<u8> {
        [&(value.len() as u32).to_be_bytes(), value].concat()
    }

    fn numbers(numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
    }

    /// 1.5 with `scale` digits after the point.
    fn numeric(scale: u8) -> Vec<u8> {
        vec![0, 2, 0, 0, 0, 0, 0, scale, 0, 1, 0x13, 0x88]
    }

    /// A row of a NULL, an array of a composite value of a NULL and a numeric, and a numeric that is kept.
    fn row(type_number: u32, scale: u8) -> Vec<u8> {
        let null = numbers(&[u32::MAX]);
        let composite = [numbers(&[2, 25]), null.clone(), numbers(&[1700]), field(&numeric(scale))].concat();
        let array = [numbers(&[1, 1, type_number, 2, 1]), null.clone(), field(&composite)].concat();
        [vec![0, 3], null, field(&array), field(&numeric(7))].concat()
    }

    fn canonical(by_value: bool) -> CanonicalRow {
        let numeric = if by_value { Form::Numeric } else { Form::Bytes };
        let composite = Form::Composite(vec![Form::Bytes, numeric]);
        CanonicalRow { columns: vec![(1, Form::Array(Box::new(composite)))], row: Vec::new() }
    }

    #[test]
    fn numbers_of_types_are_left_out_and_display_scales_where_values_are_compared() {
        let hashed = |by_value, row: &[u8]| canonical(by_value).row(row).to_vec();
        assert_eq!(hashed(false, &row(16_400, 1)), hashed(false, &row(70_000, 1)));
        assert_ne!(hashed(false, &row(16_400, 1)), hashed(false, &row(16_400, 2)));
        assert_eq!(hashed(true, &row(16_400, 1)), hashed(true, &row(70_000, 2)));
        assert_eq!(hashed(true, &row(16_400, 1)).len(), row(16_400, 1).len());
        // The last column is not one of those.
        assert!(hashed(true, &row(1, 1)).ends_with(&numeric(7)));
    }

    #[test]
    fn bytes_that_are_no_rows_do_no_harm() {
        let whole = row(16_400, 1);
        for end in 0..whole.len() {
            assert_eq!(canonical(true).row(&whole[..end]).len(), end);
        }
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x81;
            canonical(true).row(&damaged);
        }
    }
}
