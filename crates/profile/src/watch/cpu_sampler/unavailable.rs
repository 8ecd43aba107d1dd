//! Replaces the sampler on systems where stacks cannot be sampled: values of these types never exist.

use std::convert::Infallible;

use crate::watch::folded_stacks::FoldedStacks;

#[derive(Debug)]
pub(super) struct Collector(Infallible);

impl Collector {
    pub(super) fn start() -> Result<Self, &'static str> {
        Err("no sampler on this system")
    }

    pub(super) fn stop(self) -> Option<SampledStacks> {
        match self.0 {}
    }
}

/// The stacks of a sampled run; never exists where stacks cannot be sampled.
#[derive(Clone, Debug)]
pub struct SampledStacks(Infallible);

impl SampledStacks {
    /// The stacks with names.
    pub fn named(&self) -> FoldedStacks {
        match self.0 {}
    }
}
