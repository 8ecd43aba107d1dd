//! Shapes: what the bytes of a column chunk share with its neighbours.
//!
//! A writer produces few kinds of chunk structs. Two of the same kind have the same bytes for headers of
//! fields and lists and for numbers like the codec; integers, bounds and names differ, and with them all
//! positions. A [`Shape`] is learned from one chunk by a scalar walk. It is a sequence of segments: bytes
//! with a mask, then tokens (constant bytes and varints of any length), then optionally bytes to skip, whose
//! number is the last varint. A chunk that matches has the same structure: every byte that steers the walk is
//! compared, so a match and the scalar walk cannot differ. Chunks with anything else (varints over eight
//! bytes, maps, fields out of order) have no shape.

use crate::chunk::rows::{Chunk, HAS_DICTIONARY};
use crate::thrift::cursor::{
    BINARY, BYTE, Cursor, DOUBLE, FALSE, I16, I32, I64, LIST, SET, STOP, STRUCT, Step, TRUE, UUID,
};

/// The bytes that a kernel examines at once: a segment without its skipped bytes fits in.
pub(crate) const WINDOW: usize = 64;

/// A shape with more segments is not worth matching.
const MAX_SEGMENTS: usize = 12;

/// The longest bounds and other constant-length bytes that become part of a segment's masked bytes.
const MAX_PAYLOAD: usize = 32;

/// The values that a match decodes, by lane.
pub(crate) const DATA_PAGE_OFFSET: u8 = 0;
pub(crate) const DICTIONARY_PAGE_OFFSET: u8 = 1;
pub(crate) const COMPRESSED: u8 = 2;
pub(crate) const UNCOMPRESSED: u8 = 3;
pub(crate) const NUM_VALUES: u8 = 4;
/// A varint that is not decoded.
pub(crate) const NO_LANE: u8 = u8::MAX;

/// Constant bytes among the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Constants {
    /// The bit of the first one among the segment's tokens.
    pub token: u64,
    pub bytes: u64,
    pub mask: u64,
}

/// A varint that a lane decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecodedVarint {
    /// Its bit among the segment's tokens.
    pub token: u64,
    pub lane: u8,
}

/// Masked bytes, tokens, bytes to skip.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Segment {
    /// The masked bytes; 0 where the mask is 0.
    pub fixed: [u8; WINDOW],
    pub mask: [u8; WINDOW],
    /// The bit of the first byte after the masked ones; 0 without tokens.
    pub first: u64,
    /// The last token's bit; 0 without tokens.
    pub last_token: u64,
    pub fixed_len: u32,
    pub tokens: u32,
    /// Whether the last varint is the number of bytes to skip. Without tokens, the last masked byte is; its
    /// mask limits it to one byte.
    pub skips: bool,
    /// How many of the shape's constants and decoded varints belong to the segment.
    pub constants: u32,
    pub decoded: u32,
    /// Where the statistics start, if in this segment.
    pub statistics: Mark,
}

/// An offset within a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Not in this segment.
    Absent,
    /// This many bytes after the segment's start, before its tokens.
    Fixed(u32),
    /// At the start of the token with this bit.
    Token(u64),
}

/// See the module's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub segments: Vec<Segment>,
    /// Constants and decoded varints, segment by segment.
    pub constants: Vec<Constants>,
    pub decoded: Vec<DecodedVarint>,
    /// The index of the chunks' traits.
    pub traits: u16,
    pub has_dictionary: bool,
    /// The first masked bytes and their mask, which exclude most chunks of other shapes.
    opening: (u128, u128),
}

impl Shape {
    /// Learns the shape of the chunk at `chunk.at`, which the scalar walk decoded as `chunk` and which ends
    /// before `end`; `None` if chunks like it cannot be matched.
    pub fn learn(bytes: &[u8], chunk: &Chunk, end: usize, traits: u16) -> Option<Self> {
        let mut builder = Builder::new(chunk.traits.physical_type);
        let mut cursor = Cursor::new(bytes, chunk.at as usize);
        let walked = builder.fields(&mut cursor, Within::Chunk, 8).ok()?;
        builder.flush(false);
        let fits = walked.is_some() && cursor.at == end && builder.segments.len() <= MAX_SEGMENTS;
        let has_dictionary = chunk.traits.flags & HAS_DICTIONARY != 0;
        let Builder { segments, constants, decoded, .. } = builder;
        let first = |bytes: &[u8; WINDOW]| bytes.first_chunk().copied().map_or(0, u128::from_le_bytes);
        let opening = segments.first().map_or((0, 0), |start| (first(&start.fixed), first(&start.mask)));
        fits.then_some(Self { segments, constants, decoded, traits, has_dictionary, opening })
    }

    /// Heap memory in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.segments.capacity() * size_of::<Segment>()
            + self.constants.capacity() * size_of::<Constants>()
            + self.decoded.capacity() * size_of::<DecodedVarint>()
    }

    /// Whether a chunk that starts with these bytes may have this shape.
    #[inline]
    pub fn may_open(&self, bytes: [u8; 16]) -> bool {
        (u128::from_le_bytes(bytes) ^ self.opening.0) & self.opening.1 == 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Constant(u8),
    Varint(u8),
}

/// The struct that contains a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Chunk,
    MetaData,
    Statistics,
    EncodingStats,
    Other,
}

#[derive(Default)]
struct Builder {
    segments: Vec<Segment>,
    constants: Vec<Constants>,
    decoded: Vec<DecodedVarint>,
    /// The masked bytes of the open segment.
    fixed: Vec<(u8, u8)>,
    tokens: Vec<Token>,
    /// The most bytes that the open segment's tokens may take, with a margin for longer varints.
    token_bytes: usize,
    physical_type: i32,
    /// Whether the current page encoding statistics describe a dictionary page.
    dictionary_page: bool,
    /// Where the statistics start: the number of masked bytes and tokens of the open segment before them.
    statistics: Option<(usize, usize)>,
}

/// Success, or `None` if the chunk contains something that no shape can express.
type Learned = Step<Option<()>>;

impl Builder {
    fn new(physical_type: i32) -> Self {
        Self { physical_type, ..Self::default() }
    }

    /// Closes the open segment.
    fn flush(&mut self, skips: bool) {
        let fixed = std::mem::take(&mut self.fixed);
        let tokens = std::mem::take(&mut self.tokens);
        self.token_bytes = 0;
        if fixed.is_empty() && tokens.is_empty() {
            return;
        }
        let mut segment = Segment {
            fixed: [0; WINDOW],
            mask: [0; WINDOW],
            first: if tokens.is_empty() { 0 } else { 1 << fixed.len() },
            last_token: tokens.len().checked_sub(1).map_or(0, |last| 1 << last),
            fixed_len: fixed.len() as u32,
            tokens: tokens.len() as u32,
            skips,
            constants: 0,
            decoded: 0,
            statistics: Mark::Absent,
        };
        match self.statistics.take() {
            // The end of this segment is the start of the next.
            Some(mark) if mark == (fixed.len(), tokens.len()) => self.statistics = Some((0, 0)),
            Some((_, token)) if token > 0 => {
                segment.statistics = Mark::Token(1 << token);
            }
            Some((at, _)) => segment.statistics = Mark::Fixed(at as u32),
            None => {}
        }
        for (at, (byte, mask)) in fixed.into_iter().enumerate() {
            (segment.fixed[at], segment.mask[at]) = (byte & mask, mask);
        }
        let (constants, decoded) = (self.constants.len(), self.decoded.len());
        let mut constant_before = false;
        for (index, &token) in tokens.iter().enumerate() {
            match token {
                Token::Constant(byte) => self.constant(byte, 1 << index, constant_before),
                Token::Varint(NO_LANE) => {}
                Token::Varint(lane) => self.decoded.push(DecodedVarint { token: 1 << index, lane }),
            }
            constant_before = matches!(token, Token::Constant(_));
        }
        segment.constants = (self.constants.len() - constants) as u32;
        segment.decoded = (self.decoded.len() - decoded) as u32;
        self.segments.push(segment);
    }

    /// Adds a constant byte, which may follow another one.
    fn constant(&mut self, byte: u8, token: u64, follows: bool) {
        match self.constants.last_mut().filter(|last| follows && last.mask != u64::MAX) {
            Some(last) => {
                let at = last.mask.count_ones();
                last.bytes |= u64::from(byte) << at;
                last.mask |= 0xff << at;
            }
            None => self.constants.push(Constants { token, bytes: byte.into(), mask: 0xff }),
        }
    }

    /// Makes room for `more` masked bytes or tokens, closing the open segment if it is full.
    fn room(&mut self, more: usize) {
        if self.fixed.len() + self.token_bytes + more > WINDOW {
            self.flush(false);
        }
    }

    fn constants(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.room(1);
            if byte >= 0x80 && !self.tokens.is_empty() {
                self.flush(false);
            }
            if self.tokens.is_empty() {
                self.fixed.push((byte, 0xff));
            } else {
                self.tokens.push(Token::Constant(byte));
                self.token_bytes += 1;
            }
        }
    }

    fn varint(&mut self, bytes: &[u8], lane: u8) -> Option<()> {
        if bytes.len() > 8 {
            return None;
        }
        self.room(bytes.len() + 1);
        self.tokens.push(Token::Varint(lane));
        self.token_bytes += bytes.len() + 1;
        Some(())
    }

    /// Adds bytes of constant length and any value.
    fn payload(&mut self, len: usize) {
        if !self.tokens.is_empty() {
            self.flush(false);
        }
        for _ in 0..len {
            self.room(1);
            self.fixed.push((0, 0));
        }
    }

    /// Adds bytes whose length is the preceding varint, of one or two bytes.
    fn skipped(&mut self, length: &[u8]) -> Option<()> {
        self.room(1);
        if self.tokens.is_empty() && length.len() == 1 {
            self.fixed.push((0, 0x80));
            self.flush(true);
            return Some(());
        }
        if length.len() > 2 {
            return None;
        }
        self.varint(length, NO_LANE)?;
        self.flush(true);
        Some(())
    }

    fn fields(&mut self, cursor: &mut Cursor<'_>, within: Within, depth: u32) -> Learned {
        let mut last = 0;
        loop {
            let (start, before) = (cursor.at, last);
            let field = cursor.field(&mut last)?;
            self.constants(&cursor.bytes[start..cursor.at]);
            if field.wire == STOP {
                return Ok(Some(()));
            }
            // A field that is repeated or out of order is not worth a shape.
            if field.id <= before || depth == 0 {
                return Ok(None);
            }
            if self.value(cursor, within, field.id, field.wire, depth)?.is_none() {
                return Ok(None);
            }
        }
    }

    fn value(&mut self, cursor: &mut Cursor<'_>, within: Within, id: i16, wire: u8, depth: u32) -> Learned {
        let start = cursor.at;
        match wire {
            TRUE | FALSE => Ok(Some(())),
            BYTE | DOUBLE | UUID => {
                cursor.skip(wire)?;
                self.payload(cursor.at - start);
                Ok(Some(()))
            }
            I16 | I32 | I64 => {
                let value = cursor.integer()?;
                Ok(self.integer(&cursor.bytes[start..cursor.at], value, within, id, wire))
            }
            BINARY => {
                let value = cursor.binary()?;
                let length = &cursor.bytes[start..cursor.at - value.len()];
                // Bounds of fixed-width types have one length; byte arrays (6) and names have any length.
                let steady = within == Within::Statistics && self.physical_type != 6;
                if steady && value.len() <= MAX_PAYLOAD {
                    self.constants(length);
                    self.payload(value.len());
                    return Ok(Some(()));
                }
                Ok(self.skipped(length))
            }
            STRUCT => {
                let inner = match (within, id) {
                    (Within::Chunk, 3) => Within::MetaData,
                    (Within::MetaData, 12) => Within::Statistics,
                    _ => Within::Other,
                };
                if inner == Within::Statistics {
                    self.statistics = Some((self.fixed.len(), self.tokens.len()));
                }
                self.fields(cursor, inner, depth - 1)
            }
            LIST | SET => self.list(cursor, within, id, wire, depth),
            _ => Ok(None),
        }
    }

    fn integer(&mut self, bytes: &[u8], value: i64, within: Within, id: i16, wire: u8) -> Option<()> {
        let lane = match (within, id, wire) {
            // Fields that make up the traits, and fields that seldom change.
            (Within::MetaData, 1 | 2 | 4, _) | (Within::EncodingStats, 1 | 2, _) => {
                if within == Within::EncodingStats && id == 1 {
                    self.dictionary_page = value == 2;
                }
                self.constants(bytes);
                return Some(());
            }
            // Fields with one usual value: no offset, one dictionary page.
            (Within::Chunk, 2, _) if value == 0 => {
                self.constants(bytes);
                return Some(());
            }
            (Within::EncodingStats, 3, _) if value == 1 && self.dictionary_page => {
                self.constants(bytes);
                return Some(());
            }
            (Within::MetaData, 9, I64) => DATA_PAGE_OFFSET,
            (Within::MetaData, 11, I64) => DICTIONARY_PAGE_OFFSET,
            (Within::MetaData, 7, I64) => COMPRESSED,
            (Within::MetaData, 6, I64) => UNCOMPRESSED,
            (Within::MetaData, 5, I64) => NUM_VALUES,
            _ => NO_LANE,
        };
        self.varint(bytes, lane)
    }

    fn list(&mut self, cursor: &mut Cursor<'_>, within: Within, id: i16, wire: u8, depth: u32) -> Learned {
        let start = cursor.at;
        let (element, count) = cursor.list()?;
        self.constants(&cursor.bytes[start..cursor.at]);
        if depth == 0 {
            return Ok(None);
        }
        // The elements of a list in `ColumnMetaData` keep the list's context, for the encodings; no element
        // may be mistaken for one of the numbers that have a lane.
        let inner = match (within, id) {
            (Within::MetaData, 13) => Within::EncodingStats,
            (Within::MetaData, 2) if wire == LIST => Within::MetaData,
            _ => Within::Other,
        };
        for _ in 0..count {
            let learned = match element {
                TRUE | FALSE => {
                    cursor.byte()?;
                    self.payload(1);
                    Some(())
                }
                STRUCT => self.fields(cursor, inner, depth - 1)?,
                element => self.value(cursor, inner, id, element, depth - 1)?,
            };
            if learned.is_none() {
                return Ok(None);
            }
            if self.segments.len() > MAX_SEGMENTS {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }
}
