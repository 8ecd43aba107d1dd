//! The promises of a simulation: its seeds hold, are replayed, and find mistakes.

use crate::failed::FAILED;
use crate::world::coverage::Coverage;
use crate::world::fault::{Fault, Step};
use crate::world::mistake::Mistake;
use crate::world::run::run;
use crate::world::{PROTOCOL, SEEDS};

/// Runs these seeds; the first violation is an error that names its seed.
fn holds(seeds: impl IntoIterator<Item = u64>) -> Coverage {
    let mut coverage = Coverage::default();
    for seed in seeds {
        let outcome = run(seed, None, false);
        if let Some(violation) = outcome.violation {
            panic!("scripts/simulate --protocol {PROTOCOL} --seed {seed} --trace shows it: {violation}");
        }
        coverage.add(&outcome.coverage);
    }
    coverage
}

#[test]
fn seeds_that_failed_once_hold() {
    holds(FAILED.iter().copied());
}

#[test]
fn seeds_hold_and_meet_every_fault() {
    let coverage = holds(0..SEEDS);
    for fault in Fault::ALL {
        assert!(
            Step::ALL.iter().any(|step| coverage.of(fault, *step) > 0),
            "{fault:?} never happened\n{coverage}"
        );
    }
}

#[test]
fn a_seed_is_replayed() {
    for seed in 0..20 {
        let (first, second) = (run(seed, None, true), run(seed, None, true));
        assert!(first.history.len() > 10);
        assert_eq!(first.history, second.history, "seed {seed}");
        assert_eq!(first.turns, second.turns, "seed {seed}");
    }
}

#[test]
fn mistakes_are_found() {
    // Some need a rare order of events.
    let is_found =
        |mistake: &Mistake| (0..10 * SEEDS).any(|seed| run(seed, Some(*mistake), false).violation.is_some());
    let found: Vec<Mistake> = Mistake::ALL.into_iter().filter(is_found).collect();
    assert_eq!(found, Mistake::ALL);
}
