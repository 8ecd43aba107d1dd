//! Varints of up to eight bytes, each in one step.

/// The top bit of every byte of a word.
pub(crate) const TOP_BITS: u64 = 0x8080_8080_8080_8080;

#[inline(always)]
pub(crate) fn word<const N: usize>(bytes: &[u8; N], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Drops the top bit of every byte and closes the gaps.
#[inline(always)]
fn compact(word: u64) -> u64 {
    let word = (word & 0x007f_007f_007f_007f) | ((word & 0x7f00_7f00_7f00_7f00) >> 1);
    let word = (word & 0x0000_3fff_0000_3fff) | ((word & 0x3fff_0000_3fff_0000) >> 2);
    (word & 0x0fff_ffff) | ((word & 0x0fff_ffff_0000_0000) >> 4)
}

/// Decodes the varint that starts the word; returns the number and the varint's length, or `None` for more than eight
/// bytes. Does not branch on the length, which no processor predicts if numbers vary in size, up to four bytes.
#[inline(always)]
pub(crate) fn unsigned(word: u64) -> Option<(u64, usize)> {
    let stops = !word & TOP_BITS;
    if stops == 0 {
        return None;
    }
    let last = stops.trailing_zeros();
    let value = if last < 32 {
        let word = word as u32 & u32::MAX >> (31 - last);
        let (low, high) = (word & 0x7f | word >> 1 & 0x3f80, word >> 2 & 0x1f_c000 | word >> 3 & 0xfe0_0000);
        u64::from(low | high)
    } else {
        compact(word & (u64::MAX >> (63 - last)) & !TOP_BITS)
    };
    Some((value, last as usize / 8 + 1))
}

/// Like [`unsigned`] for an integer.
#[inline(always)]
pub(crate) fn integer(word: u64) -> Option<(i64, usize)> {
    let (value, len) = unsigned(word)?;
    Some(((value >> 1) as i64 ^ -((value & 1) as i64), len))
}
