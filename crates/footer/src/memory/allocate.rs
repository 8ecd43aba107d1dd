//! Allocates memory whose size is read from a file: if there is not enough, the result is an error about this
//! file instead of the end of the process.

use std::alloc::{Layout, alloc_zeroed};
use std::mem::MaybeUninit;

use crate::error::{Error, Fault, FaultKind};
use crate::thrift::cursor::Step;

/// The advice if memory is short.
pub(crate) const ADVICE: &str = "give the process more memory; or, if the file should not need as much, it is damaged: write or copy it again";

/// Types for which zeroed memory is a valid value.
///
/// # Safety
///
/// All-zero bytes must be a value of the type, and its size must not be zero.
pub(crate) unsafe trait Number {}

// SAFETY: zero is a `u8`, of size 1.
unsafe impl Number for u8 {}
// SAFETY: a non-empty array of numbers.
unsafe impl Number for [u32; 4] {}
// SAFETY: a non-empty array of numbers.
unsafe impl Number for [u32; 8] {}

/// A vector of `len` zeros; `None` if memory is short.
pub(crate) fn zeroed<T: Number>(len: usize) -> Option<Vec<T>> {
    if len == 0 {
        return Some(Vec::new());
    }
    let layout = Layout::array::<T>(len).ok()?;
    // Reserving a vector and filling it with zeros would write every page twice. SAFETY: the layout's size is
    // not zero.
    let start = unsafe { alloc_zeroed(layout) }.cast::<T>();
    // SAFETY: the global allocator returned this memory for an array of `len` elements; all are zero, so
    // valid values of the type, and the memory has no other owner.
    (!start.is_null()).then(|| unsafe { Vec::from_raw_parts(start, len, len) })
}

/// Like [`zeroed`], with an error that names `what`.
pub(crate) fn zeroed_for(what: &str, len: usize) -> Result<Vec<u8>, Error> {
    zeroed(len).ok_or_else(|| too_little(what, len))
}

/// An empty vector with room for exactly `len` elements; `None` if memory is short.
pub(crate) fn with_room<T>(len: usize) -> Option<Vec<T>> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(len).ok()?;
    Some(vec)
}

/// Like [`with_room`], for a value at byte `at` of a footer.
pub(crate) fn with_room_at<T>(at: usize, len: usize) -> Step<Vec<T>> {
    with_room(len).ok_or_else(|| {
        let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
        Fault::new(at, FaultKind::Memory { bytes })
    })
}

/// A vector of `len` unwritten elements; `None` if memory is short.
pub(crate) fn unwritten<T>(len: usize) -> Option<Vec<MaybeUninit<T>>> {
    let mut vec = with_room::<MaybeUninit<T>>(len)?;
    // SAFETY: there is room for `len` elements, and these need not be written.
    unsafe { vec.set_len(len) };
    Some(vec)
}

/// Reports that allocating `bytes` bytes for `what` failed.
pub(crate) fn too_little(what: &str, bytes: usize) -> Error {
    Error::new(format!("expected memory for {what} of {bytes} bytes, found too little")).with_advice(ADVICE)
}

#[cfg(test)]
mod tests {
    use super::{unwritten, with_room, zeroed};

    #[test]
    fn impossible_sizes_are_rejected_without_an_abort() {
        assert!(zeroed::<u8>(isize::MAX as usize).is_none());
        assert!(zeroed::<u8>(usize::MAX).is_none());
        assert!(with_room::<u64>(usize::MAX / 16).is_none());
        assert!(unwritten::<[u64; 4]>(usize::MAX / 40).is_none());
        assert_eq!(zeroed(3), Some(vec![0u8; 3]));
        assert_eq!(zeroed(0), Some(Vec::<u8>::new()));
    }
}
