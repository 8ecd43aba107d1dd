//! The hash by which PostgreSQL assigns a row to a hash partition.
//!
//! It is Bob Jenkins's lookup3 (<https://burtleburtle.net/bob/c/lookup3.c>) with a 64-bit seed and a 64-bit
//! result, as in src/common/hashfn.c. The seed is defined in src/backend/partitioning/partbounds.c, and how a
//! column's hash is combined into the row's in src/include/common/hashfn.h.

/// `HASH_PARTITION_SEED`.
const SEED: u64 = 0x7A5B_2236_7996_DCFD;
/// The initial state, before the length is added.
const BEGIN: u32 = 0x9E37_79B9 + 3_923_095;

/// The three words of lookup3.
struct State {
    a: u32,
    b: u32,
    c: u32,
}

impl State {
    fn of_length(length: usize) -> Self {
        let begin = BEGIN.wrapping_add(length as u32);
        let mut state = Self { a: begin, b: begin, c: begin };
        state.add((SEED >> 32) as u32, SEED as u32, 0);
        state.mix();
        state
    }

    fn add(&mut self, a: u32, b: u32, c: u32) {
        self.a = self.a.wrapping_add(a);
        self.b = self.b.wrapping_add(b);
        self.c = self.c.wrapping_add(c);
    }

    fn mix(&mut self) {
        fn step(less: &mut u32, by: u32, more: u32, bits: u32) -> u32 {
            *less = less.wrapping_sub(by) ^ by.rotate_left(bits);
            by.wrapping_add(more)
        }
        let Self { a, b, c } = self;
        *c = step(a, *c, *b, 4);
        *a = step(b, *a, *c, 6);
        *b = step(c, *b, *a, 8);
        *c = step(a, *c, *b, 16);
        *a = step(b, *a, *c, 19);
        *b = step(c, *b, *a, 4);
    }

    fn finish(mut self) -> u64 {
        fn step(word: &mut u32, other: u32, bits: u32) {
            *word = (*word ^ other).wrapping_sub(other.rotate_left(bits));
        }
        let Self { a, b, c } = &mut self;
        step(c, *b, 14);
        step(a, *c, 11);
        step(b, *a, 25);
        step(c, *b, 16);
        step(a, *c, 4);
        step(b, *a, 14);
        step(c, *b, 24);
        u64::from(*b) << 32 | u64::from(*c)
    }
}

/// The hash of four bytes: integers of up to 32 bits, dates and booleans.
fn of_word(word: u32) -> u64 {
    let mut state = State::of_length(4);
    state.add(word, 0, 0);
    state.finish()
}

/// The hash of an integer of up to 64 bits: one that fits in 32 bits has the same hash in all types.
pub(crate) fn of_number(value: i64) -> u64 {
    let (low, high) = (value as u32, (value >> 32) as u32);
    of_word(low ^ if value >= 0 { high } else { !high })
}

/// The hash of a `numeric` (`hash_numeric_extended` in src/backend/utils/adt/numeric.c): the hash of its
/// base-10,000 digits, without the zeros around them, combined with the weight of the first one.
pub(crate) fn of_numeric(value: u64) -> u64 {
    let mut digits = Vec::with_capacity(5);
    let mut rest = value;
    while rest > 0 {
        digits.push((rest % 10_000) as u16);
        rest /= 10_000;
    }
    let Some(weight) = digits.len().checked_sub(1) else { return SEED.wrapping_sub(1) };
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    let bytes: Vec<u8> = digits[zeros..].iter().rev().flat_map(|digit| digit.to_le_bytes()).collect();
    of_bytes(&bytes) ^ weight as u64
}

/// The hash of text and of UUIDs.
pub(crate) fn of_bytes(bytes: &[u8]) -> u64 {
    let mut state = State::of_length(bytes.len());
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
    let (threes, rest) = bytes.as_chunks::<12>();
    for three in threes {
        state.add(word(&three[..4]), word(&three[4..8]), word(&three[8..]));
        state.mix();
    }
    // The lowest byte of the third word is reserved for the length.
    let part = |from: usize| rest.get(from..rest.len().min(from + 4)).unwrap_or_default();
    state.add(word(part(0)), word(part(4)), word(part(8)) << 8);
    state.finish()
}

/// The partition of a value with this hash, out of `modulus`; null is in the first.
pub(crate) fn remainder(hash: Option<u64>, modulus: u32) -> u64 {
    // `hash_combine64` with the hash 0 of a row without columns.
    let row = hash.map_or(0, |hash| hash.wrapping_add(0x49A0_F4DD_15E5_A8E3));
    row % u64::from(modulus.max(1))
}
