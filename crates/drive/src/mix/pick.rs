//! Which rows earlier operations have written: what references and reads of past rows choose from.

use sawmill_generator::ZipfSampler;

use crate::arrivals::process::Draws;
use crate::proof::states::{RowState, RowStates};

/// Which of the earlier rows is chosen.
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

/// How often a row is drawn before the choice fails.
const TRIES: u32 = 64;
/// Ranks that a sampler draws at once.
const RANKS: usize = 256;
/// Of how many rows the most frequent are drawn.
const ROWS: u64 = 1 << 24;

/// Draws ranks by Zipf's law, a block at a time.
pub(crate) struct Picker {
    pick: Pick,
    sampler: Option<ZipfSampler>,
    ranks: [u64; RANKS],
    next: usize,
    block: u64,
    stream: u64,
}

impl Picker {
    pub(crate) fn new(pick: Pick, seed: u64, stream: u64) -> Self {
        let sampler = match pick {
            Pick::Uniform => None,
            Pick::Zipf(s) | Pick::Latest(s) => ZipfSampler::new(ROWS, s, seed ^ stream).ok(),
        };
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

    /// A row that the server has acknowledged, and what it is known to hold. Draws again where a row is not
    /// there; `None` if that goes on.
    pub(crate) fn pick(&mut self, states: &RowStates, draw: u64) -> Option<(u64, RowState)> {
        let high = states.high();
        let mut draws = Draws::new(draw);
        for _ in 0..TRIES {
            if high == 0 {
                return None;
            }
            let number = match self.pick {
                Pick::Uniform => draws.below(high),
                Pick::Zipf(_) => self.rank(),
                Pick::Latest(_) => match high.checked_sub(1 + self.rank()) {
                    Some(number) => number,
                    None => continue,
                },
            };
            // What lies beyond the rows is drawn again: the law holds among those that there are.
            if number >= high {
                continue;
            }
            let state = states.get(number);
            if matches!(state, RowState::Acknowledged | RowState::Updated) {
                return Some((number, state));
            }
        }
        None
    }
}
