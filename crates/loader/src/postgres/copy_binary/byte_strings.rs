//! Text and binary columns: values that are copied as they are.

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryViewType, StringViewType};
use arrow_array::{
    Array, ArrayRef, BinaryArray, FixedSizeBinaryArray, GenericByteViewArray, LargeBinaryArray,
    LargeStringArray, StringArray,
};
use arrow_schema::DataType;

/// The values of one array, by its layout.
pub(crate) enum ByteStrings<'a> {
    Utf8(&'a StringArray),
    LargeUtf8(&'a LargeStringArray),
    Utf8View(&'a GenericByteViewArray<StringViewType>),
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    BinaryView(&'a GenericByteViewArray<BinaryViewType>),
    Fixed(&'a FixedSizeBinaryArray),
}

impl<'a> ByteStrings<'a> {
    /// Whether arrays of this type are copied as they are.
    pub(crate) fn holds(arrow: &DataType) -> bool {
        matches!(
            arrow,
            DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
                | DataType::FixedSizeBinary(_)
        )
    }

    /// Binds an array; `None` when it is of another type.
    pub(crate) fn bind(array: &'a ArrayRef) -> Option<Self> {
        Some(match array.data_type() {
            DataType::Utf8 => Self::Utf8(array.as_string_opt()?),
            DataType::LargeUtf8 => Self::LargeUtf8(array.as_string_opt()?),
            DataType::Utf8View => Self::Utf8View(array.as_string_view_opt()?),
            DataType::Binary => Self::Binary(array.as_binary_opt()?),
            DataType::LargeBinary => Self::LargeBinary(array.as_binary_opt()?),
            DataType::BinaryView => Self::BinaryView(array.as_binary_view_opt()?),
            DataType::FixedSizeBinary(_) => Self::Fixed(array.as_fixed_size_binary_opt()?),
            _ => return None,
        })
    }

    /// Whether the values are text, in which PostgreSQL takes no 0x00.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Self::Utf8(_) | Self::LargeUtf8(_) | Self::Utf8View(_))
    }

    /// A value's bytes; anything for a NULL.
    #[inline]
    pub(crate) fn value(&self, row: usize) -> &'a [u8] {
        match self {
            Self::Utf8(array) => array.value(row).as_bytes(),
            Self::LargeUtf8(array) => array.value(row).as_bytes(),
            Self::Utf8View(array) => array.value(row).as_bytes(),
            Self::Binary(array) => array.value(row),
            Self::LargeBinary(array) => array.value(row),
            Self::BinaryView(array) => array.value(row),
            Self::Fixed(array) => array.value(row),
        }
    }
}
