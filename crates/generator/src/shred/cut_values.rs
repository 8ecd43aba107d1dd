//! Copies parts of value buffers: ranges for smaller pages, single values for rows sorted into partitions.

use std::ops::Range;

use crate::shred::value_buffer::{ByteStrings, ValueBuffer};

impl ValueBuffer {
    /// Appends the values `range` of `other`, a buffer of the same kind.
    pub(crate) fn extend_from(&mut self, other: &ValueBuffer, range: Range<usize>) {
        match (self, other) {
            (ValueBuffer::Names(to), ValueBuffer::Names(from)) => to.extend_from_slice(&from[range]),
            (ValueBuffer::Ids(to), ValueBuffer::Ids(from)) => to.extend_from_slice(&from[range]),
            (ValueBuffer::Rows { seed: to_seed, rows: to }, ValueBuffer::Rows { seed, rows: from }) => {
                *to_seed = *seed;
                to.extend_from_slice(&from[range]);
            }
            (ValueBuffer::Indices(to), ValueBuffer::Indices(from)) => to.extend_from_slice(&from[range]),
            (ValueBuffer::Booleans(to), ValueBuffer::Booleans(from)) => to.extend_from_slice(&from[range]),
            (ValueBuffer::Int32(to), ValueBuffer::Int32(from)) => to.extend_from_slice(&from[range]),
            (ValueBuffer::Int64(to), ValueBuffer::Int64(from)) => to.extend_from_slice(&from[range]),
            (ValueBuffer::Float(to), ValueBuffer::Float(from)) => to.extend_from_slice(&from[range]),
            (ValueBuffer::Double(to), ValueBuffer::Double(from)) => to.extend_from_slice(&from[range]),
            (ValueBuffer::Bytes(to), ValueBuffer::Bytes(from)) => strings(to, from, range),
            (ValueBuffer::Fixed { data: to, .. }, ValueBuffer::Fixed { width, data: from }) => {
                to.extend_from_slice(&from[range.start * width..range.end * width]);
            }
            // All buffers of a leaf are of the same kind.
            (to, from) => debug_assert!(false, "{from:?} into {to:?}"),
        }
    }
}

fn strings(to: &mut ByteStrings, from: &ByteStrings, range: Range<usize>) {
    let start = range.start.checked_sub(1).map_or(0, |before| from.ends[before]);
    let ends = &from.ends[range];
    let Some(end) = ends.last() else { return };
    let base = to.data.len() as u32;
    to.data.extend_from_slice(&from.data[start as usize..*end as usize]);
    to.ends.extend(ends.iter().map(|end| end - start + base));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_from_the_middle_are_appended() {
        let buffer = |texts: &[&str]| {
            let mut strings = ByteStrings::default();
            for text in texts {
                strings.data.extend_from_slice(text.as_bytes());
                strings.push_end();
            }
            ValueBuffer::Bytes(strings)
        };
        let mut to = buffer(&["a"]);
        to.extend_from(&buffer(&["xx", "bb", "", "ccc", "y"]), 1..4);
        to.extend_from(&buffer(&["z"]), 1..1);
        let ValueBuffer::Bytes(strings) = &to else { unreachable!() };
        assert_eq!(strings.iter().collect::<Vec<_>>(), [b"a".as_slice(), b"bb", b"", b"ccc"]);
    }
}
