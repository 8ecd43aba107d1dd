//! The result of a run, and the faults that are drawn for it.

use super::coverage::Coverage;
use super::draw::Draw;
use super::fault::Fault;

/// The result of a run.
pub struct Outcome {
    pub violation: Option<String>,
    pub coverage: Coverage,
    pub history: Vec<String>,
    /// Turns of its threads, or requests to a store.
    pub turns: u64,
}

/// Draws `number` faults over `steps` steps, in the order of the steps.
pub fn drawn_faults(draw: &mut Draw, number: u64, steps: u64) -> Vec<(u64, Fault)> {
    let mut faults: Vec<(u64, Fault)> =
        (0..number).map(|_| (draw.below(steps), draw.of(&Fault::ALL))).collect();
    faults.sort_unstable_by_key(|(at, _)| *at);
    faults
}

/// Removes the faults that start the command twice; returns whether there were any.
pub fn starts_twice(faults: &mut Vec<(u64, Fault)>) -> bool {
    faults.extract_if(.., |(_, fault)| *fault == Fault::Twice).count() > 0
}
