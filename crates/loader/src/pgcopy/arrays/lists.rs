//! Arrays of lists: where each list's items are.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

/// Where the items of each list are among all items.
#[derive(Clone)]
pub(crate) enum Offsets<'a> {
    Small(&'a [i32]),
    Large(&'a [i64]),
    /// Lists of one length.
    Fixed(usize),
}

impl Offsets<'_> {
    #[inline]
    pub(crate) fn range(&self, row: usize) -> Range<usize> {
        match self {
            Self::Small(offsets) => offsets[row] as usize..offsets[row + 1] as usize,
            Self::Large(offsets) => offsets[row] as usize..offsets[row + 1] as usize,
            Self::Fixed(size) => row * size..(row + 1) * size,
        }
    }
}

/// The items of all lists of an array.
#[derive(Clone, Copy)]
pub(crate) enum Items<'a> {
    Values(&'a ArrayRef),
    /// Keys and values of maps.
    Entries(&'a StructArray),
}

/// An array of lists.
pub(crate) struct Lists<'a> {
    pub offsets: Offsets<'a>,
    pub nulls: Option<&'a NullBuffer>,
    pub items: Items<'a>,
}

impl<'a> Lists<'a> {
    /// Binds an array of lists or maps; `None` when it is another.
    pub(crate) fn bind(array: &'a ArrayRef) -> Option<Self> {
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
