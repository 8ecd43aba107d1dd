//! Numbers for sequences of segments, by which shapes that begin alike are recognised.
//!
//! A match that stopped in a segment can resume there with another shape, if that one has the same segments
//! before it. Comparing segments would take longer than the match.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::matching::shape::{Segment, Shape};
use crate::memory::word_hasher::WordHasher;

/// Gives the same number to equal sequences of segments, and another number to any other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prefixes {
    /// Each known sequence as the number of the sequence without its last segment, and that segment.
    known: HashMap<(u32, Box<Segment>), u32, BuildHasherDefault<WordHasher>>,
}

/// The number of the empty sequence.
const EMPTY: u32 = 0;

impl Prefixes {
    /// Numbers the beginnings of a shape.
    pub fn number(&mut self, shape: &mut Shape) {
        let mut before = EMPTY;
        shape.prefixes.clear();
        for segment in &shape.segments {
            let next = self.known.len() as u32 + 1;
            before = *self.known.entry((before, Box::new(segment.clone()))).or_insert(next);
            shape.prefixes.push(before);
        }
    }
}

impl Hash for Segment {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Equal segments have equal bytes and lanes; the rest seldom distinguishes others.
        state.write(&self.gathered);
        state.write(&self.gathered_mask);
        state.write_u64(self.first);
        state.write_u64(self.last_token);
        state.write_u64(self.lanes);
    }
}
