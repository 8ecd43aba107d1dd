//! Parts of value buffers: ranges for pages that are cut, single values for rows that are sorted into
//! partitions.

use std::ops::Range;

use crate::values::ValueBuffer;

impl ValueBuffer {
    /// Appends the values `range` of `other`, a buffer of the same kind.
    pub(crate) fn extend_from(&mut self, other: &ValueBuffer, range: Range<usize>) {
        match (self, other) {
            (ValueBuffer::Names(to), ValueBuffer::Names(from)) => to.extend_from_slice(&from[range]),
            (ValueBuffer::Ids(to), ValueBuffer::Ids(from)) => to.extend_from_slice(&from[range]),
            (ValueBuffer::Indices(to), ValueBuffer::Indices(from)) => to.extend_from_slice(&from[range]),
            (ValueBuffer::Booleans(to), ValueBuffer::Booleans(from)) => to.extend_from_slice(&from[range]),
            (ValueBuffer::Int32(to), ValueBuffer::Int32(from)) => to.extend_from_slice(&from[range]),
            (ValueBuffer::Int64(to), ValueBuffer::Int64(from)) => to.extend_from_slice(&from[range]),
            (ValueBuffer::Float(to), ValueBuffer::Float(from)) => to.extend_from_slice(&from[range]),
            (ValueBuffer::Double(to), ValueBuffer::Double(from)) => to.extend_from_slice(&from[range]),
            // Buffers of one leaf are of one kind.
            (to, from) => debug_assert!(false, "{from:?} into {to:?}"),
        }
    }
}
