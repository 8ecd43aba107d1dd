//! The values of a leaf until their page is written, without nulls.
//!
//! Values stay in their smallest form: an index into a dictionary, the code of a name, the number of a unique
//! string. Pages and statistics are made from these. [`ValueBuffer::plain`] converts them to plain
//! values for the encodings that need them.

use std::borrow::Cow;
use std::ops::Range;

use crate::draw::text::person_name;
use crate::draw::value_spec::{ReferencedKey, ValueSpec};
use crate::shred::leaf_draws::texts_of;
use crate::spec::dataset::Leaf;
use crate::types::literal::int96;
use crate::types::logical_type::Physical;

/// The drawn values of a page.
#[derive(Clone, Debug)]
pub(crate) enum ValueBuffer {
    Names(Vec<u32>),
    Ids(Vec<u64>),
    /// Rows of another table, whose keys do not tell them.
    Rows {
        seed: u64,
        rows: Vec<u64>,
    },
    Indices(Vec<u32>),
    Booleans(Vec<u8>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(ByteStrings),
    Fixed {
        width: usize,
        data: Vec<u8>,
    },
}

/// The most string bytes of a buffer, which counts them in 32 bits.
pub(crate) const MAX_STRING_BYTES: usize = u32::MAX as usize;

/// Concatenated byte strings, at most [`MAX_STRING_BYTES`]; the shredder checks this after every block.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByteStrings {
    /// The end of each string.
    pub ends: Vec<u32>,
    pub data: Vec<u8>,
}

impl ByteStrings {
    /// Ends the string that was appended to `data`.
    pub(crate) fn push_end(&mut self) {
        self.ends.push(self.data.len() as u32);
    }

    /// String `i`; an empty one if there are fewer.
    pub(crate) fn get(&self, i: usize) -> &[u8] {
        let end = |i: usize| self.ends.get(i).map(|end| *end as usize);
        let start = i.checked_sub(1).map_or(Some(0), end);
        let range = start.zip(end(i)).map(|(start, end)| start..end);
        range.and_then(|range| self.data.get(range)).unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.data[start as usize..*end as usize])
    }

    pub(crate) fn clear(&mut self) {
        self.ends.clear();
        self.data.clear();
    }
}

/// Runs `$body` with `$v` bound to the vector of `$buffer`, or `$bytes` and `$fixed` for strings.
macro_rules! on_each {
    ($buffer:expr, $v:ident => $body:expr, $strings:ident => $bytes:expr, ($width:ident, $data:ident) => $fixed:expr) => {
        match $buffer {
            ValueBuffer::Names($v) => $body,
            ValueBuffer::Ids($v) => $body,
            ValueBuffer::Rows { rows: $v, .. } => $body,
            ValueBuffer::Indices($v) => $body,
            ValueBuffer::Booleans($v) => $body,
            ValueBuffer::Int32($v) => $body,
            ValueBuffer::Int64($v) => $body,
            ValueBuffer::Float($v) => $body,
            ValueBuffer::Double($v) => $body,
            ValueBuffer::Bytes($strings) => $bytes,
            ValueBuffer::Fixed { width: $width, data: $data } => $fixed,
        }
    };
}

impl ValueBuffer {
    pub(crate) fn new(leaf: &Leaf) -> Self {
        match (&leaf.values, leaf.physical) {
            (ValueSpec::PersonName, _) => ValueBuffer::Names(Vec::new()),
            _ if leaf.template().is_some() => ValueBuffer::Ids(Vec::new()),
            (_, physical)
                if matches!(leaf.key(), Some(ReferencedKey::Uuid(_) | ReferencedKey::Distinct(_)))
                    && (leaf.is_operand || physical != Physical::Bytes) =>
            {
                ValueBuffer::Rows { seed: 0, rows: Vec::new() }
            }
            (ValueSpec::Choice { .. }, _) => ValueBuffer::Indices(Vec::new()),
            (_, Physical::Boolean) => ValueBuffer::Booleans(Vec::new()),
            (_, Physical::Int32) => ValueBuffer::Int32(Vec::new()),
            // INT96 timestamps are nanoseconds until they are written.
            (_, Physical::Int64 | Physical::Int96) => ValueBuffer::Int64(Vec::new()),
            (_, Physical::Float) => ValueBuffer::Float(Vec::new()),
            (_, Physical::Double) => ValueBuffer::Double(Vec::new()),
            (_, Physical::Bytes) => ValueBuffer::Bytes(ByteStrings::default()),
            (_, Physical::Fixed(width)) => ValueBuffer::Fixed { width: width as usize, data: Vec::new() },
        }
    }

    pub(crate) fn len(&self) -> usize {
        on_each!(self, v => v.len(), strings => strings.ends.len(), (width, data) => data.len() / width)
    }

    /// The memory that its values take, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        on_each!(self, v => size_of_val(&v[..]), strings => strings.data.len() + size_of_val(&strings.ends[..]), (_width, data) => data.len())
    }

    /// The bytes of its strings; 0 for other types.
    pub(crate) fn string_bytes(&self) -> usize {
        match self {
            ValueBuffer::Bytes(strings) => strings.data.len(),
            _ => 0,
        }
    }

    pub(crate) fn clear(&mut self) {
        on_each!(self, v => v.clear(), strings => strings.clear(), (_width, data) => data.clear());
    }

    /// Of the values from `from` up, keeps only `keep`, which counts from `from`.
    pub(crate) fn retain(&mut self, from: usize, keep: Range<usize>) {
        on_each!(
            self,
            v => {
                v.truncate(from + keep.end);
                v.drain(from..from + keep.start);
            },
            strings => {
                strings.ends.truncate(from + keep.end);
                strings.data.truncate(strings.ends.last().map_or(0, |end| *end as usize));
                let end = |i: usize| if i == 0 { 0 } else { strings.ends[i - 1] };
                let (start, first) = (end(from), end(from + keep.start));
                strings.data.drain(start as usize..first as usize);
                strings.ends.drain(from..from + keep.start);
                for end in &mut strings.ends[from..] {
                    *end -= first - start;
                }
            },
            (width, data) => {
                data.truncate((from + keep.end) * *width);
                data.drain(from * *width..(from + keep.start) * *width);
            }
        );
    }

    /// The plain values, in the types that pages store: codes are rendered, other values are already plain.
    pub(crate) fn plain(&self, leaf: &Leaf) -> Cow<'_, Self> {
        let strings = |render: &mut dyn FnMut(usize, &mut Vec<u8>)| {
            let mut out = ByteStrings::default();
            for i in 0..self.len() {
                render(i, &mut out.data);
                out.push_end();
            }
            ValueBuffer::Bytes(out)
        };
        Cow::Owned(match self {
            ValueBuffer::Names(codes) => strings(&mut |i, out| person_name::render(codes[i], out)),
            ValueBuffer::Ids(ids) => match leaf.template() {
                Some(template) => strings(&mut |i, out| template.render(ids[i], out)),
                None => ValueBuffer::Bytes(ByteStrings::default()),
            },
            ValueBuffer::Rows { seed, rows } => match leaf.key() {
                Some(ReferencedKey::Uuid(key)) if leaf.physical != Physical::Bytes => {
                    let data = rows.iter().flat_map(|row| key.uuid(*seed, *row)).collect();
                    ValueBuffer::Fixed { width: 16, data }
                }
                Some(key) => texts_of(key, *seed, rows),
                None => ValueBuffer::Bytes(ByteStrings::default()),
            },
            ValueBuffer::Indices(indices) => {
                let entries = leaf.dictionary();
                let entry = |i: &u32| entries[*i as usize].as_slice();
                // Entries of these types have a fixed width.
                let four = |i: &u32| entry(i).try_into().unwrap_or_default();
                let eight = |i: &u32| entry(i).try_into().unwrap_or_default();
                let each = indices.iter();
                match leaf.physical {
                    Physical::Boolean => ValueBuffer::Booleans(each.map(|i| entry(i)[0]).collect()),
                    Physical::Int32 => ValueBuffer::Int32(each.map(four).map(i32::from_le_bytes).collect()),
                    Physical::Int64 => ValueBuffer::Int64(each.map(eight).map(i64::from_le_bytes).collect()),
                    Physical::Float => ValueBuffer::Float(each.map(four).map(f32::from_le_bytes).collect()),
                    Physical::Double => {
                        ValueBuffer::Double(each.map(eight).map(f64::from_le_bytes).collect())
                    }
                    Physical::Bytes => {
                        let mut out = ByteStrings::default();
                        out.data.reserve_exact(each.clone().map(|i| entry(i).len()).sum());
                        each.for_each(|i| {
                            out.data.extend_from_slice(entry(i));
                            out.push_end();
                        });
                        ValueBuffer::Bytes(out)
                    }
                    Physical::Int96 | Physical::Fixed(_) => {
                        let width = leaf.physical.width().unwrap_or(1);
                        let mut data = Vec::with_capacity(indices.len() * width);
                        each.for_each(|i| data.extend_from_slice(entry(i)));
                        ValueBuffer::Fixed { width, data }
                    }
                }
            }
            ValueBuffer::Int64(v) if leaf.physical == Physical::Int96 => {
                ValueBuffer::Fixed { width: 12, data: v.iter().flat_map(|n| int96(*n)).collect() }
            }
            plain => return Cow::Borrowed(plain),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_in_the_middle_are_kept() {
        let mut strings = ByteStrings::default();
        for text in ["one", "two", "", "three", "four"] {
            strings.data.extend_from_slice(text.as_bytes());
            strings.push_end();
        }
        let mut buffer = ValueBuffer::Bytes(strings);
        buffer.retain(1, 1..3);
        let ValueBuffer::Bytes(strings) = &buffer else { unreachable!() };
        assert_eq!(strings.iter().collect::<Vec<_>>(), [b"one".as_slice(), b"", b"three"]);
        buffer.retain(0, 3..3);
        assert_eq!(buffer.len(), 0);
    }
}
