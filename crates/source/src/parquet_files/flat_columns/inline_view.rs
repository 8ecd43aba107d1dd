//! Views that hold their value
//! (<https://arrow.apache.org/docs/format/Columnar.html#variable-size-binary-view-layout>): a 32-bit length, up to 12
//! bytes, and zeros beyond these.

/// The longest value that is in its view.
pub(crate) const INLINE: usize = 12;

/// The bits of such a view that are beyond a value of so many bytes.
pub(crate) const BEYOND: [u128; INLINE + 1] = {
    let mut masks = [0; INLINE + 1];
    let mut length = 0;
    while length < INLINE {
        masks[length] = u128::MAX << (8 * (4 + length));
        length += 1;
    }
    masks
};
