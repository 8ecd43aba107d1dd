//! A hash for small tables.

use std::hash::Hasher;

/// FxHash, the hash of the Rust compiler, at a tenth of the time of the standard library's. It does not
/// resist keys chosen to collide, so it is only for tables whose size is bounded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WordHasher(u64);

impl WordHasher {
    /// Adds a word to a hash that started as 0.
    #[inline(always)]
    pub fn mixed(hash: u64, word: u64) -> u64 {
        (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
    }
}

impl Hasher for WordHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        rest.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = Self::mixed(self.0, word);
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    #[inline]
    fn write_u16(&mut self, word: u16) {
        self.write_u64(word.into());
    }

    #[inline]
    fn finish(&self) -> u64 {
        // Tables use the low bits, which depend on the fewest bits of the words.
        self.0.rotate_left(32)
    }
}
