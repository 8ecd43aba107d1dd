//! Views that contain their value
//! (<https://arrow.apache.org/docs/format/Columnar.html#variable-size-binary-view-layout>): a 32-bit length,
//! up to 12 bytes, and zeros beyond these.

/// Length of the longest value that a view contains.
pub(crate) const INLINE: usize = 12;

/// For each length of a value, the bits of its view that follow the value.
pub(crate) const BEYOND: [u128; INLINE + 1] = {
    let mut masks = [0; INLINE + 1];
    let mut length = 0;
    while length < INLINE {
        masks[length] = u128::MAX << (8 * (4 + length));
        length += 1;
    }
    masks
};
