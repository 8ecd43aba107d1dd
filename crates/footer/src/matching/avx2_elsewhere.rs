//! Replaces `avx2.rs` on other processors and without the feature `fast`: without a kernel, chunks are not matched
//! against shapes.

use crate::matching::kernel::{Task, Values};
use crate::matching::shape::Shape;

/// Cannot be constructed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Avx2 {}

impl Avx2 {
    pub fn detect() -> Option<Self> {
        None
    }

    pub fn enter<T: Task>(self, task: T) -> T::Output {
        task.run(self)
    }

    pub fn step<const VALUES: bool, const LANES: usize>(
        self,
        _: &[u8],
        _: [usize; LANES],
        _: &Shape,
        _: &mut [Values; LANES],
    ) -> [usize; LANES] {
        match self {}
    }
}
