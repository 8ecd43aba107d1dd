//! Memory whose amount is read from a file: where there is not enough of it, that is an error of this file and not
//! the end of the process.

use std::alloc::{Layout, alloc_zeroed};
use std::mem::MaybeUninit;

use crate::error::{Error, Fault, FaultKind};
use crate::thrift::cursor::Step;

/// What to do where there is too little.
pub(crate) const ADVICE: &str = "give the process more memory; or, if the file should not need as much, it is damaged: write or copy it again";

/// Numbers, which may be zeros.
///
/// # Safety
///
/// Zeros in all bytes are a value of the type, and it has a size.
pub(crate) unsafe trait Number {}

// SAFETY: they are.
unsafe impl Number for u8 {}
// SAFETY: as their elements, of which they have some.
unsafe impl Number for [u32; 4] {}
// SAFETY: likewise.
unsafe impl Number for [u32; 8] {}

/// So many zeros; none where there is no memory for them.
pub(crate) fn zeroed<T: Number>(len: usize) -> Option<Vec<T>> {
    if len == 0 {
        return Some(Vec::new());
    }
    let layout = Layout::array::<T>(len).ok()?;
    // A vector that is reserved and then filled with zeros has every page written twice.
    // SAFETY: the layout's size is not zero.
    let start = unsafe { alloc_zeroed(layout) }.cast::<T>();
    // SAFETY: the global allocator gave this memory for an array of so many elements, all of which are zeros and so
    // values of the type, and nobody else owns it.
    (!start.is_null()).then(|| unsafe { Vec::from_raw_parts(start, len, len) })
}

/// As [`zeroed`], for `what`.
pub(crate) fn zeroed_for(what: &str, len: usize) -> Result<Vec<u8>, Error> {
    zeroed(len).ok_or_else(|| too_little(what, len))
}

/// An empty vector with room for so many elements, and no more; none where there is no memory for them.
pub(crate) fn with_room<T>(len: usize) -> Option<Vec<T>> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(len).ok()?;
    Some(vec)
}

/// As [`with_room`], for what stands at byte `at` of a footer.
pub(crate) fn with_room_at<T>(at: usize, len: usize) -> Step<Vec<T>> {
    with_room(len).ok_or_else(|| {
        let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
        Fault::new(at, FaultKind::Memory { bytes })
    })
}

/// Room for so many elements of which none is written; none where there is no memory for them.
pub(crate) fn unwritten<T>(len: usize) -> Option<Vec<MaybeUninit<T>>> {
    let mut vec = with_room::<MaybeUninit<T>>(len)?;
    // SAFETY: there is room for as many, and such elements need not be written.
    unsafe { vec.set_len(len) };
    Some(vec)
}

/// The error for too little memory for `what`, of so many bytes.
pub(crate) fn too_little(what: &str, bytes: usize) -> Error {
    Error::new(format!("expected memory for {what} of {bytes} bytes, found too little")).with_advice(ADVICE)
}

#[cfg(test)]
mod tests {
    use super::{unwritten, with_room, zeroed};

    #[test]
    fn what_no_machine_has_is_refused_without_an_abort() {
        assert!(zeroed::<u8>(isize::MAX as usize).is_none());
        assert!(zeroed::<u8>(usize::MAX).is_none());
        assert!(with_room::<u64>(usize::MAX / 16).is_none());
        assert!(unwritten::<[u64; 4]>(usize::MAX / 40).is_none());
        assert_eq!(zeroed(3), Some(vec![0u8; 3]));
        assert_eq!(zeroed(0), Some(Vec::<u8>::new()));
    }
}
