//! Kinds of schema elements: the bytes that elements of one kind have in common, which is everything except
//! their names.
//!
//! A kind records, for a walked element, the bytes before its name, the bytes after it, and the resulting
//! traits. Another element with the same bytes around its name differs only in the name: Thrift bytes mean
//! the same everywhere. So each column of a wide file is decoded by two comparisons.

use std::ops::Range;

use crate::schema::arena::{ElementTraits, Node};
use crate::schema::names::Names;
use crate::thrift::cursor::Cursor;

/// The most kinds kept; wide schemas have few.
const MAX_KINDS: usize = 24;

/// How many kinds to make room for at first: an allocator returns their kilobyte quickly.
const USUAL_KINDS: usize = 7;

/// Schemas of up to this many elements are walked: to keep what few elements have in common takes as long.
const FEW_ELEMENTS: usize = 14;

/// The number of bytes before or after a name that are compared at once; kinds with more are not kept.
const WORD: usize = 16;

/// Up to [`WORD`] bytes to compare others with.
#[derive(Clone, Copy)]
struct Pattern {
    bytes: u128,
    mask: u128,
    len: usize,
}

impl Pattern {
    fn new(bytes: &[u8]) -> Option<Self> {
        let mut padded = [0; WORD];
        padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let mask = match bytes.len() {
            0 => 0,
            len => u128::MAX >> (8 * (WORD - len)),
        };
        Some(Self { bytes: u128::from_le_bytes(padded), mask, len: bytes.len() })
    }

    #[inline]
    fn fits(&self, word: u128) -> bool {
        (word ^ self.bytes) & self.mask == 0
    }
}

struct ElementKind {
    /// From the element's start through its name's length.
    before: Pattern,
    /// From the end of the name to the element's end.
    after: Pattern,
    /// What elements of the kind have in common, and its index in the schema.
    traits: ElementTraits,
    place: u32,
}

/// The kinds found so far. The search starts at the last element's kind: the next element often has the same, or the
/// kind learned after it where types take turns.
pub(crate) struct Kinds {
    kinds: Vec<ElementKind>,
    last: usize,
    room: usize,
}

impl Default for Kinds {
    fn default() -> Self {
        Self { kinds: Vec::new(), last: 0, room: MAX_KINDS }
    }
}

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u128> {
    Some(u128::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Kinds {
    /// Prepares for a schema of this many elements.
    pub fn expect(&mut self, elements: usize) {
        if elements <= FEW_ELEMENTS {
            self.room = 0;
        }
    }

    /// If the element at the cursor is of a known kind, appends its name to `names` and
    /// its node to `nodes`, and returns its traits.
    #[inline]
    pub fn next(
        &mut self,
        cursor: &mut Cursor<'_>,
        names: &mut Names,
        nodes: &mut Vec<Node>,
    ) -> Option<ElementTraits> {
        let bytes = cursor.bytes;
        let head = word(bytes, cursor.at)?;
        let (before, from) = self.kinds.split_at_checked(self.last)?;
        for (step, kind) in from.iter().chain(before).enumerate() {
            if !kind.before.fits(head) {
                continue;
            }
            let start = cursor.at + kind.before.len + 1;
            // Longer names have lengths of more than one byte.
            let len = *bytes.get(start - 1).filter(|&&len| len < 0x80)?;
            let end = start + usize::from(len);
            if !kind.after.fits(word(bytes, end)?) {
                continue;
            }
            let name_start = names.push(bytes, start..end)?;
            cursor.at = end + kind.after.len;
            let found = kind.traits;
            nodes.push(Node::new(name_start, len.into(), kind.place));
            let place = self.last + step;
            self.last = if place < self.kinds.len() { place } else { place - self.kinds.len() };
            return Some(found);
        }
        None
    }

    /// Records the kind of an element with the range `element`. `name` is the range of its name, after the
    /// length; traits and their index follow.
    pub fn learn(
        &mut self,
        bytes: &[u8],
        element: Range<usize>,
        name: Range<usize>,
        name_len: u32,
        (place, traits): (u32, ElementTraits),
    ) {
        let part = |range: Range<usize>| Pattern::new(bytes.get(range)?);
        let one_byte = name.end - name.start == name_len as usize + 1;
        if let (true, Some(before), Some(after)) =
            (one_byte, part(element.start..name.start), part(name.end..element.end))
        {
            let kind = ElementKind { before, after, traits, place };
            if self.kinds.len() < self.room {
                if self.kinds.len() == self.kinds.capacity() {
                    let room = if self.kinds.is_empty() { USUAL_KINDS } else { self.room };
                    self.kinds.reserve_exact(room.min(self.room) - self.kinds.len());
                }
                self.last = self.kinds.len();
                self.kinds.push(kind);
            } else if self.room > 0 {
                self.last = (self.last + 1) % self.room;
                self.kinds[self.last] = kind;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Kinds;
    use crate::schema::arena::Schema;
    use crate::thrift::cursor::Cursor;
    use crate::thrift_writer::ThriftWriter;

    /// A list of a root and leaves below it, each with its kind.
    fn list(leaves: &[(u8, String)]) -> Vec<u8> {
        let mut writer = ThriftWriter::new();
        writer.list_header(12, leaves.len() as u64 + 1);
        writer.begin_element();
        writer.binary(4, b"root");
        writer.i32(5, leaves.len() as i32);
        writer.stop();
        for (kind, name) in leaves {
            writer.begin_element();
            writer.i32(1, i32::from(kind % 7));
            if kind & 8 != 0 {
                writer.i32(2, i32::from(*kind));
            }
            writer.i32(3, i32::from(kind % 2));
            writer.binary(4, name.as_bytes());
            if kind & 16 != 0 {
                writer.i32(6, 0);
                writer.begin(10);
                writer.begin(1);
                writer.stop();
                writer.stop();
            }
            if kind & 32 != 0 {
                writer.binary(100, &[*kind; 20]);
            }
            writer.stop();
        }
        writer.into_bytes()
    }

    /// Decodes the schema with and without kinds. Returns it or the error, and the final cursor position.
    fn both(bytes: &[u8]) -> [String; 2] {
        [Kinds::default(), Kinds { kinds: Vec::new(), last: 0, room: 0 }].map(|mut kinds| {
            let mut cursor = Cursor::new(bytes, 0);
            match Schema::read_by(&mut cursor, &mut kinds) {
                Ok(schema) => format!("{schema:?} {}", cursor.at),
                Err(fault) => format!("{} {}", fault.kind, fault.at),
            }
        })
    }

    proptest! {
        #[test]
        fn schemas_are_the_same_by_kinds_and_without(
            leaves in prop::collection::vec((0u8..64, "[a-z\u{e9}]{0,9}|x{126,129}"), 0..40),
            place: prop::sample::Index, byte: u8, cut: prop::sample::Index,
        ) {
            let mut bytes = list(&leaves);
            let [by_kinds, without] = both(&bytes);
            prop_assert_eq!(by_kinds, without);
            let at = place.index(bytes.len());
            bytes[at] = byte;
            let [by_kinds, without] = both(&bytes);
            prop_assert_eq!(by_kinds, without);
            bytes.truncate(cut.index(bytes.len()));
            let [by_kinds, without] = both(&bytes);
            prop_assert_eq!(by_kinds, without);
        }
    }
}
