//! A random number generator for values that callers draw themselves.

use std::convert::Infallible;

use rand_core::TryRng;

use crate::random::rng::{Sequence, Stream, purpose};

/// A generator for one value, with the traits of `rand_core`: it draws from any distribution of `rand`,
/// `rand_distr` or your own.
///
/// Like the values of datasets, its numbers depend on the seed, the block and the index alone, so any thread
/// can draw any value. Distributions that use the system's C library may differ in the last bit between
/// platforms.
///
/// ```
/// use rand::distr::{Distribution, Uniform};
/// use sawmill_generator::ValueRng;
///
/// let dice = Uniform::new_inclusive(1, 6)?;
/// let roll = |index| dice.sample(&mut ValueRng::new(42, 0, index));
/// assert!((0..100).map(roll).all(|pips| (1..=6).contains(&pips)));
/// assert_eq!(roll(7), roll(7));
/// # Ok::<(), rand::distr::uniform::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ValueRng(Sequence);

impl ValueRng {
    /// The generator for value `index` of `block`.
    pub fn new(seed: u64, block: u64, index: u64) -> Self {
        ValueRng(Sequence::new(Stream::new(seed, purpose("", "rng"), block).draw(index)))
    }
}

impl TryRng for ValueRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0.try_next_u64()
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        self.0.try_fill_bytes(out)
    }
}
