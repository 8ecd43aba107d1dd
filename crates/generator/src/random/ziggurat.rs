//! Standard normal and standard exponential draws by the ziggurat method.
//!
//! (G. Marsaglia, W. W. Tsang: "The ziggurat method for generating random variables", Journal of Statistical
//! Software 5(8), 2000; the 256 layers and the use of the bits follow J. A. Doornik: "An improved ziggurat
//! method to generate normal random samples", 2005.) Of 100 draws, 98 need one multiplication and one
//! comparison. Why our own: the crate `rand_distr` uses the same method, but computes the other two with the
//! system's C library, whose last bit differs between platforms.

use std::sync::LazyLock;

use super::elementary::{exp, ln};
use crate::random::rng::{Sequence, unit_interval};

const LAYERS: usize = 256;

/// The layers under a density that decreases from `x = 0`.
struct Layers {
    /// Where each layer ends. The first one includes the tail: its end is the end of a rectangle with the same
    /// area.
    ends: [f64; LAYERS + 1],
    /// The density at the end of each layer.
    heights: [f64; LAYERS + 1],
}

impl Layers {
    /// Layers of equal `area`. The first one includes the tail, which begins at `tail`.
    fn new(tail: f64, area: f64, density: fn(f64) -> f64, inverse: fn(f64) -> f64) -> Self {
        let mut ends = [0.0; LAYERS + 1];
        ends[0] = area / density(tail);
        ends[1] = tail;
        for i in 2..LAYERS {
            ends[i] = inverse(area / ends[i - 1] + density(ends[i - 1]));
        }
        Self { ends, heights: ends.map(density) }
    }
}

fn bell(x: f64) -> f64 {
    exp(-x * x / 2.0)
}

/// Where the normal distribution's tail begins.
const NORMAL_TAIL: f64 = 3.654_152_885_361_009;

static NORMAL: LazyLock<Layers> = LazyLock::new(|| {
    Layers::new(NORMAL_TAIL, 0.004_928_673_233_974_655, bell, |height| (-2.0 * ln(height)).sqrt())
});

/// Where the exponential distribution's tail begins.
const EXPONENTIAL_TAIL: f64 = 7.697_117_470_131_05;

static EXPONENTIAL: LazyLock<Layers> = LazyLock::new(|| {
    Layers::new(EXPONENTIAL_TAIL, 0.003_949_659_822_581_557, |x| exp(-x), |height| -ln(height))
});

/// A number between 0 and 1, excluding both, so its logarithm is finite.
fn open_interval(draw: u64) -> f64 {
    ((draw >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
}

/// A draw from the normal distribution of mean 0 and standard deviation 1.
#[inline]
pub(crate) fn normal(random: &mut Sequence) -> f64 {
    let layers = &*NORMAL;
    loop {
        // The low 8 bits choose the layer, the high 52 bits the place in it.
        let bits = random.next();
        let layer = (bits & 0xff) as usize;
        let place = (bits >> 12) as f64 * (2.0 / (1u64 << 52) as f64) - 1.0;
        let x = place * layers.ends[layer];
        if x.abs() < layers.ends[layer + 1] {
            return x;
        }
        if layer == 0 {
            let beyond = NORMAL_TAIL + normal_tail(random);
            return if place < 0.0 { -beyond } else { beyond };
        }
        if falls_below(layers, layer, random) < bell(x) {
            return x;
        }
    }
}

/// For a draw in the tail, its distance from [`NORMAL_TAIL`].
#[cold]
fn normal_tail(random: &mut Sequence) -> f64 {
    loop {
        let x = -ln(open_interval(random.next())) / NORMAL_TAIL;
        let y = -ln(open_interval(random.next()));
        if 2.0 * y >= x * x {
            return x;
        }
    }
}

/// A draw from the exponential distribution of mean 1.
#[inline]
pub(crate) fn exponential(random: &mut Sequence) -> f64 {
    let layers = &*EXPONENTIAL;
    loop {
        let bits = random.next();
        let layer = (bits & 0xff) as usize;
        let x = open_interval(bits) * layers.ends[layer];
        if x < layers.ends[layer + 1] {
            return x;
        }
        if layer == 0 {
            return EXPONENTIAL_TAIL - ln(open_interval(random.next()));
        }
        if falls_below(layers, layer, random) < exp(-x) {
            return x;
        }
    }
}

/// A random height between the two ends of a layer. A draw with a higher density is accepted.
#[inline]
fn falls_below(layers: &Layers, layer: usize, random: &mut Sequence) -> f64 {
    let (low, high) = (layers.heights[layer], layers.heights[layer + 1]);
    high + (low - high) * unit_interval(random.next())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Kolmogorov-Smirnov statistic: the largest distance between the distribution of the draws and
    /// `cumulative`, times the square root of their number. One of ten thousand fair samples exceeds 2.2, and
    /// these samples are fixed.
    fn distance(draw: fn(&mut Sequence) -> f64, cumulative: impl Fn(f64) -> f64) -> f64 {
        let n = 1_000_000;
        let mut random = Sequence::new(7);
        let mut draws: Vec<f64> = (0..n).map(|_| draw(&mut random)).collect();
        draws.sort_by(f64::total_cmp);
        let steps = draws.iter().enumerate().map(|(i, x)| (cumulative(*x) - i as f64 / n as f64).abs());
        steps.fold(0.0, f64::max) * (n as f64).sqrt()
    }

    #[test]
    fn draws_follow_the_normal_distribution() {
        let found = distance(normal, |x| (1.0 + libm::erf(x / std::f64::consts::SQRT_2)) / 2.0);
        assert!(found < 2.2, "{found}");
    }

    #[test]
    fn draws_follow_the_exponential_distribution() {
        let found = distance(exponential, |x| 1.0 - exp(-x));
        assert!(found < 2.2, "{found}");
    }

    #[test]
    fn the_tails_have_the_right_probability() {
        let mut random = Sequence::new(3);
        let n = 20_000_000;
        let beyond = (0..n).filter(|_| normal(&mut random).abs() > 4.0).count() as f64;
        // Expected: a share of 2 (1 - Phi(4)), within five standard deviations.
        let expected = f64::from(n) * 6.334_248e-5;
        assert!((beyond - expected).abs() < 5.0 * expected.sqrt(), "{beyond} of {expected}");
        let beyond = (0..n).filter(|_| exponential(&mut random) > 9.0).count() as f64;
        let expected = f64::from(n) * exp(-9.0);
        assert!((beyond - expected).abs() < 5.0 * expected.sqrt(), "{beyond} of {expected}");
    }

    #[test]
    fn the_topmost_layer_has_the_area_of_the_others() {
        for (layers, area) in
            [(&*NORMAL, 0.004_928_673_233_974_655), (&*EXPONENTIAL, 0.003_949_659_822_581_557)]
        {
            // Then the constants are consistent.
            let top = layers.ends[LAYERS - 1] * (1.0 - layers.heights[LAYERS - 1]);
            assert!((top - area).abs() < 1e-9, "{top} {area}");
        }
    }
}
