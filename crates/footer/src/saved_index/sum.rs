//! Checksums that detect damaged or replaced bytes. They do not protect against deliberate forgery.
//!
//! Each step of a lane can be undone, so that a change of one word of eight bytes always changes the sum.

/// Lanes that do not wait for one another: one alone is bound by the time that a multiplication takes.
const LANES: usize = 4;

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The sum of nothing.
pub(crate) const START: u64 = 0xcbf2_9ce4_8422_2325;

/// The sum with one more word. As FNV-1a, by words: the rotation brings the high bits, which no product reaches, down.
#[inline]
pub(crate) fn with_word(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(FACTOR).rotate_left(29)
}

fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.iter_mut().zip(bytes).for_each(|(to, &from)| *to = from);
    u64::from_le_bytes(word)
}

/// The sum of the bytes, one word after the other.
#[inline]
pub(crate) fn with_bytes(sum: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(sum, |sum, bytes| with_word(sum, word_of(bytes)))
}

/// The sum of many bytes and of how many they are.
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

/// The sum of a column chunk's struct, in four bytes.
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
