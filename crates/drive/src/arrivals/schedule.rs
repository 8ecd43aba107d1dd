//! The intended start of every operation, one after the other.

use rand::distr::weighted::WeightedIndex;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::Exp1;
use sawmill_source::Result;

use crate::arrivals::process::Arrivals;
use crate::arrivals::shape::RateClock;
use crate::arrivals::trace::Trace;

/// Gives out operations in the order of their intended starts.
#[derive(Debug)]
pub(crate) struct Schedule {
    kind: Spread,
    weights: WeightedIndex<f64>,
    draws: Xoshiro256PlusPlus,
    ended: bool,
}

/// How operations are spread over time.
#[derive(Debug)]
pub(crate) enum Spread {
    /// In units of operations: the next one, the distance, whether distances are exponential, and how many arrive
    /// at once.
    Rate {
        clock: RateClock,
        reached: f64,
        poisson: bool,
        burst: u32,
        left: u32,
    },
    Trace(Box<Trace>),
    /// Whenever a client asks.
    Closed,
}

/// An operation to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Nanoseconds from the start of the run; `None` in a closed loop.
    pub at: Option<u64>,
    /// Index of the operation.
    pub operation: usize,
    /// Decides its random draws.
    pub draw: u64,
}

impl Schedule {
    /// Arrivals at a rate. Each of several driving processes takes a part of the moments.
    pub(crate) fn open(
        clock: RateClock,
        arrivals: &Arrivals,
        weights: WeightedIndex<f64>,
        seed: u64,
        part: (u64, u64),
    ) -> Self {
        let burst = if let Arrivals::Bursts(size) = arrivals { *size } else { 1 };
        let poisson = *arrivals == Arrivals::Poisson;
        let seed = seed ^ part.0.wrapping_mul(0xD1B5_4A32_D192_ED03);
        let mut draws = Xoshiro256PlusPlus::seed_from_u64(seed);
        // The parts of an even schedule interleave; a Poisson process splits into Poisson processes.
        let reached = match poisson {
            true => draws.sample(Exp1),
            false => part.0.saturating_sub(1) as f64 / part.1 as f64 * f64::from(burst),
        };
        let kind = Spread::Rate { clock, reached, poisson, burst, left: burst };
        Self { kind, weights, draws, ended: false }
    }

    /// Arrivals of a trace, or of a closed loop.
    pub(crate) fn new(kind: Spread, weights: WeightedIndex<f64>, seed: u64) -> Self {
        Self { kind, weights, draws: Xoshiro256PlusPlus::seed_from_u64(seed), ended: false }
    }

    /// The next operation; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Arrival>> {
        if self.ended {
            return Ok(None);
        }
        let (moment, named) = match &mut self.kind {
            Spread::Closed => (None, None),
            Spread::Trace(trace) => match trace.next()? {
                Some((moment, named)) => (Some(moment), named),
                None => return Ok(self.end()),
            },
            Spread::Rate { clock, reached, poisson, burst, left } => {
                let Some(moment) = clock.moment(*reached) else { return Ok(self.end()) };
                *left -= 1;
                if *left == 0 {
                    *left = *burst;
                    *reached += if *poisson { self.draws.sample::<f64, _>(Exp1) } else { f64::from(*burst) };
                }
                (Some(moment), None)
            }
        };
        let operation = named.unwrap_or_else(|| self.draws.sample(&self.weights));
        Ok(Some(Arrival {
            at: moment.map(|moment| (moment * 1e9) as u64),
            operation,
            draw: self.draws.next_u64(),
        }))
    }

    fn end(&mut self) -> Option<Arrival> {
        self.ended = true;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::shape::Shape;

    fn moments(shape: &str, arrivals: &Arrivals, part: (u64, u64)) -> Vec<u64> {
        let shape: Shape = shape.parse().unwrap();
        let stretches: Vec<_> = shape.stretches(0.0, 10.0);
        let share = |stretch: &crate::arrivals::shape::Stretch| crate::arrivals::shape::Stretch {
            from: stretch.from / part.1 as f64,
            to: stretch.to / part.1 as f64,
            ..*stretch
        };
        let clock = RateClock::new(stretches.iter().map(share).collect());
        let mut schedule = Schedule::open(clock, arrivals, WeightedIndex::new([1.0]).unwrap(), 7, part);
        std::iter::from_fn(|| schedule.next().unwrap()).map(|arrival| arrival.at.unwrap()).collect()
    }

    #[test]
    fn an_even_schedule_has_even_distances_and_its_parts_make_up_the_whole() {
        let whole = moments("100", &Arrivals::Constant, (1, 1));
        assert_eq!(whole.len(), 1000);
        assert!(whole.windows(2).all(|pair| (pair[1] - pair[0]).abs_diff(10_000_000) < 1000));
        let mut parts: Vec<u64> =
            (1..=4).flat_map(|part| moments("100", &Arrivals::Constant, (part, 4))).collect();
        parts.sort_unstable();
        assert!(parts.iter().zip(&whole).all(|(part, whole)| part.abs_diff(*whole) < 1000), "{parts:?}");
    }

    #[test]
    fn poisson_arrivals_have_the_variance_of_their_mean() {
        let all = moments("1000", &Arrivals::Poisson, (1, 1));
        let mut counts = [0_f64; 100];
        all.iter().for_each(|at| counts[(at / 100_000_000) as usize] += 1.0);
        let mean = counts.iter().sum::<f64>() / 100.0;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 99.0;
        assert!((mean - 100.0).abs() < 4.0 && (0.6..1.6).contains(&(variance / mean)), "{mean} {variance}");
    }

    #[test]
    fn bursts_come_at_once() {
        let all = moments("100", &Arrivals::Bursts(50), (1, 1));
        assert_eq!(all.len(), 1000);
        assert!(all.chunks(50).all(|burst| burst.iter().all(|at| at == &burst[0])));
        assert!((all[50] - all[0]).abs_diff(500_000_000) < 1000);
    }
}
