//! Numbers for sequences of segments, by which shapes that begin alike are recognised.
//!
//! A match that stopped in a segment can resume there with another shape, if that one has the same segments
//! before it. Comparing segments would take longer than the match.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::matching::shape::{Constants, DecodedVarint, Segment, Shape};
use crate::memory::word_hasher::WordHasher;

/// Gives the same number to equal sequences of segments, and another number to any other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prefixes {
    /// Each known sequence as the number of the sequence without its last segment, and that segment.
    known: HashMap<(u32, Box<Whole>), u32, BuildHasherDefault<WordHasher>>,
}

/// A segment with the tokens to compare and decode, which it shares with no other.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Whole {
    segment: Segment,
    constants: Box<[Constants]>,
    decoded: Box<[DecodedVarint]>,
}

/// The number of the empty sequence.
const EMPTY: u32 = 0;

impl Prefixes {
    /// Numbers the beginnings of a shape.
    pub fn number(&mut self, shape: &mut Shape) {
        let mut before = EMPTY;
        let mut prefixes = Vec::with_capacity(shape.segments.len());
        for tokens in shape.with_tokens() {
            let next = self.known.len() as u32 + 1;
            let whole = Whole {
                segment: tokens.segment.clone(),
                constants: tokens.constants.into(),
                decoded: tokens.decoded.into(),
            };
            before = *self.known.entry((before, Box::new(whole))).or_insert(next);
            prefixes.push(before);
        }
        shape.prefixes = prefixes;
    }
}

impl Hash for Whole {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Equal segments have equal bytes and constants; the rest seldom distinguishes others.
        state.write(&self.segment.fixed);
        state.write(&self.segment.mask);
        state.write_u64(self.segment.first);
        state.write_u64(self.segment.last_token);
        self.constants.iter().for_each(|constants| state.write_u64(constants.bytes));
    }
}
