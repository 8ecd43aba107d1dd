//! Allocates memory whose size is read from a file: if there is not enough, the result is an error about this
//! file instead of the end of the process.

use crate::error::{Error, Fault, FaultKind, Result};
use crate::memory::pages::Number;
use crate::thrift::cursor::Step;

/// The advice if memory is short.
pub(crate) const ADVICE: &str = "give the process more memory; or, if the file should not need as much, it is damaged: write or copy it again";

/// A vector of `len` zeros; `None` if memory is short.
pub(crate) fn zeroed<T: Number>(len: usize) -> Option<Vec<T>> {
    T::zeroed(len)
}

/// Like [`zeroed`], with an error that names `what`.
pub(crate) fn zeroed_for(what: &str, len: usize) -> Result<Vec<u8>> {
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

/// Reports that allocating `bytes` bytes for `what` failed.
pub(crate) fn too_little(what: &str, bytes: usize) -> Error {
    Error::new(format!("expected memory for {what} of {bytes} bytes, found too little")).with_advice(ADVICE)
}

#[cfg(test)]
mod tests {
    use super::{with_room, zeroed};

    #[test]
    fn impossible_sizes_are_rejected_without_an_abort() {
        assert!(zeroed::<u8>(isize::MAX as usize).is_none());
        assert!(zeroed::<u8>(usize::MAX).is_none());
        assert!(with_room::<u64>(usize::MAX / 16).is_none());
        assert!(zeroed::<[u64; 4]>(usize::MAX / 40).is_none());
        assert_eq!(zeroed(3), Some(vec![0u8; 3]));
        assert_eq!(zeroed(0), Some(Vec::<u8>::new()));
    }
}
