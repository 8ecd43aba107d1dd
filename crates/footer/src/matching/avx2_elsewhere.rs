//! Stands in for `avx2.rs` on other processors and without the feature `fast`: there is no kernel, and no chunk is
//! matched against a shape.

use crate::matching::kernel::{Task, Values};
use crate::matching::shape::Shape;

/// Never exists.
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
