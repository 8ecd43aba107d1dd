//! Zipf draws by rejection, for more ranks than a table should have.
//!
//! (J. Crease: "Rejection sampling the Zipf distribution", 2018.) The envelope is 1 up to rank 1 and `x^-s`
//! beyond. Its distribution has a closed-form inverse.

use super::elementary::{exp, ln, pow};
use crate::random::rng::{Sequence, unit_interval};

/// Ranks from 1 to `n`; rank `k` has a probability proportional to `k^-s`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zipf {
    s: f64,
    /// The area under the envelope.
    area: f64,
}

impl Zipf {
    /// `None` unless `n` is finite and at least 1, and `s` is finite and at least 0.
    pub(crate) fn new(n: f64, s: f64) -> Option<Self> {
        let given = n.is_finite() && n >= 1.0 && s.is_finite() && s >= 0.0;
        let area = if s == 1.0 { 1.0 + ln(n) } else { (pow(n, 1.0 - s) - s) / (1.0 - s) };
        given.then_some(Self { s, area })
    }

    /// Draws a rank.
    pub(crate) fn sample(&self, random: &mut Sequence) -> f64 {
        loop {
            let place = self.inverse(unit_interval(random.next()));
            let rank = (place + 1.0).floor();
            let mut share = pow(rank, -self.s);
            if rank > 1.0 {
                share *= pow(place, self.s);
            }
            if unit_interval(random.next()) < share {
                return rank;
            }
        }
    }

    /// The place up to which the envelope has this share of its area.
    fn inverse(&self, share: f64) -> f64 {
        let area = share * self.area;
        if area <= 1.0 {
            area
        } else if self.s == 1.0 {
            exp(area - 1.0)
        } else {
            pow(area * (1.0 - self.s) + self.s, 1.0 / (1.0 - self.s))
        }
    }
}
