//! Converts drawn values to Parquet's physical types.
//!
//! With default options, pages are encoded directly from codes (`column_chunk.rs`). All other encodings, and
//! code that reads values one by one, start from physical values.

use std::borrow::Cow;

use crate::encode::values::PhysicalValues;
use crate::shred::value_buffer::ValueBuffer;
use crate::spec::dataset::Leaf;
use crate::types::logical_type::Physical;

/// Buffers for converted values.
#[derive(Debug, Default)]
pub(crate) struct PhysicalRoom {
    made: Option<ValueBuffer>,
    offsets: Vec<u32>,
}

/// The physical values of `buffer`, which were drawn for `leaf`.
pub(crate) fn physical<'a>(
    leaf: &Leaf,
    buffer: &'a ValueBuffer,
    room: &'a mut PhysicalRoom,
) -> PhysicalValues<'a> {
    let plain = match buffer.plain(leaf) {
        Cow::Borrowed(plain) => plain,
        Cow::Owned(made) => &*room.made.insert(made),
    };
    match plain {
        ValueBuffer::Booleans(v) => PhysicalValues::Booleans(v),
        ValueBuffer::Int32(v) => PhysicalValues::Int32(v),
        ValueBuffer::Int64(v) => PhysicalValues::Int64(v),
        ValueBuffer::Float(v) => PhysicalValues::Float(v),
        ValueBuffer::Double(v) => PhysicalValues::Double(v),
        ValueBuffer::Fixed { width, data } => PhysicalValues::Fixed { width: *width, data },
        ValueBuffer::Bytes(strings) => {
            room.offsets.clear();
            room.offsets.push(0);
            room.offsets.extend_from_slice(&strings.ends);
            PhysicalValues::Bytes { offsets: &room.offsets, data: &strings.data }
        }
        codes => {
            debug_assert!(false, "{codes:?} are not plain");
            PhysicalValues::Booleans(&[])
        }
    }
}

impl Leaf {
    /// Whether its values are byte arrays, whose sizes the statistics contain.
    pub(crate) fn is_byte_array(&self) -> bool {
        self.physical == Physical::Bytes
    }
}
