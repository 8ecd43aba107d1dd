//! The quick walk over a column chunk in the form that writers usually produce: fields in ascending order, of
//! the format's types, in short varints.
//!
//! It knows which field comes next and finds the end of a varint in one step, whatever its length, where the
//! walk in [`crate::decode::scan`] asks byte by byte. Anything else in the chunk, from a file path to
//! encryption, leaves it to that walk, which also reports faults. Both walks decode a chunk to the same row.

use crate::chunk::rows::{
    Chunk, HAS_DICTIONARY, Packed, STATISTICS_NONE, TraitTable, Traits, locator, narrow_distance,
    statistics_place,
};
use crate::decode::tails::Tails;
use crate::memory::word_hasher::WordHasher;
use crate::schema::enums::EncodingSet;
use crate::thrift::cursor::{BINARY, FALSE, I32, I64, LIST, STOP, STRUCT, TRUE};
use crate::thrift::varint::{TOP_BITS, integer, unsigned, word};

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

/// Walks the chunk at `at` and finds its kind; `None` if only the other walk can tell.
#[inline(always)]
pub(crate) fn column_chunk(bytes: &[u8], at: usize) -> Option<Usual> {
    let mut reader = Reader::<true> { bytes, at, kind: 0 };
    let front = reader.front()?;
    let mut chunk = front.chunk(at);
    chunk.statistics = reader.tail(at, &front)?;
    Some(Usual { chunk, end: reader.at, kind: reader.kind })
}

/// Walks the chunk at `at`, one of many, and returns its row and its end; `None` if only the other walk can tell.
///
/// Where it pays, compares the fields after the numbers with earlier chunks instead of walking them. `column` is the
/// chunk's column number, or 0 if columns share what they learn.
#[inline(always)]
pub(crate) fn row(
    bytes: &[u8],
    at: usize,
    column: u64,
    tails: &mut Tails,
    traits: &mut TraitTable,
) -> Option<(Packed, usize)> {
    let mut reader = Reader::<false> { bytes, at, kind: 0 };
    let front = reader.front()?;
    let Front { key, data, dictionary, compressed, uncompressed, num_values, .. } = front;
    let (mut id, mut statistics) = (front.id, STATISTICS_NONE);
    // Text bounds have any length.
    if front.is_byte_array() && reader.next_is(id, 12, STRUCT)? {
        statistics = reader.statistics_place(at)?;
        reader.statistics(true)?;
        id = 12;
    }
    let start = reader.at;
    match tails.len_of(bytes, start, id, key, column) {
        Ok(len) => {
            if reader.next_is(id, 12, STRUCT)? {
                statistics = reader.statistics_place(at)?;
            }
            reader.at = start + len;
        }
        Err(place) => {
            if let Some(there) = reader.rest_of_meta_data(at, id, front.is_byte_array())? {
                statistics = there;
            }
            reader.skip_index_fields()?;
            tails.learn(bytes, start..reader.at, id, place);
        }
    }
    let distance = if states_dictionary(key) { data.wrapping_sub(dictionary) } else { 0 };
    let narrow = (compressed | uncompressed | num_values) >> 32 == 0;
    let distance = narrow_distance(distance as i64)?;
    let place = tails.traits_of(key, || traits.place(front.traits()))?;
    let row =
        [data, compressed | uncompressed << 32, num_values | distance << 32, locator(at, place, statistics)];
    narrow.then_some((row, reader.at))
}

/// Where the page indexes of a chunk are: offset and length of the offset index, then of the column index; and
/// which of them the chunk states, as bits.
pub(crate) type IndexFields = ([i64; 4], u8);

/// Like [`column_chunk`], but finds the locations of the chunk's page indexes.
#[inline(always)]
pub(crate) fn page_indexes(bytes: &[u8], at: usize) -> Option<IndexFields> {
    let mut reader = Reader::<false> { bytes, at, kind: 0 };
    let front = reader.front()?;
    reader.rest_of_meta_data(at, front.id, front.is_byte_array())?;
    reader.index_fields()
}

/// Like [`page_indexes`], for a decoded chunk at `at` whose statistics start `statistics` bytes later: skips the fields
/// before them.
#[inline(always)]
pub(crate) fn page_indexes_after(bytes: &[u8], at: usize, statistics: usize) -> Option<IndexFields> {
    let mut reader = Reader::<false> { bytes, at, kind: 0 };
    // No field of the chunk but its file offset comes before its metadata.
    reader.expect(0x26)?;
    reader.skip_varint()?;
    reader.expect(0x1c)?;
    reader.at = at + statistics;
    reader.statistics(true)?;
    reader.rest_of_meta_data(at, 12, true)?;
    reader.index_fields()
}

/// The number that a varint of one byte encodes.
#[inline(always)]
fn signed(number: u8) -> i32 {
    i32::from(number >> 1) ^ -i32::from(number & 1)
}

/// Room for a codec, five numbers with their headers and an empty list, plus a word.
const NUMBERS: usize = 56;

/// Reads the number of up to seven bytes after this header. Sets the lowest bit of `negative` if the number is
/// negative.
#[inline(always)]
fn number(window: &[u8; NUMBERS], at: &mut usize, header: u8, negative: &mut u64) -> Option<u64> {
    let word = word(window, *at)?;
    if word as u8 != header {
        return None;
    }
    // The word's last byte lies behind the number: its top bit is set, so that it cannot end the number.
    let word = word >> 8 | 0x80 << 56;
    *negative |= word;
    let (value, len) = unsigned(word)?;
    *at += 1 + len;
    Some(value >> 1)
}

/// The part of a chunk before its statistics.
#[derive(Clone, Copy)]
struct Front {
    /// Everything that decides the chunk's traits: see [`Front::traits`].
    key: u64,
    num_values: u64,
    uncompressed: u64,
    compressed: u64,
    data: u64,
    dictionary: u64,
    /// The id of the last field.
    id: u8,
}

/// Set in the key of a chunk that states where its dictionary page is.
const DICTIONARY: u64 = 1 << 63;

fn states_dictionary(key: u64) -> bool {
    key & DICTIONARY != 0
}

impl Front {
    #[inline(always)]
    fn is_byte_array(&self) -> bool {
        signed(self.key as u8) == BYTE_ARRAY
    }

    /// The traits, from a key of the type, the header of the list of encodings, up to four of these, and the codec.
    fn traits(&self) -> Traits {
        let [physical_type, _, header, encodings @ .., codec] = self.key.to_le_bytes();
        let encodings = encodings.into_iter().take(usize::from(header >> 4));
        Traits {
            physical_type: signed(physical_type),
            codec: signed(codec & 0x7f),
            encodings: encodings.fold(EncodingSet::default(), |set, encoding| set.with(signed(encoding))),
            flags: if states_dictionary(self.key) { HAS_DICTIONARY } else { 0 },
        }
    }

    /// The chunk at `at`, without the place of its statistics.
    fn chunk(&self, at: usize) -> Chunk {
        Chunk {
            // A footer's length has 32 bits, as `Footer::decode` has checked.
            at: at as u32,
            traits: self.traits(),
            data_page_offset: self.data as i64,
            dictionary_page_offset: self.dictionary as i64,
            compressed: self.compressed as i64,
            uncompressed: self.uncompressed as i64,
            num_values: self.num_values as i64,
            statistics: STATISTICS_NONE,
        }
    }
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

    /// Walks the chunk up to the fields after its page offsets.
    #[inline(always)]
    fn front(&mut self) -> Option<Front> {
        // Most writers leave the file offset 0.
        if self.word()? & 0xffff_ffff == 0x151c_0026 {
            self.at += 4;
            self.mix(1);
        } else {
            self.expect(0x26)?;
            let file_offset = self.integer()?;
            self.mix((file_offset == 0).into());
            self.expect(0x1c)?;
            self.expect(0x15)?;
        }
        // The type, and the list's header, length and elements.
        let word = self.word()?;
        let count = (word >> 20 & 15) as u32;
        if word & 0x0f_ff80 != u64::from(I32) << 16 | 0x1900 || count > 4 {
            return None;
        }
        let key = word & u64::MAX >> (40 - 8 * count);
        self.at += 3 + count as usize;
        // Newer writers may leave out the path in the schema.
        let has_path = *self.bytes.get(self.at)? == 0x19;
        if has_path {
            self.at += 1;
            for _ in 0..self.list_of(BINARY)? {
                self.skip_binary()?;
            }
        }
        if key & TOP_BITS != 0 {
            return None;
        }
        self.numbers(key, if has_path { 0x15 } else { 0x25 })
    }

    /// Walks the metadata from the codec, which has this header, to the offsets of the pages.
    #[inline(always)]
    fn numbers(&mut self, mut key: u64, header: u64) -> Option<Front> {
        let window = self.bytes.get(self.at..)?.first_chunk::<NUMBERS>()?;
        let first = word(window, 0)?;
        if first & 0x80ff != header {
            return None;
        }
        key |= (first & 0x7f00) << 48;
        let (mut at, mut negative) = (2, 0);
        let num_values = number(window, &mut at, 0x16, &mut negative)?;
        let uncompressed = number(window, &mut at, 0x16, &mut negative)?;
        let compressed = number(window, &mut at, 0x16, &mut negative)?;
        // Some writers leave an empty list of key-value metadata.
        let mut header = 2 << 4 | I64;
        if word(window, at)? & 0xffff == 0x0019 {
            (at, header) = (at + 2, 0x16);
            self.mix(0);
        }
        let data = number(window, &mut at, header, &mut negative)?;
        let (mut id, mut dictionary) = (9, 0);
        if *window.get(at)? == 2 << 4 | I64 {
            dictionary = number(window, &mut at, 2 << 4 | I64, &mut negative)?;
            (id, key) = (11, key | DICTIONARY);
        }
        self.at += at;
        self.mix(key);
        (negative & 1 == 0).then_some(Front {
            key,
            num_values,
            uncompressed,
            compressed,
            data,
            dictionary,
            id,
        })
    }

    /// Walks the fields after the ones that [`Reader::front`] reads in a chunk at `start`; returns the place of the
    /// statistics.
    #[inline(always)]
    fn tail(&mut self, start: usize, front: &Front) -> Option<u16> {
        let statistics = self.rest_of_meta_data(start, front.id, front.is_byte_array())?;
        self.skip_index_fields()?;
        Some(statistics.unwrap_or(STATISTICS_NONE))
    }

    /// Whether the next field, after `last`, has this id and type.
    #[inline(always)]
    fn next_is(&self, last: u8, id: u8, wire: u8) -> Option<bool> {
        Some(last < id && *self.bytes.get(self.at)? == (id - last) << 4 | wire)
    }

    /// Walks the header of the statistics of a chunk at `start`, and returns their place.
    #[inline(always)]
    fn statistics_place(&mut self, start: usize) -> Option<u16> {
        self.common()?;
        Some(statistics_place(self.at - start))
    }

    /// Walks the fields of the metadata after `id`, and returns the place of the statistics, if they are there, in a
    /// chunk at `start`. Headers are compared one by one in the order of the fields, because
    /// the processor seldom guesses the target of a jump through a table.
    #[inline(always)]
    fn rest_of_meta_data(&mut self, start: usize, mut id: u8, byte_array: bool) -> Option<Option<u16>> {
        let mut statistics = None;
        if self.next_is(id, 12, STRUCT)? {
            statistics = Some(self.statistics_place(start)?);
            self.statistics(byte_array)?;
            id = 12;
        }
        let mut header = self.common()?;
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
        Some(statistics)
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

    use crate::chunk::rows::{self, STATISTICS_NONE, STATISTICS_UNKNOWN, TraitTable};
    use crate::decode::tails::Tails;
    use crate::decode::{scan, usual};
    use crate::synthetic::{SyntheticColumns, SyntheticFooter};
    use crate::thrift::cursor::Cursor;

    /// Compares the walks at every offset, as if a chunk started there; returns how many the quick one
    /// decoded.
    fn agreements(bytes: &[u8]) -> usize {
        let (mut decoded, mut tails, mut traits) = (0, Tails::default(), TraitTable::default());
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
                let packed = rows::pack(&quick.chunk, traits.place(quick.chunk.traits));
                for _ in 0..2 {
                    let row = usual::row(bytes, at, 0, &mut tails, &mut traits);
                    assert_eq!(row, packed.map(|row| (row, quick.end)), "at {at}");
                }
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
