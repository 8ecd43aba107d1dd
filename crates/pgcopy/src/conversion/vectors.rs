//! Lists of numbers as the vectors of the extension pgvector, in the wire format of `vector_send` and `halfvec_send`
//! (src/vector.c, src/halfvec.c): the number of elements, 16 unused bits, and the elements as floats of 32 or 16 bits.

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};
use half::f16;

use super::{numbers, to_wire};
use crate::arrays::fault::Fault;
use crate::arrays::lists::{Items, Lists};
use crate::types::column_type::item_of;
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
        let item = item_of(field)?.data_type().clone();
        let is_number = item.is_integer() || item.is_floating();
        (is_list && is_number).then_some(Self { name, dimensions, is_half })
    }

    /// Returns the lists in the wire format, each element as the nearest that the type has. Adds to `faults` the lists
    /// that the type does not hold.
    pub(super) fn convert(&self, array: &ArrayRef, faults: &mut Vec<Fault>) -> Option<ArrayRef> {
        let Lists { offsets, items: Items::Values(items), .. } = Lists::bind(array)? else { return None };
        let number = numbers::doubles(items)?;
        let each = |row, out: &mut Vec<u8>| {
            let range = offsets.range(row);
            let length = range.len();
            if self.dimensions.is_some_and(|wanted| wanted != length)
                || !(1..=MAX_DIMENSIONS).contains(&length)
            {
                return Err(format!("the list does not fit {}: it has {length} elements", self.name));
            }
            out.extend((length as u16).to_be_bytes());
            out.extend([0; 2]);
            for place in range {
                let value = if items.is_valid(place) { number(place) } else { None };
                let (single, half) = (value.map(|value| value as f32), value.map(f16::from_f64));
                match (single.filter(|single| single.is_finite()), half.filter(|half| half.is_finite())) {
                    (Some(single), _) if !self.is_half => out.extend(single.to_be_bytes()),
                    (_, Some(half)) if self.is_half => out.extend(half.to_bits().to_be_bytes()),
                    _ => {
                        let what = "an element is null, NaN, infinite or too large";
                        return Err(format!("the list does not fit {}: {what}", self.name));
                    }
                }
            }
            Ok(())
        };
        Some(to_wire(array, each, faults))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::ListArray;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Float64Type;

    use super::*;

    #[test]
    fn elements_are_the_nearest_floats_in_the_order_of_the_network() {
        let lists = [
            Some(vec![Some(0.1), Some(-0.5)]),
            None,
            Some(vec![Some(1e6), Some(1.0)]),
            Some(vec![Some(1.0)]),
        ];
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists));
        let convert = |is_half| {
            let vectors = Vectors { name: "vector(2)".to_owned(), dimensions: Some(2), is_half };
            let mut faults = Vec::new();
            let converted = vectors.convert(&lists, &mut faults).unwrap();
            assert!(converted.is_null(1));
            let rows: Vec<usize> = faults.iter().map(|fault| fault.row).collect();
            (converted.as_binary::<i64>().value(0).to_vec(), rows)
        };
        assert_eq!(
            convert(false),
            ([&[0, 2, 0, 0][..], &0.1f32.to_be_bytes(), &[0xbf, 0, 0, 0]].concat(), vec![3])
        );
        assert_eq!(convert(true), (vec![0, 2, 0, 0, 0x2e, 0x66, 0xb8, 0], vec![2, 3]));
    }
}
