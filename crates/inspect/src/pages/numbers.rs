//! Reads the numbers of a page.

/// The bytes of a page that are still to be read.
#[derive(Clone, Copy)]
pub(crate) struct Numbers<'b>(pub &'b [u8]);

impl<'b> Numbers<'b> {
    pub(crate) fn left(&self) -> usize {
        self.0.len()
    }

    /// The next bytes; `None` if there are fewer.
    pub(crate) fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next varint; `None` if it is cut off, or longer than 64 bits.
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for (place, byte) in self.0.iter().enumerate().take(10) {
            // The tenth byte contains only the 64th bit.
            if place == 9 && *byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << (7 * place);
            if *byte < 0x80 {
                self.0 = &self.0[place + 1..];
                return Some(value);
            }
        }
        None
    }

    /// The next signed number.
    pub(crate) fn integer(&mut self) -> Option<i64> {
        self.varint().map(|value| (value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

/// The number of `width` bits, at most 32, that starts at a bit. Bits beyond the end are 0.
pub(crate) fn bits(packed: &[u8], start: u64, width: usize) -> u32 {
    let from = usize::try_from(start / 8).ok().and_then(|at| packed.get(at..)).unwrap_or_default();
    let mut word = [0; 8];
    let len = from.len().min(word.len());
    word[..len].copy_from_slice(&from[..len]);
    (u64::from_le_bytes(word) >> (start % 8) & ((1 << width) - 1)) as u32
}
