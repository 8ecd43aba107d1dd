//! Where stacks cannot be sampled: nothing of these types is ever made.

use std::convert::Infallible;

use crate::watch::folded_stacks::FoldedStacks;

pub(super) struct Collector(Infallible);

impl Collector {
    pub(super) fn start() -> Result<Self, &'static str> {
        Err("there is no sampler here")
    }

    pub(super) fn stop(self) -> Option<SampledStacks> {
        match self.0 {}
    }
}

/// The stacks of a sampled run; there are none where stacks cannot be sampled.
#[derive(Clone, Debug)]
pub struct SampledStacks(Infallible);

impl SampledStacks {
    /// The stacks with names.
    pub fn named(&self) -> FoldedStacks {
        match self.0 {}
    }
}
