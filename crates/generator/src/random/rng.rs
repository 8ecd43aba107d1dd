//! Counter-based random numbers: draw `i` of stream `k` is a function of `(k, i)` alone.
//!
//! Draws share no state, so any thread can draw any block of rows, and a block always has the same values.
//! The mixing function is SplitMix64's finaliser (Steele, Lea,
//! Flood: "Fast splittable pseudorandom number generators", 2014) over a Weyl sequence.

use crate::random::instruction_sets::widest;

/// The rows of a block. Small enough to keep the levels of a block in the first-level cache, large enough to
/// make the time per field negligible (1,024 rows of `contacts` take about 15 µs).
pub(crate) const BLOCK_ROWS: u64 = 1024;

/// The Weyl increment of SplitMix64: 2^64 divided by the golden ratio, odd.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64's finaliser: a bijection on 64 bits with full avalanche.
#[inline(always)]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The draws of one field for one purpose in one block of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream(u64);

impl Stream {
    /// The stream of `purpose` (see [`purpose`]) in block `block` of the dataset seeded `seed`.
    pub(crate) fn new(seed: u64, purpose: u64, block: u64) -> Self {
        Stream(mix(mix(seed ^ mix(purpose)).wrapping_add(block.wrapping_mul(GOLDEN))))
    }

    /// A separate stream for one value that needs several draws.
    pub(crate) fn from_draw(draw: u64) -> Self {
        Stream(draw)
    }

    /// The stream that starts at draw `n`.
    pub(crate) fn skip(self, n: u64) -> Self {
        Stream(self.0.wrapping_add(n.wrapping_mul(GOLDEN)))
    }

    /// Draw `i`: 64 uniform bits.
    #[inline(always)]
    pub(crate) fn draw(self, i: u64) -> u64 {
        mix(self.0.wrapping_add(i.wrapping_add(1).wrapping_mul(GOLDEN)))
    }

    /// Fills `out` with 32-bit draws, two from each 64-bit draw.
    pub(crate) fn fill32(self, out: &mut [u32]) {
        fill32(self, out);
    }
}

widest! {
fn fill32(stream: Stream, out: &mut [u32]) {
    let mut pairs = out.chunks_exact_mut(2);
    let mut i = 0;
    for pair in &mut pairs {
        let draw = stream.draw(i);
        pair[0] = draw as u32;
        pair[1] = (draw >> 32) as u32;
        i += 1;
    }
    if let [last] = pairs.into_remainder() {
        *last = stream.draw(i) as u32;
    }
}
}

/// A generator for one value that needs any number of bits, seeded by the value's draw.
#[derive(Clone, Debug)]
pub(crate) struct Sequence(u64);

impl Sequence {
    /// The generator for the value with this `draw`.
    #[inline(always)]
    pub(crate) fn new(draw: u64) -> Self {
        Sequence(draw)
    }

    /// The next 64 uniform bits.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }
}

impl rand_core::TryRng for Sequence {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok((self.next() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(self.next())
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Self::Error> {
        for piece in out.chunks_mut(8) {
            piece.copy_from_slice(&self.next().to_le_bytes()[..piece.len()]);
        }
        Ok(())
    }
}

/// Identifies the draws of a field for one purpose: a hash of the field's path and the purpose. Adding,
/// removing or reordering other fields therefore does not change its values.
pub(crate) fn purpose(path: &str, draw: &str) -> u64 {
    // FNV-1a, then mixed: enough to distinguish a few hundred short names.
    let bytes = path.bytes().chain([0]).chain(draw.bytes());
    mix(bytes.fold(0xCBF2_9CE4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01B3)))
}

/// Scales 32 uniform bits to `0..n`. Returns the index and the remaining 32 bits.
#[inline(always)]
pub(crate) fn scale32(draw: u32, n: u32) -> (u32, u32) {
    let product = u64::from(draw) * u64::from(n);
    ((product >> 32) as u32, product as u32)
}

/// Scales 64 uniform bits to `0..n`.
#[inline(always)]
pub(crate) fn scale64(draw: u64, n: u64) -> u64 {
    ((u128::from(draw) * u128::from(n)) >> 64) as u64
}

/// Scales 128 uniform bits to `0..n`: the upper half of their product.
#[inline(always)]
pub(crate) fn scale128(draw: u128, n: u128) -> u128 {
    let (high, low) = (draw >> 64, draw & u128::from(u64::MAX));
    let (n_high, n_low) = (n >> 64, n & u128::from(u64::MAX));
    let (a, b) = (low * n_high, high * n_low);
    let carried = ((low * n_low) >> 64) + (a & u128::from(u64::MAX)) + (b & u128::from(u64::MAX));
    high * n_high + (a >> 64) + (b >> 64) + (carried >> 64)
}

/// 64 uniform bits as a double in `[0, 1)` with 53 random bits.
#[inline(always)]
pub(crate) fn unit_interval(draw: u64) -> f64 {
    (draw >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_depends_on_seed_purpose_block_and_index_alone() {
        let stream = Stream::new(7, purpose("a.b", "value"), 3);
        let mut filled = [0u32; 5];
        stream.fill32(&mut filled);
        assert_eq!(filled[4], stream.draw(2) as u32);
        assert_eq!(filled[3], (stream.draw(1) >> 32) as u32);
        for other in [
            Stream::new(8, purpose("a.b", "value"), 3),
            Stream::new(7, purpose("a.b", "null"), 3),
            Stream::new(7, purpose("a", "b.value"), 3),
            Stream::new(7, purpose("a.b", "value"), 4),
        ] {
            assert_ne!(other.draw(0), stream.draw(0));
        }
    }

    #[test]
    fn a_wide_draw_is_scaled_by_its_whole_product() {
        for (draw, n, scaled) in [
            (0, 7, 0),
            (u128::MAX, 7, 6),
            (u128::MAX, u128::MAX, u128::MAX - 1),
            (1 << 127, 10u128.pow(38), 10u128.pow(38) / 2),
            (u128::MAX / 3, 3 << 100, (1 << 100) - 1),
            (u128::MAX / 3 + 1, 3 << 100, 1 << 100),
        ] {
            assert_eq!(scale128(draw, n), scaled, "{draw} {n}");
        }
    }

    #[test]
    fn bits_of_a_stream_are_balanced() {
        let stream = Stream::new(1, 2, 3);
        let n = 100_000u64;
        for bit in 0..64 {
            let ones = (0..n).filter(|&i| stream.draw(i) >> bit & 1 == 1).count() as f64;
            // Six standard deviations of a fair coin.
            assert!((ones - n as f64 / 2.0).abs() < 6.0 * (n as f64 / 4.0).sqrt(), "bit {bit}: {ones}");
        }
    }
}
