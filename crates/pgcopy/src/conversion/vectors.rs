//! Lists of numbers as the vectors of the extension pgvector, in the wire format of `vector_send` and `halfvec_send`
//! (src/vector.c, src/halfvec.c): the number of elements, 16 unused bits, and the elements as floats of 32 or 16 bits.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};
use half::f16;

use super::{items, numbers, to_wire};
use crate::arrays::fault::Fault;
use crate::arrays::lists::{Items, Lists};
use crate::types::column_type::item_of;
use crate::types::pg_type::PgType;
use crate::types::server_type::ServerType;

/// The most elements of a vector (`VECTOR_MAX_DIM` in src/vector.h).
const MAX_DIMENSIONS: usize = 16_000;

/// A type of vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Vectors {
    name: String,
    /// The number of elements, if the column says it.
    dimensions: Option<usize>,
    /// Elements have 16 bits.
    is_half: bool,
}

impl Vectors {
    /// Returns the type, if it is one of vectors and the field has lists of numbers.
    pub(super) fn new(field: &Field, of: &ServerType) -> Option<Self> {
        let is_half = match of.0.base().rsplit('.').next()? {
            "vector" => false,
            "halfvec" => true,
            _ => return None,
        };
        let name = of.0.name().to_owned();
        let modifier = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        let dimensions = modifier.and_then(|modifier| modifier.parse().ok());
        let is_list = !matches!(field.data_type(), DataType::Map(..));
        let is_number = item_of(field)?.data_type().is_numeric();
        (is_list && is_number).then_some(Self { name, dimensions, is_half })
    }

    /// Returns the lists in the wire format. Adds to `faults` those that the type does not hold exactly.
    pub(super) fn convert(&self, array: &ArrayRef, faults: &mut Vec<Fault>) -> Option<ArrayRef> {
        let mut of_items = Vec::new();
        let singles = items::with_items(array, |items| match items.data_type() {
            DataType::Float32 => Ok(Some(Arc::clone(items))),
            _ => Ok(numbers::convert(items, PgType::Float4, &mut of_items)),
        });
        let singles = singles.ok()??;
        let Lists { offsets, items: Items::Values(items), .. } = Lists::bind(&singles)? else { return None };
        let elements = items.as_primitive_opt::<Float32Type>()?;
        let each = |row, out: &mut Vec<u8>| {
            let range = offsets.range(row);
            let refused = |why: String| Err(format!("the list does not fit {}: {why}", self.name));
            if let Some(fault) = of_items.iter().find(|fault| range.contains(&fault.row)) {
                return refused(fault.what.clone());
            }
            let length = range.len();
            if self.dimensions.is_some_and(|wanted| wanted != length)
                || !(1..=MAX_DIMENSIONS).contains(&length)
            {
                return refused(format!("it has {length} elements"));
            }
            out.extend((length as u16).to_be_bytes());
            out.extend([0; 2]);
            for place in range {
                let value = elements.value(place);
                let half = f16::from_f32(value);
                if elements.is_null(place) || !value.is_finite() {
                    return refused("an element is null, NaN or infinite".to_owned());
                }
                match self.is_half {
                    true if half.to_f32() != value => {
                        return refused(format!("{value} is not a float of 16 bits"));
                    }
                    true => out.extend(half.to_bits().to_be_bytes()),
                    false => out.extend(value.to_be_bytes()),
                }
            }
            Ok(())
        };
        Some(to_wire(array, each, faults))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::ListArray;
    use arrow_array::types::Float64Type;

    use super::*;

    #[test]
    fn elements_are_floats_in_the_order_of_the_network() {
        let lists = [
            Some(vec![Some(1.0), Some(-0.5)]),
            None,
            Some(vec![Some(0.1), Some(1.0)]),
            Some(vec![Some(1.0)]),
        ];
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists));
        let vectors = |is_half| Vectors { name: "vector(2)".to_owned(), dimensions: Some(2), is_half };
        let mut faults = Vec::new();
        let single = vectors(false).convert(&lists, &mut faults).unwrap();
        let expected = [0, 2, 0, 0, 0x3f, 0x80, 0, 0, 0xbf, 0, 0, 0];
        assert_eq!(single.as_binary::<i64>().value(0), expected);
        assert_eq!(faults.iter().map(|fault| fault.row).collect::<Vec<_>>(), [2, 3]);
        assert!(single.is_null(1) && faults[0].what.contains("0.1 cannot be stored exactly"), "{faults:?}");
        let half = vectors(true).convert(&lists, &mut Vec::new()).unwrap();
        assert_eq!(half.as_binary::<i64>().value(0), [0, 2, 0, 0, 0x3c, 0, 0xb8, 0]);
    }
}
