//! The names of a schema's elements, stored in sequence.
//!
//! Names are short, and a wide schema has very many: they are copied in fixed-size blocks that may extend
//! past their ends, into room reserved beforehand.

use std::ops::Range;

use crate::memory::{allocate, pages};
use crate::thrift::cursor::Step;

/// Names of up to this many bytes are copied in one block, with whatever follows them.
const BLOCK: usize = 32;

/// The bits that ASCII does not use, for a block: the window of this array that starts at `BLOCK - len`
/// covers a name of `len` bytes.
const NOT_ASCII: [u8; 2 * BLOCK] = {
    let mut bits = [0; 2 * BLOCK];
    let mut at = 0;
    while at < BLOCK {
        bits[at] = 0x80;
        at += 1;
    }
    bits
};

pub(crate) struct Names {
    /// The bytes after `end` are whatever followed the last name in the footer.
    bytes: Vec<u8>,
    end: usize,
}

impl Names {
    /// No names yet, with room for `room` bytes, for the schema at byte `at`.
    pub fn with_room(at: usize, room: usize) -> Step<Self> {
        let mut bytes = allocate::with_room_at(at, room)?;
        pages::advise(bytes.spare_capacity_mut());
        Ok(Self { bytes, end: 0 })
    }

    /// Adds the name in this range of the bytes and returns its offset here; `None` if it is not within the bytes.
    /// `?` replaces each byte that is not UTF-8.
    #[inline]
    pub fn push(&mut self, bytes: &[u8], name: Range<usize>) -> Option<u32> {
        let (start, len) = (self.end, name.len());
        let block = bytes.get(name.start..).and_then(<[u8]>::first_chunk);
        self.bytes.truncate(start);
        match block {
            Some(block) if is_ascii(block, len) => self.bytes.extend_from_slice(block),
            _ => self.push_any(bytes.get(name)?),
        }
        self.end = start + len;
        // Names are part of the footer, whose length has 32 bits.
        Some(start as u32)
    }

    #[cold]
    #[inline(never)]
    fn push_any(&mut self, name: &[u8]) {
        for part in name.utf8_chunks() {
            self.bytes.extend_from_slice(part.valid().as_bytes());
            self.bytes.extend(part.invalid().iter().map(|_| b'?'));
        }
    }

    /// All names; `None` if they are not UTF-8, which cannot happen because each name is.
    pub fn into_text(mut self) -> Option<String> {
        self.bytes.truncate(self.end);
        String::from_utf8(self.bytes).ok()
    }
}

/// Whether the block's first `len` bytes exist and are all ASCII.
#[inline]
fn is_ascii(block: &[u8; BLOCK], len: usize) -> bool {
    let bits = BLOCK.checked_sub(len).and_then(|from| NOT_ASCII.get(from..)?.first_chunk::<BLOCK>());
    bits.is_some_and(|bits| block.iter().zip(bits).fold(0, |found, (byte, bits)| found | (byte & bits)) == 0)
}
