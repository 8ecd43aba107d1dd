//! The quick walk over a column chunk in the form that writers usually produce: fields in ascending order, of
//! the format's types, in short varints.
//!
//! It knows which field comes next and finds the end of a varint in one step, whatever its length, where the
//! walk in [`crate::decode::scan`] asks byte by byte. Anything else in the chunk, from a file path to
//! encryption, leaves it to that walk, which also reports faults. Both walks decode a chunk to the same row.

use crate::chunk::rows::{Chunk, HAS_DICTIONARY, STATISTICS_NONE, statistics_place};
use crate::memory::word_hasher::WordHasher;
use crate::schema::enums::EncodingSet;
use crate::thrift::cursor::{BINARY, FALSE, I32, I64, LIST, STOP, STRUCT, TRUE};
use crate::thrift::varint::{TOP_BITS, integer};

/// A chunk that the quick walk decoded.
#[derive(Clone, Copy, Default)]
pub(crate) struct Usual {
    pub chunk: Chunk,
    pub end: usize,
    /// A hash of all bytes that the chunk has in common with others of its shape.
    pub kind: u64,
}

/// More fields than the format has; ids stay far below those that overflow.
const LAST_ID: u8 = 100;

/// The number of the physical type BYTE_ARRAY.
const BYTE_ARRAY: i32 = 6;

/// The number of the page type "dictionary page".
const DICTIONARY_PAGE: i32 = 2;

/// Walks the chunk at `at`; `None` if only the other walk can tell.
#[inline(always)]
pub(crate) fn column_chunk(bytes: &[u8], at: usize) -> Option<Usual> {
    column_chunks::<true, 1>(bytes, [at]).map(|[found]| found)
}

/// Walks several chunks step by step, so that the processor works on one while it waits for another's bytes;
/// `None` if only the other walk can tell one of them. Finds their kinds if `KIND`.
#[inline(always)]
pub(crate) fn column_chunks<const KIND: bool, const N: usize>(
    bytes: &[u8],
    at: [usize; N],
) -> Option<[Usual; N]> {
    let (mut at, mut kinds, mut found) = (at, [0; N], [Usual::default(); N]);
    // Copied for each step, so that it is in registers.
    macro_rules! step {
        ($lane:ident, $reader:ident, $chunk:ident, $step:expr) => {
            for $lane in 0..N {
                let mut $reader = Reader::<KIND> { bytes, at: at[$lane], kind: kinds[$lane] };
                let $chunk = &mut found[$lane].chunk;
                $step;
                (at[$lane], kinds[$lane]) = ($reader.at, $reader.kind);
            }
        };
    }
    step!(lane, reader, chunk, reader.opening(chunk)?);
    step!(lane, reader, chunk, reader.numbers(chunk)?);
    step!(lane, reader, chunk, reader.rest_of_meta_data(chunk, 9)?);
    step!(lane, reader, _chunk, reader.skip_index_fields()?);
    for lane in 0..N {
        (found[lane].end, found[lane].kind) = (at[lane], kinds[lane]);
    }
    Some(found)
}

/// Where the page indexes of a chunk are: offset and length of the offset index, then of the column index; and
/// which of them the chunk states, as bits.
pub(crate) type IndexFields = ([i64; 4], u8);

/// Like [`column_chunk`] for the locations of the chunk's page indexes.
#[inline(always)]
pub(crate) fn page_indexes(bytes: &[u8], at: usize) -> Option<IndexFields> {
    let mut reader = Reader::<false> { bytes, at, kind: 0 };
    let mut chunk = Chunk::default();
    reader.opening(&mut chunk)?;
    reader.numbers(&mut chunk)?;
    reader.rest_of_meta_data(&mut chunk, 9)?;
    reader.index_fields()
}

/// Like [`page_indexes`] for a decoded chunk at `at` whose statistics start `statistics` bytes later: what is
/// before them need not be walked again.
#[inline(always)]
pub(crate) fn page_indexes_after(bytes: &[u8], at: usize, statistics: usize) -> Option<IndexFields> {
    let mut reader = Reader::<false> { bytes, at, kind: 0 };
    // No field of the chunk but its file offset comes before its metadata.
    reader.expect(0x26)?;
    reader.skip_varint()?;
    reader.expect(0x1c)?;
    reader.at = at + statistics;
    reader.statistics(true)?;
    reader.rest_of_meta_data(&mut Chunk::default(), 12)?;
    reader.index_fields()
}

/// The number that a varint of one byte encodes.
#[inline(always)]
fn signed(number: u8) -> i32 {
    i32::from(number >> 1) ^ -i32::from(number & 1)
}

/// A place in the bytes, and the kind of the chunk so far if `KIND`.
struct Reader<'a, const KIND: bool> {
    bytes: &'a [u8],
    at: usize,
    kind: u64,
}

impl<const KIND: bool> Reader<'_, KIND> {
    #[inline(always)]
    fn mix(&mut self, value: u64) {
        if KIND {
            self.kind = WordHasher::mixed(self.kind, value);
        }
    }

    #[inline(always)]
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// A number of one byte that chunks of one shape have in common, as it is stored.
    #[inline(always)]
    fn common(&mut self) -> Option<u8> {
        let byte = self.byte().filter(|&byte| byte < 0x80)?;
        self.mix(byte.into());
        Some(byte)
    }

    #[inline(always)]
    fn expect(&mut self, expected: u8) -> Option<()> {
        (self.byte()? == expected).then_some(())
    }

    #[inline(always)]
    fn word(&self) -> Option<u64> {
        Some(u64::from_le_bytes(*self.bytes.get(self.at..)?.first_chunk()?))
    }

    /// Skips a number of up to eight bytes, usually one.
    #[inline(always)]
    fn skip_varint(&mut self) -> Option<()> {
        if *self.bytes.get(self.at)? < 0x80 {
            self.at += 1;
            return Some(());
        }
        let stops = !self.word()? & TOP_BITS;
        self.at += stops.trailing_zeros() as usize / 8 + 1;
        (stops != 0).then_some(())
    }

    #[inline(always)]
    fn integer(&mut self) -> Option<i64> {
        let (value, len) = integer(self.word()?)?;
        self.at += len;
        Some(value)
    }

    #[inline(always)]
    fn size(&mut self) -> Option<i64> {
        self.integer().filter(|&value| value >= 0)
    }

    /// Skips bytes after their length, of one or two bytes, and returns the length.
    #[inline(always)]
    fn skip_binary(&mut self) -> Option<usize> {
        let mut len = usize::from(self.byte()?);
        if len >= 0x80 {
            let high = self.byte().filter(|&high| high < 0x80)?;
            len = len & 0x7f | usize::from(high) << 7;
            self.mix(1);
        }
        self.at += len;
        Some(len)
    }

    /// The type of the next field, whose id replaces `id`.
    #[inline(always)]
    fn field(&mut self, id: &mut u8) -> Option<u8> {
        let header = self.common()?;
        if header == STOP {
            return Some(STOP);
        }
        *id += header >> 4;
        // A header without a delta has the id in the next bytes.
        (header >= 0x10 && *id <= LAST_ID).then_some(header & 0x0f)
    }

    /// The number of elements of a list of this type.
    #[inline(always)]
    fn list_of(&mut self, wire: u8) -> Option<u8> {
        let header = self.common()?;
        // Fifteen marks a longer list, whose length follows.
        (header & 0x0f == wire && header >> 4 != 15).then_some(header >> 4)
    }

    /// Walks the chunk up to the end of the list of encodings.
    #[inline(always)]
    fn opening(&mut self, chunk: &mut Chunk) -> Option<()> {
        // A footer's length has 32 bits, as `Footer::decode` has checked.
        *chunk = Chunk { at: self.at as u32, statistics: STATISTICS_NONE, ..Chunk::default() };
        // Most writers leave the file offset 0: the bytes up to the length of the list then have one place.
        if self.word()? & 0xff80_ffff_ffff == 0x1900_151c_0026 {
            self.at += 4;
            self.mix(1);
        } else {
            self.expect(0x26)?;
            let file_offset = self.integer()?;
            self.mix((file_offset == 0).into());
            self.expect(0x1c)?;
            self.expect(0x15)?;
        }
        chunk.traits.physical_type = signed(self.common()?);
        self.expect(0x19)?;
        let mut encodings = EncodingSet::default();
        for _ in 0..self.list_of(I32)? {
            encodings = encodings.with(signed(self.common()?));
        }
        chunk.traits.encodings = encodings;
        Some(())
    }

    /// Walks the metadata from the path to the offset of the data pages.
    #[inline(always)]
    fn numbers(&mut self, chunk: &mut Chunk) -> Option<()> {
        // Newer writers may leave out the path in the schema.
        match self.common()? {
            0x19 => {
                for _ in 0..self.list_of(BINARY)? {
                    self.skip_binary()?;
                }
                self.expect(0x15)?;
            }
            0x25 => {}
            _ => return None,
        }
        chunk.traits.codec = signed(self.common()?);
        self.expect(0x16)?;
        chunk.num_values = self.size()?;
        self.expect(0x16)?;
        chunk.uncompressed = self.size()?;
        self.expect(0x16)?;
        chunk.compressed = self.size()?;
        // Some writers leave an empty list of key-value metadata.
        match self.common()? {
            0x26 => {}
            0x19 => {
                self.expect(0)?;
                self.expect(0x16)?;
            }
            _ => return None,
        }
        chunk.data_page_offset = self.size()?;
        Some(())
    }

    /// Walks the fields of the metadata after `id`. Headers are compared one by one in the order of the fields, because
    /// the processor seldom guesses the target of a jump through a table.
    #[inline(always)]
    fn rest_of_meta_data(&mut self, chunk: &mut Chunk, mut id: u8) -> Option<()> {
        let mut header = self.common()?;
        if id == 9 && header == 2 << 4 | I64 {
            chunk.dictionary_page_offset = self.integer()?;
            chunk.traits.flags |= HAS_DICTIONARY;
            (id, header) = (11, self.common()?);
        }
        if id < 12 && header == (12 - id) << 4 | STRUCT {
            chunk.statistics = statistics_place(self.at - chunk.at as usize);
            self.statistics(chunk.traits.physical_type == BYTE_ARRAY)?;
            (id, header) = (12, self.common()?);
        }
        if id < 13 && header == (13 - id) << 4 | LIST {
            self.encoding_stats()?;
            (id, header) = (13, self.common()?);
        }
        while header != STOP {
            // A header without a delta has the id in the next bytes.
            if header < 0x10 || header >> 4 > 16 - id {
                return None;
            }
            id += header >> 4;
            let wire = header & 0x0f;
            if wire == STRUCT && id == 16 {
                self.size_statistics()?;
            } else if (wire == I64 || wire == I32) && matches!(id, 10 | 14 | 15) {
                self.skip_varint()?;
            } else {
                return None;
            }
            header = self.common()?;
        }
        Some(())
    }

    /// Walks the fields after the metadata.
    #[inline(always)]
    fn skip_index_fields(&mut self) -> Option<()> {
        let mut id = 3;
        loop {
            match self.field(&mut id)? {
                STOP => return Some(()),
                I32 | I64 if id < 8 => self.skip_varint()?,
                _ => return None,
            }
        }
    }

    /// The fields after the metadata.
    #[inline(always)]
    fn index_fields(&mut self) -> Option<IndexFields> {
        let (mut values, mut stated, mut id) = ([0; 4], 0, 3);
        loop {
            match (self.field(&mut id)?, id) {
                (STOP, _) => return Some((values, stated)),
                (I64, 4 | 6) | (I32, 5 | 7) => {
                    let place = usize::from(id - 4);
                    values[place] = self.integer()?;
                    stated |= 1 << place;
                }
                _ => return None,
            }
        }
    }

    #[inline(always)]
    fn statistics(&mut self, any_length: bool) -> Option<()> {
        let mut id = 0_u64;
        loop {
            let header = self.common()?;
            if header == STOP {
                return (id <= LAST_ID.into()).then_some(());
            }
            id += u64::from(header >> 4);
            let wire = header & 0x0f;
            if header < 0x10 {
                return None;
            } else if wire == BINARY {
                let len = self.skip_binary()?;
                // Bounds of fixed-width types have one length.
                self.mix(if any_length { 0 } else { len as u64 });
            } else if wire == I64 {
                self.skip_varint()?;
            } else if wire != TRUE && wire != FALSE {
                return None;
            }
        }
    }

    #[inline(always)]
    fn encoding_stats(&mut self) -> Option<()> {
        for _ in 0..self.list_of(STRUCT)? {
            let (page_type, encoding, count) = self.page_encoding_stats()?;
            self.mix((page_type << 8 | encoding) as u64);
            self.mix((page_type == DICTIONARY_PAGE && count == 1).into());
        }
        Some(())
    }

    /// A page type, an encoding, and the number of such pages, unless it takes more than a byte.
    #[inline(always)]
    fn page_encoding_stats(&mut self) -> Option<(i32, i32, i32)> {
        let word = self.word()?;
        let (page_type, encoding) = (signed((word >> 8) as u8), signed((word >> 24) as u8));
        // Usually each of the three numbers takes one byte.
        if word & 0xff_80ff_80ff_80ff == 0x15_0015_0015 {
            self.at += 7;
            return Some((page_type, encoding, signed((word >> 40) as u8)));
        }
        if word & 0xff_80ff_80ff != 0x15_0015_0015 {
            return None;
        }
        self.at += 5;
        let count = i32::try_from(self.integer()?).ok()?;
        self.expect(STOP)?;
        Some((page_type, encoding, count))
    }

    #[inline(always)]
    fn size_statistics(&mut self) -> Option<()> {
        let mut id = 0;
        loop {
            match self.field(&mut id)? {
                STOP => return Some(()),
                I64 => self.skip_varint()?,
                LIST => {
                    for _ in 0..self.list_of(I64)? {
                        self.skip_varint()?;
                    }
                }
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::chunk::rows::{STATISTICS_NONE, STATISTICS_UNKNOWN};
    use crate::decode::{scan, usual};
    use crate::synthetic::{SyntheticColumns, SyntheticFooter};
    use crate::thrift::cursor::Cursor;

    /// Compares the walks at every offset, as if a chunk started there; returns how many the quick one
    /// decoded.
    fn agreements(bytes: &[u8]) -> usize {
        let (mut decoded, mut first) = (0, None);
        for at in 0..bytes.len() {
            if let Some(quick) = usual::column_chunk(bytes, at) {
                let mut cursor = Cursor::new(bytes, at);
                let slow = scan::column_chunk(&mut cursor);
                assert_eq!(slow.ok(), Some(quick.chunk), "at {at}");
                assert_eq!(cursor.at, quick.end, "at {at}");
                let place = quick.chunk.statistics;
                if place != STATISTICS_UNKNOWN && place != STATISTICS_NONE {
                    let whole = usual::page_indexes(bytes, at);
                    assert_eq!(usual::page_indexes_after(bytes, at, place.into()), whole, "at {at}");
                }
                let other = first.get_or_insert((at, quick.chunk)).to_owned();
                let together = usual::column_chunks::<false, 2>(bytes, [at, other.0]).unwrap();
                assert_eq!(together.map(|found| found.chunk), [quick.chunk, other.1], "at {at}");
                decoded += 1;
            }
        }
        decoded
    }

    #[test]
    fn the_quick_walk_decodes_every_chunk_of_usual_footers() {
        for kind in [SyntheticColumns::Float, SyntheticColumns::Text, SyntheticColumns::Mixed] {
            let bytes = SyntheticFooter { columns: 30, row_groups: 3, kind, seed: 5 }.bytes();
            assert!(agreements(&bytes) >= 90, "{kind:?}");
        }
    }

    proptest! {
        #[test]
        fn what_the_quick_walk_decodes_the_slow_one_decodes_alike(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
            cut in any::<prop::sample::Index>(), seed in 0u64..100,
        ) {
            let kind = SyntheticColumns::Mixed;
            let mut bytes = SyntheticFooter { columns: 6, row_groups: 2, kind, seed }.bytes();
            for (place, byte) in changes {
                let at = place.index(bytes.len());
                bytes[at] = byte;
            }
            agreements(&bytes);
            bytes.truncate(cut.index(bytes.len()));
            agreements(&bytes);
        }
    }
}
