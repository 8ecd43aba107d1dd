//! Converts drawn values to Parquet's physical types.
//!
//! With default options, pages are encoded directly from codes (`column_chunk.rs`). All other encodings, and
//! code that reads values one by one, start from physical values.

use crate::encode::values::PhysicalValues;
use crate::shred::value_buffer::{ByteStrings, PhysicalBuffer, ValueBuffer};
use crate::spec::dataset::Leaf;
use crate::types::logical_type::Physical;

/// Buffers for converted values.
#[derive(Debug, Default)]
pub(crate) struct PhysicalRoom {
    made: Option<PhysicalBuffer>,
    offsets: Vec<u32>,
}

/// The physical values of `buffer`, which were drawn for `leaf`.
pub(crate) fn physical<'a>(
    leaf: &Leaf,
    buffer: &'a ValueBuffer,
    room: &'a mut PhysicalRoom,
) -> PhysicalValues<'a> {
    match buffer {
        ValueBuffer::Booleans(v) => PhysicalValues::Booleans(v),
        ValueBuffer::Int32(v) => PhysicalValues::Int32(v),
        ValueBuffer::Int64(v) if leaf.physical != Physical::Int96 => PhysicalValues::Int64(v),
        ValueBuffer::Float(v) => PhysicalValues::Float(v),
        ValueBuffer::Double(v) => PhysicalValues::Double(v),
        ValueBuffer::Bytes(strings) => byte_strings(strings, &mut room.offsets),
        ValueBuffer::Fixed { width, data } => PhysicalValues::Fixed { width: *width, data },
        codes => match &*room.made.insert(codes.materialise(leaf)) {
            PhysicalBuffer::Booleans(v) => PhysicalValues::Booleans(v),
            PhysicalBuffer::Int32(v) => PhysicalValues::Int32(v),
            PhysicalBuffer::Int64(v) => PhysicalValues::Int64(v),
            PhysicalBuffer::Float(v) => PhysicalValues::Float(v),
            PhysicalBuffer::Double(v) => PhysicalValues::Double(v),
            PhysicalBuffer::Bytes(strings) => byte_strings(strings, &mut room.offsets),
            PhysicalBuffer::Fixed { width, data } => PhysicalValues::Fixed { width: *width, data },
        },
    }
}

fn byte_strings<'a>(strings: &'a ByteStrings, offsets: &'a mut Vec<u32>) -> PhysicalValues<'a> {
    offsets.clear();
    offsets.push(0);
    offsets.extend_from_slice(&strings.ends);
    PhysicalValues::Bytes { offsets, data: &strings.data }
}

impl Leaf {
    /// Whether its values are byte arrays, whose sizes the statistics contain.
    pub(crate) fn is_byte_array(&self) -> bool {
        self.physical == Physical::Bytes
    }
}
