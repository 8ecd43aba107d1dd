//! The keys of dictionary arrays.

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_schema::DataType;

/// The keys of a dictionary array.
pub enum Keys<'a> {
    /// Of 8 bits.
    Int8(&'a [i8]),
    /// Of 16 bits.
    Int16(&'a [i16]),
    /// Of 32 bits.
    Int32(&'a [i32]),
    /// Of 64 bits.
    Int64(&'a [i64]),
    /// Of 8 bits without a sign.
    UInt8(&'a [u8]),
    /// Of 16 bits without a sign.
    UInt16(&'a [u16]),
    /// Of 32 bits without a sign.
    UInt32(&'a [u32]),
    /// Of 64 bits without a sign.
    UInt64(&'a [u64]),
}

impl<'a> Keys<'a> {
    /// Keys and values of a dictionary array, `None` when it is another array.
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

    /// The key of a row that is not NULL.
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
