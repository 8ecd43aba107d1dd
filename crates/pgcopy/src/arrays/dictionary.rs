//! The keys of dictionary arrays.

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_schema::DataType;

/// The keys of a dictionary array.
pub enum Keys<'a> {
    /// Signed, 8 bits.
    Int8(&'a [i8]),
    /// Signed, 16 bits.
    Int16(&'a [i16]),
    /// Signed, 32 bits.
    Int32(&'a [i32]),
    /// Signed, 64 bits.
    Int64(&'a [i64]),
    /// Unsigned, 8 bits.
    UInt8(&'a [u8]),
    /// Unsigned, 16 bits.
    UInt16(&'a [u16]),
    /// Unsigned, 32 bits.
    UInt32(&'a [u32]),
    /// Unsigned, 64 bits.
    UInt64(&'a [u64]),
}

impl<'a> Keys<'a> {
    /// Returns keys and values of a dictionary array, or `None` if `array` has another type.
    pub fn bind(array: &'a ArrayRef) -> Option<(Self, &'a ArrayRef)> {
        macro_rules! keys {
            ($t:ty, $variant:ident) => {{
                let dictionary = array.as_dictionary_opt::<$t>()?;
                Some((Self::$variant(dictionary.keys().values()), dictionary.values()))
            }};
        }
        let DataType::Dictionary(key, _) = array.data_type() else { return None };
        match key.as_ref() {
            DataType::Int8 => keys!(Int8Type, Int8),
            DataType::Int16 => keys!(Int16Type, Int16),
            DataType::Int32 => keys!(Int32Type, Int32),
            DataType::Int64 => keys!(Int64Type, Int64),
            DataType::UInt8 => keys!(UInt8Type, UInt8),
            DataType::UInt16 => keys!(UInt16Type, UInt16),
            DataType::UInt32 => keys!(UInt32Type, UInt32),
            DataType::UInt64 => keys!(UInt64Type, UInt64),
            _ => None,
        }
    }

    /// Returns the key of a row that is not NULL.
    #[inline]
    pub fn key(&self, row: usize) -> usize {
        match self {
            Self::Int8(keys) => keys[row] as usize,
            Self::Int16(keys) => keys[row] as usize,
            Self::Int32(keys) => keys[row] as usize,
            Self::Int64(keys) => keys[row] as usize,
            Self::UInt8(keys) => usize::from(keys[row]),
            Self::UInt16(keys) => usize::from(keys[row]),
            Self::UInt32(keys) => keys[row] as usize,
            Self::UInt64(keys) => keys[row] as usize,
        }
    }
}
