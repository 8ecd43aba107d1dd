//! A column chunk in the making: leaf buffers in, encoded pages and what the footer says of them
//! out.
//!
//! A page's body is encoded where it will stay; its header, whose size depends on the body's, is
//! put right before it, into room left for it. A finished chunk is therefore a list of pieces of
//! one buffer, written with one gathering write.

use std::ops::Range;

use crate::dataset::{Field, Leaf};
use crate::levels::{bit_width, encode, encode_indices};
use crate::logical_type::Physical;
use crate::person_name;
use crate::shred::LeafBuffer;
use crate::statistics::Bounds;
use crate::thrift::structure;
use crate::value_buffer::{PhysicalBuffer, ValueBuffer};

/// Room left for a page header: the longest one written here takes 34 bytes.
const HEADER_ROOM: usize = 40;

/// Encodings (`parquet.thrift`, `Encoding`).
pub(crate) const PLAIN: i32 = 0;
pub(crate) const RLE: i32 = 3;
pub(crate) const RLE_DICTIONARY: i32 = 8;

/// Page types (`parquet.thrift`, `PageType`).
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;

/// One data page, as the page indexes describe it.
#[derive(Debug)]
pub(crate) struct PageSummary {
    /// Header and body.
    pub bytes: usize,
    pub rows: usize,
    pub nulls: u64,
    pub bounds: Option<Bounds>,
    /// Bytes of the strings in it, for byte array columns.
    pub string_bytes: u64,
    /// For each level the entries that have it; empty where the column has no such levels.
    pub definition_histogram: Vec<u64>,
    pub repetition_histogram: Vec<u64>,
}

/// The pages of one column in one row group.
#[derive(Debug, Default)]
pub(crate) struct ColumnChunk {
    buffer: Vec<u8>,
    /// The parts of the buffer that are the chunk, in order.
    pieces: Vec<Range<usize>>,
    /// Bytes of the dictionary page, 0 without one.
    pub dictionary_bytes: usize,
    pub pages: Vec<PageSummary>,
    /// Entries: values and nulls.
    pub entries: u64,
}

impl ColumnChunk {
    /// Empties it for the next row group; its buffer stays.
    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
        self.pieces.clear();
        self.dictionary_bytes = 0;
        self.pages.clear();
        self.entries = 0;
    }

    /// Bytes of all its pages.
    pub(crate) fn bytes(&self) -> usize {
        self.pieces.iter().map(Range::len).sum()
    }

    /// Its bytes, in order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(|piece| &self.buffer[piece.clone()])
    }

    /// Appends the rows of `column` as one page. `repetition` is the encoded block of its
    /// repetition levels and `repetition_histogram` counts them; both are empty without a list.
    pub(crate) fn add_page(
        &mut self,
        field: &Field,
        leaf: &Leaf,
        column: &LeafBuffer,
        rows: usize,
        repetition: &[u8],
        repetition_histogram: &[u64],
    ) {
        if let (ValueBuffer::Indices(_), true) = (&column.values, self.pages.is_empty()) {
            self.dictionary_page(leaf.dictionary(), leaf.physical);
        }
        let body = self.buffer.len() + HEADER_ROOM;
        self.buffer.resize(body, 0);
        self.buffer.extend_from_slice(repetition);
        let max = field.levels.definition;
        let values = column.values.len();
        let entries = if max == 0 { values } else { column.definition.len() };
        if max > 0 {
            level_block(&column.definition, max, &mut self.buffer);
        }
        let (encoding, string_bytes) = values_of(leaf, &column.values, &mut self.buffer);
        let size = self.buffer.len() - body;
        let mut header = Vec::with_capacity(HEADER_ROOM);
        structure(&mut header, |w| {
            w.i32(1, DATA_PAGE);
            w.i32(2, size as i32);
            w.i32(3, size as i32);
            w.structure(5, |w| {
                w.i32(1, entries as i32);
                w.i32(2, encoding);
                w.i32(3, RLE);
                w.i32(4, RLE);
            });
        });
        let piece = self.put_header(&header, body);
        self.entries += entries as u64;
        self.pages.push(PageSummary {
            bytes: piece.len(),
            rows,
            nulls: (entries - values) as u64,
            bounds: Bounds::of(leaf, &column.values),
            string_bytes,
            definition_histogram: if max == 0 { Vec::new() } else { histogram(&column.definition, max) },
            repetition_histogram: repetition_histogram.to_vec(),
        });
        self.pieces.push(piece);
    }

    fn dictionary_page(&mut self, dictionary: &[Vec<u8>], physical: Physical) {
        let body = self.buffer.len() + HEADER_ROOM;
        self.buffer.resize(body, 0);
        for entry in dictionary {
            if physical == Physical::Bytes {
                self.buffer.extend_from_slice(&(entry.len() as u32).to_le_bytes());
            }
            self.buffer.extend_from_slice(entry);
        }
        let size = self.buffer.len() - body;
        let mut header = Vec::with_capacity(HEADER_ROOM);
        structure(&mut header, |w| {
            w.i32(1, DICTIONARY_PAGE);
            w.i32(2, size as i32);
            w.i32(3, size as i32);
            w.structure(7, |w| {
                w.i32(1, dictionary.len() as i32);
                w.i32(2, PLAIN);
            });
        });
        let piece = self.put_header(&header, body);
        self.dictionary_bytes = piece.len();
        self.pieces.push(piece);
    }

    /// Puts a header into the room before `body` and returns where the page lies.
    fn put_header(&mut self, header: &[u8], body: usize) -> Range<usize> {
        let start = body - header.len();
        self.buffer[start..body].copy_from_slice(header);
        start..self.buffer.len()
    }
}

/// Appends levels from 0 to `max` as a version 1 data page has them: the length of the encoded run
/// in four bytes, then the run.
pub(crate) fn level_block(levels: &[u8], max: u8, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    encode(levels, bit_width(max.into()), out);
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// For each level from 0 to `max` the entries that have it.
pub(crate) fn histogram(levels: &[u8], max: u8) -> Vec<u64> {
    // One pass a level over bytes, which is many times faster than one pass of counting by index.
    let count = |level: u8| {
        let in_piece = |piece: &[u8]| u64::from(piece.iter().map(|l| u8::from(*l == level)).sum::<u8>());
        levels.chunks(255).map(in_piece).sum()
    };
    (0..=max).map(count).collect()
}

/// Appends values and returns their encoding and the bytes of strings among them.
fn values_of(leaf: &Leaf, buffer: &ValueBuffer, out: &mut Vec<u8>) -> (i32, u64) {
    /// Appends numbers as little-endian bytes.
    fn numbers<T: Copy, const N: usize>(values: &[T], bytes: impl Fn(T) -> [u8; N], out: &mut Vec<u8>) {
        let at = out.len();
        out.resize(at + values.len() * N, 0);
        for (value, place) in values.iter().zip(out[at..].chunks_exact_mut(N)) {
            place.copy_from_slice(&bytes(*value));
        }
    }
    match buffer {
        ValueBuffer::Names(codes) => (PLAIN, person_name::render_plain(codes, out) as u64),
        ValueBuffer::Ids(ids) => {
            (PLAIN, leaf.template().map_or(0, |template| template.render_plain(ids, out)) as u64)
        }
        ValueBuffer::Indices(indices) => {
            let entries = leaf.dictionary();
            let most = entries.len().saturating_sub(1) as u32;
            encode_indices(indices, bit_width(most), out);
            let bytes = match leaf.physical {
                Physical::Bytes if entries.len() <= indices.len() => {
                    let mut counts = vec![0u64; entries.len()];
                    for index in indices {
                        counts[*index as usize] += 1;
                    }
                    counts.iter().zip(entries).map(|(n, e)| n * e.len() as u64).sum()
                }
                Physical::Bytes => indices.iter().map(|i| entries[*i as usize].len() as u64).sum(),
                _ => 0,
            };
            (RLE_DICTIONARY, bytes)
        }
        ValueBuffer::Booleans(values) => {
            // PLAIN booleans are bits, the first value lowest.
            let byte = |bits: &[u8]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit);
            out.extend(values.chunks(8).map(byte));
            (PLAIN, 0)
        }
        ValueBuffer::Int64(_) if leaf.physical == Physical::Int96 => {
            if let PhysicalBuffer::Fixed { data, .. } = buffer.materialise(leaf) {
                out.extend_from_slice(&data);
            }
            (PLAIN, 0)
        }
        ValueBuffer::Int32(values) => (numbers(values, i32::to_le_bytes, out), (PLAIN, 0)).1,
        ValueBuffer::Int64(values) => (numbers(values, i64::to_le_bytes, out), (PLAIN, 0)).1,
        ValueBuffer::Float(values) => (numbers(values, f32::to_le_bytes, out), (PLAIN, 0)).1,
        ValueBuffer::Double(values) => (numbers(values, f64::to_le_bytes, out), (PLAIN, 0)).1,
        ValueBuffer::Bytes(strings) => {
            out.reserve(strings.data.len() + 4 * strings.ends.len());
            for text in strings.iter() {
                out.extend_from_slice(&(text.len() as u32).to_le_bytes());
                out.extend_from_slice(text);
            }
            (PLAIN, strings.data.len() as u64)
        }
        ValueBuffer::Fixed { data, .. } => {
            out.extend_from_slice(data);
            (PLAIN, 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_each_level() {
        let levels: Vec<u8> = (0..10_000).map(|i| (i % 7 % 4) as u8).collect();
        let expected: Vec<u64> =
            (0..4).map(|level| levels.iter().filter(|l| **l == level).count() as u64).collect();
        assert_eq!(histogram(&levels, 3), expected);
    }
}
