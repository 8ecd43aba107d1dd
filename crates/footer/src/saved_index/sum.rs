//! Checksums that detect damaged or replaced bytes. They do not protect against deliberate forgery.
//!
//! Each step of a lane is invertible, so changing one eight-byte word always changes the sum.

/// The number of independent lanes: a single one is limited by the latency of multiplication.
const LANES: usize = 4;

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The sum of no bytes.
pub(crate) const START: u64 = 0xcbf2_9ce4_8422_2325;

/// Adds a word to the sum. Like FNV-1a on words; the rotation moves the high bits down, which no product
/// reaches.
#[inline]
pub(crate) fn with_word(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(FACTOR).rotate_left(29)
}

fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.iter_mut().zip(bytes).for_each(|(to, &from)| *to = from);
    u64::from_le_bytes(word)
}

/// Adds bytes to the sum, word by word.
#[inline]
pub(crate) fn with_bytes(sum: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(sum, |sum, bytes| with_word(sum, word_of(bytes)))
}

/// The sum of the bytes and their number.
pub(crate) fn of(bytes: &[u8]) -> u64 {
    let mut lanes: [u64; LANES] = std::array::from_fn(|lane| START.wrapping_add(lane as u64));
    let (blocks, rest) = bytes.as_chunks::<{ 8 * LANES }>();
    for block in blocks {
        for (lane, bytes) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane = with_word(*lane, u64::from_le_bytes(*bytes));
        }
    }
    let sum = lanes.into_iter().fold(with_word(START, bytes.len() as u64), with_word);
    with_bytes(sum, rest)
}

/// The four-byte sum of a column chunk's struct.
#[inline]
pub(crate) fn of_chunk(bytes: &[u8]) -> u32 {
    let sum = with_bytes(with_word(START, bytes.len() as u64), bytes);
    (sum ^ sum >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_one_byte_changes_a_sum() {
        let bytes: Vec<u8> = (0..200_u8).collect();
        let (expected, expected_of_chunk) = (of(&bytes), of_chunk(&bytes));
        for at in 0..bytes.len() {
            for change in 1..=255 {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                assert_ne!(of(&changed), expected, "{change} at {at}");
                assert_ne!(of_chunk(&changed), expected_of_chunk, "{change} at {at}");
            }
            assert_ne!(of(&bytes[..at]), expected);
        }
    }
}
