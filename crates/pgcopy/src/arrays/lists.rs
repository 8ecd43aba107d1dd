//! List arrays and the ranges of their items.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

/// The range of each list's items among all items.
#[derive(Clone)]
pub enum Offsets<'a> {
    /// 32-bit offsets.
    Small(&'a [i32]),
    /// 64-bit offsets.
    Large(&'a [i64]),
    /// Lists of a fixed length.
    Fixed(usize),
}

impl Offsets<'_> {
    /// Returns the range of the items of the list in `row`. Panics if the array does not have that row.
    #[inline]
    pub fn range(&self, row: usize) -> Range<usize> {
        match self {
            Self::Small(offsets) => offsets[row] as usize..offsets[row + 1] as usize,
            Self::Large(offsets) => offsets[row] as usize..offsets[row + 1] as usize,
            Self::Fixed(size) => row * size..(row + 1) * size,
        }
    }
}

/// The items of all lists of an array.
#[derive(Clone, Copy)]
pub enum Items<'a> {
    /// Items of lists.
    Values(&'a ArrayRef),
    /// Keys and values of maps.
    Entries(&'a StructArray),
}

/// An array of lists.
pub struct Lists<'a> {
    /// The range of each list's items.
    pub offsets: Offsets<'a>,
    /// Which lists are NULL; `None` if no list is.
    pub nulls: Option<&'a NullBuffer>,
    /// The items of all lists.
    pub items: Items<'a>,
}

impl<'a> Lists<'a> {
    /// Returns the lists of an array of lists or maps, or `None` if `array` has another type.
    pub fn bind(array: &'a ArrayRef) -> Option<Self> {
        let (offsets, items) = match array.data_type() {
            DataType::List(_) => {
                let list = array.as_list_opt::<i32>()?;
                (Offsets::Small(list.value_offsets()), Items::Values(list.values()))
            }
            DataType::LargeList(_) => {
                let list = array.as_list_opt::<i64>()?;
                (Offsets::Large(list.value_offsets()), Items::Values(list.values()))
            }
            DataType::FixedSizeList(..) => {
                let list = array.as_fixed_size_list_opt()?;
                let size = usize::try_from(list.value_length()).ok()?;
                (Offsets::Fixed(size), Items::Values(list.values()))
            }
            DataType::Map(..) => {
                let map = array.as_map_opt()?;
                (Offsets::Small(map.value_offsets()), Items::Entries(map.entries()))
            }
            _ => return None,
        };
        Some(Self { offsets, nulls: array.nulls().filter(|nulls| nulls.null_count() > 0), items })
    }
}
