//! Values of a fixed width: numbers in Arrow's format, and decimals, which are wider in Arrow.

use std::marker::PhantomData;

use arrow_buffer::{ArrowNativeType, Buffer};
use bytes::Bytes;

use super::NotRead;
use super::paged_column::Stored;

/// Numbers of four or eight bytes that are copied unchanged.
pub(super) struct Words<W>(PhantomData<W>);

impl<W> Words<W> {
    pub(super) fn new() -> Self {
        Self(PhantomData)
    }
}

/// The bits of a number.
pub(super) trait Word: ArrowNativeType {
    /// Appends consecutive numbers.
    fn append(bytes: &[u8], to: &mut Vec<Self>);
}

macro_rules! word {
    ($word:ty) => {
        impl Word for $word {
            fn append(bytes: &[u8], to: &mut Vec<Self>) {
                to.extend(bytes.as_chunks().0.iter().map(|value| Self::from_le_bytes(*value)));
            }
        }
    };
}
word!(u32);
word!(u64);

/// Splits off `count` values of `width` bytes.
fn taken(bytes: &mut Bytes, count: usize, width: usize) -> Result<Bytes, NotRead> {
    let length = count.checked_mul(width).filter(|length| *length <= bytes.len()).ok_or(NotRead)?;
    Ok(bytes.split_to(length))
}

impl<W: Word> Stored for Words<W> {
    type Value = W;

    fn values(&mut self, bytes: &mut Bytes, count: usize, to: &mut Vec<W>) -> Result<(), NotRead> {
        W::append(&taken(bytes, count, size_of::<W>())?, to);
        Ok(())
    }

    fn in_place(&self, bytes: &mut Bytes, count: usize) -> Option<Buffer> {
        if bytes.as_ptr().align_offset(align_of::<W>()) != 0 {
            return None;
        }
        taken(bytes, count, size_of::<W>()).ok().map(Buffer::from)
    }
}

/// Decimals, which become 16 bytes each
/// (<https://github.com/apache/parquet-format/blob/master/LogicalTypes.md#decimal>).
pub(super) enum Decimals {
    Int32,
    Int64,
    /// Big-endian integers of 1 to 16 bytes.
    Bytes(usize),
}

impl Stored for Decimals {
    type Value = i128;

    fn values(&mut self, bytes: &mut Bytes, count: usize, to: &mut Vec<i128>) -> Result<(), NotRead> {
        match self {
            Self::Int32 => {
                let taken = taken(bytes, count, 4)?;
                to.extend(taken.as_chunks().0.iter().map(|value| i128::from(i32::from_le_bytes(*value))));
            }
            Self::Int64 => {
                let taken = taken(bytes, count, 8)?;
                to.extend(taken.as_chunks().0.iter().map(|value| i128::from(i64::from_le_bytes(*value))));
            }
            Self::Bytes(width) => {
                let (width, mut rest) = (*width, &taken(bytes, count, *width)?[..]);
                let beyond = 8 * (16 - width);
                to.reserve(count);
                while let Some(value) = rest.first_chunk::<16>() {
                    to.push(i128::from_be_bytes(*value) >> beyond);
                    rest = &rest[width..];
                }
                to.extend(rest.chunks_exact(width).map(|value| {
                    let mut wide = [0; 16];
                    wide[..width].copy_from_slice(value);
                    i128::from_be_bytes(wide) >> beyond
                }));
            }
        }
        Ok(())
    }
}
