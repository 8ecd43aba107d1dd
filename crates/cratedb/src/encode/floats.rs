//! Floats of any width.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use half::f16;

/// The values of an array of floats.
pub(crate) enum Floats<'a> {
    Half(&'a [f16]),
    Single(&'a [f32]),
    Double(&'a [f64]),
}

impl<'a> Floats<'a> {
    /// Binds an array; `None` if its type is unexpected.
    pub(crate) fn bind(array: &'a ArrayRef) -> Option<Self> {
        Some(match array.data_type() {
            DataType::Float16 => Self::Half(array.as_primitive_opt::<Float16Type>()?.values()),
            DataType::Float32 => Self::Single(array.as_primitive_opt::<Float32Type>()?.values()),
            _ => Self::Double(array.as_primitive_opt::<Float64Type>()?.values()),
        })
    }

    /// A value; what it is where the array has NULL does not matter.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> f64 {
        match self {
            Self::Half(values) => values[row].to_f64(),
            Self::Single(values) => values[row].into(),
            Self::Double(values) => values[row],
        }
    }
}
