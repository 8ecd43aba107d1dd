//! Replaces `pages.rs` without the feature `fast`: safe code, which leaves pages and caches to the system.

use std::ops::Range;

use crate::memory::allocate;

/// Numbers, or arrays of them.
pub(crate) trait Number: Clone + Default {
    /// A vector of `len` zeros; `None` if memory is short.
    fn zeroed(len: usize) -> Option<Vec<Self>> {
        let mut zeros = allocate::with_room(len)?;
        zeros.resize(len, Self::default());
        Some(zeros)
    }
}

impl<T: Clone + Default> Number for T {}

pub(crate) fn advise<T>(_: &mut [T]) {}

#[inline(always)]
pub(crate) fn prefetch(_: &[u8], _: usize, _: usize) {}

#[inline(always)]
pub(crate) fn prefetch_range(_: &[u8], _: Range<usize>) {}

#[inline(always)]
pub(crate) fn prefetch_rows<T>(_: &[T]) {}
