//! Chooses among the rows that earlier operations have written, for references and reads.

use std::sync::Arc;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use sawmill_generator::ZipfSampler;

use crate::proof::states::{Known, RowState, RowStates};

/// How to choose among rows written earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Pick {
    /// Each as often as any other.
    #[default]
    Uniform,
    /// The first ones most, by Zipf's law with this exponent.
    Zipf(f64),
    /// The last ones most, by Zipf's law with this exponent.
    Latest(f64),
}

/// How many draws to make before taking the next existing row.
const TRIES: u32 = 64;
/// How many numbers to search for that row before the choice fails.
const NEIGHBOURS: u64 = 8192;
/// Ranks that a sampler draws at once.
const RANKS: usize = 256;
/// How many of the most frequent rows Zipf's law covers.
const ROWS: u64 = 1 << 24;

/// Draws ranks by Zipf's law, a block at a time.
pub(crate) struct Picker {
    pick: Pick,
    sampler: Option<Arc<ZipfSampler>>,
    ranks: [u64; RANKS],
    next: usize,
    block: u64,
    stream: u64,
}

impl Pick {
    /// The exponent of a skewed choice.
    pub(crate) fn skew(self) -> Option<f64> {
        match self {
            Self::Uniform => None,
            Self::Zipf(s) | Self::Latest(s) => Some(s),
        }
    }
}

/// Tables that skewed choices draw from: some 90 KB, which connections share.
pub(crate) fn sampler(skew: f64, seed: u64) -> Option<Arc<ZipfSampler>> {
    ZipfSampler::new(ROWS, skew, seed).ok().map(Arc::new)
}

impl Picker {
    pub(crate) fn new(pick: Pick, sampler: Option<Arc<ZipfSampler>>, stream: u64) -> Self {
        Self { pick, sampler, ranks: [0; RANKS], next: RANKS, block: 0, stream }
    }

    fn rank(&mut self) -> u64 {
        if self.next == RANKS
            && let Some(sampler) = &self.sampler
        {
            sampler.fill(self.block ^ self.stream << 40, &mut self.ranks);
            self.block += 1;
            self.next = 0;
        }
        let rank = self.ranks.get(self.next).copied().unwrap_or(1);
        self.next += 1;
        rank.saturating_sub(1)
    }

    /// An acknowledged row, and its known state. Draws again if the drawn row does not exist; after [`TRIES`]
    /// draws, takes the next existing row. `None` if none is near. With `own`, also accepts rows with values
    /// written by custom statements.
    pub(crate) fn pick(&mut self, states: &RowStates, draw: u64, own: bool) -> Option<(u64, Known)> {
        let high = states.high();
        if high == 0 {
            return None;
        }
        let mut draws = Xoshiro256PlusPlus::seed_from_u64(draw);
        for _ in 0..TRIES {
            let number = match self.pick {
                Pick::Uniform => draws.random_range(0..high),
                Pick::Zipf(_) => self.rank(),
                Pick::Latest(_) => match high.checked_sub(1 + self.rank()) {
                    Some(number) => number,
                    None => continue,
                },
            };
            // Numbers beyond the rows are drawn again, so that the law holds among existing rows.
            if number >= high {
                continue;
            }
            if let Some(found) = acknowledged(states, number, own) {
                return Some(found);
            }
        }
        let start = draws.random_range(0..high);
        (0..high.min(NEIGHBOURS)).find_map(|step| acknowledged(states, (start + step) % high, own))
    }
}

/// The row, if it certainly exists.
fn acknowledged(states: &RowStates, number: u64, own: bool) -> Option<(u64, Known)> {
    let known = states.get(number);
    let there = match known.state {
        RowState::Acknowledged => true,
        RowState::Own | RowState::MaybeOwn => own,
        _ => false,
    };
    there.then_some((number, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_rows_among_many_numbers_are_found() {
        let states = RowStates::default();
        let mut picker = Picker::new(Pick::Uniform, None, 1);
        assert_eq!(picker.pick(&states, 7, false), None);
        states.set(3, RowState::Acknowledged);
        states.set(4000, RowState::Failed);
        for draw in 0..200 {
            assert_eq!(picker.pick(&states, draw, false), Some((3, RowState::Acknowledged.into())), "{draw}");
        }
    }
}
