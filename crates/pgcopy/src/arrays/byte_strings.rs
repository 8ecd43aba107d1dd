//! Text and binary columns, whose values are copied unchanged.

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryViewType, StringViewType};
use arrow_array::{
    Array, BinaryArray, FixedSizeBinaryArray, GenericByteViewArray, LargeBinaryArray, LargeStringArray,
    StringArray,
};
use arrow_schema::DataType;

use super::fault::Fault;
use crate::arrays::inline_view::BEYOND;
use crate::rows::fields::{write_values, write_views};
use crate::rows::valid::Valid;
use crate::values::element::refuse_nul;

/// The values of one text or binary array, one variant per layout.
pub enum ByteStrings<'a> {
    /// Text with 32-bit offsets.
    Utf8(&'a StringArray),
    /// Text with 64-bit offsets.
    LargeUtf8(&'a LargeStringArray),
    /// Text views.
    Utf8View(&'a GenericByteViewArray<StringViewType>),
    /// Bytes with 32-bit offsets.
    Binary(&'a BinaryArray),
    /// Bytes with 64-bit offsets.
    LargeBinary(&'a LargeBinaryArray),
    /// Binary views.
    BinaryView(&'a GenericByteViewArray<BinaryViewType>),
    /// Bytes of a fixed length.
    Fixed(&'a FixedSizeBinaryArray),
}

impl<'a> ByteStrings<'a> {
    /// Whether values of this type are copied unchanged.
    pub(crate) fn holds(arrow: &DataType) -> bool {
        arrow.is_string() || arrow.is_binary()
    }

    /// Returns the values of `array`, or `None` if it has another type.
    pub fn bind(array: &'a dyn Array) -> Option<Self> {
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

    /// Whether the values are text, in which PostgreSQL does not allow 0x00.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Self::Utf8(_) | Self::LargeUtf8(_) | Self::Utf8View(_))
    }

    /// Adds the length of each non-NULL value to the length of its row. Rejects text that contains 0x00.
    #[inline(never)]
    pub(crate) fn lengths(&self, first: usize, valid: &Valid, lengths: &mut [u32]) -> Result<(), Fault> {
        let rows = first..first + lengths.len();
        macro_rules! offsets {
            ($array:expr, $text:expr) => {{
                let offsets = &$array.value_offsets()[first..=rows.end];
                for (row, (length, ends)) in lengths.iter_mut().zip(offsets.windows(2)).enumerate() {
                    // The slot of a NULL may contain bytes.
                    let bytes = if valid.is_valid(row) { ends[1] - ends[0] } else { 0 };
                    *length = length.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
                }
                let values = &$array.value_data()[offsets[0] as usize..offsets[rows.len()] as usize];
                $text && memchr::memchr(0, values).is_some()
            }};
        }
        macro_rules! views {
            ($array:expr, $text:expr) => {{
                let mut suspect = false;
                for (row, (length, view)) in lengths.iter_mut().zip(&$array.views()[rows.clone()]).enumerate()
                {
                    let bytes = if valid.is_valid(row) { *view as u32 } else { 0 };
                    *length = length.saturating_add(bytes);
                    if $text {
                        suspect |= match bytes {
                            0..=12 => inline_has_zero(*view, bytes),
                            _ => has_zero($array.value(first + row).as_ref()),
                        };
                    }
                }
                suspect
            }};
        }
        let suspect = match self {
            Self::Utf8(array) => offsets!(array, true),
            Self::LargeUtf8(array) => offsets!(array, true),
            Self::Binary(array) => offsets!(array, false),
            Self::LargeBinary(array) => offsets!(array, false),
            Self::Utf8View(array) => views!(array, true),
            Self::BinaryView(array) => views!(array, false),
            Self::Fixed(array) => {
                let width = array.value_length() as u32;
                for (row, length) in lengths.iter_mut().enumerate() {
                    *length = length.saturating_add(if valid.is_valid(row) { width } else { 0 });
                }
                false
            }
        };
        if suspect {
            for row in (0..lengths.len()).filter(|row| valid.is_valid(*row)) {
                refuse_nul(self.value(first + row), row)?;
            }
        }
        Ok(())
    }

    /// Writes one value for each of `positions`.
    #[inline(never)]
    pub(crate) fn write(&self, first: usize, valid: &Valid, out: &mut [u8], positions: &mut [u32]) {
        macro_rules! views {
            ($array:expr) => {
                write_views(out, positions, valid, &$array.views()[first..], |row| {
                    $array.value(first + row).as_ref()
                })
            };
        }
        match self {
            Self::Utf8(array) => {
                write_values(out, positions, valid, |row| array.value(first + row).as_bytes());
            }
            Self::LargeUtf8(array) => {
                write_values(out, positions, valid, |row| array.value(first + row).as_bytes());
            }
            Self::Binary(array) => write_values(out, positions, valid, |row| array.value(first + row)),
            Self::LargeBinary(array) => write_values(out, positions, valid, |row| array.value(first + row)),
            Self::Fixed(array) => write_values(out, positions, valid, |row| array.value(first + row)),
            Self::Utf8View(array) => views!(array),
            Self::BinaryView(array) => views!(array),
        }
    }

    /// Returns the bytes of a value; arbitrary bytes for a NULL.
    #[inline]
    pub fn value(&self, row: usize) -> &'a [u8] {
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

/// Whether an inline value contains 0x00, found without a loop: the subtraction borrows from the high bit of
/// a byte that is zero. The byte above it may then borrow as well, which does not change the answer.
#[inline(always)]
fn inline_has_zero(view: u128, bytes: u32) -> bool {
    const LOW: u128 = u128::MAX / 255;
    const HIGH: u128 = LOW << 7;
    // Sets the bits of the length and those after the value, whose zeros are not text.
    let value = (view | u128::from(u32::MAX)) | BEYOND[bytes as usize];
    value.wrapping_sub(LOW) & !value & HIGH != 0
}

/// Whether a longer value contains 0x00. Up to 64 bytes it makes no call: it tests both ends of the value,
/// which may overlap.
#[inline(always)]
fn has_zero(value: &[u8]) -> bool {
    fn among<const N: usize>(bytes: &[u8; N]) -> bool {
        // Without an early exit, the compiler compares all bytes at once.
        bytes.iter().fold(false, |found, byte| found | (*byte == 0))
    }
    macro_rules! ends {
        ($n:literal) => {
            if let (Some(first), Some(last)) = (value.first_chunk::<$n>(), value.last_chunk::<$n>()) {
                return among(first) | among(last);
            }
        };
    }
    match value.len() {
        8..=16 => ends!(8),
        17..=32 => ends!(16),
        33..=64 => ends!(32),
        _ => {}
    }
    memchr::memchr(0, value).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_is_found_at_every_position() {
        for length in 0..80 {
            assert!(!has_zero(&vec![1; length]));
            for at in 0..length {
                let mut value = vec![0xff; length];
                value[at] = 0;
                assert!(has_zero(&value), "{at} of {length}");
            }
        }
    }
}
