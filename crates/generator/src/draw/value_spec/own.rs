//! Numbers that a distribution of the calling program draws.

use std::fmt;
use std::sync::Arc;

use rand::distr::Distribution;
use xxhash_rust::xxh3::xxh3_128;

use crate::random::rng::{Sequence, Stream, purpose};

/// A number that a distribution draws. Whole numbers beyond 2^53 are rounded.
pub trait DrawnNumber {
    /// The number as a double.
    fn to_f64(self) -> f64;
}

macro_rules! drawn_numbers {
    ($($number:ty)*) => { $(
        impl DrawnNumber for $number {
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    )* };
}

drawn_numbers!(f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 usize);

type Draw = dyn Fn(&mut Sequence) -> f64 + Send + Sync;

/// A distribution of the calling program.
#[derive(Clone)]
pub(crate) struct OwnDistribution(Arc<Draw>);

impl fmt::Debug for OwnDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnDistribution")
    }
}

impl OwnDistribution {
    pub(crate) fn new<T: DrawnNumber>(distribution: impl Distribution<T> + Send + Sync + 'static) -> Self {
        Self(Arc::new(move |random| distribution.sample(random).to_f64()))
    }

    /// The value of this `draw`.
    #[inline]
    pub(crate) fn sample(&self, random: &mut Sequence) -> f64 {
        (self.0)(random)
    }

    fn examples(&self) -> impl Iterator<Item = f64> {
        let stream = Stream::new(0, purpose("", "own distribution"), 0);
        (0..1000).map(move |i| self.sample(&mut Sequence::new(stream.draw(i))))
    }

    /// The mean of a thousand draws.
    pub(crate) fn mean(&self) -> f64 {
        self.examples().sum::<f64>() / 1000.0
    }

    /// Tells it from others: the hash of a thousand draws.
    pub(crate) fn hash(&self) -> u128 {
        xxh3_128(&self.examples().flat_map(f64::to_le_bytes).collect::<Vec<u8>>())
    }
}
