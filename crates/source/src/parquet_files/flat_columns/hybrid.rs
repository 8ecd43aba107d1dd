//! Decodes runs of one value mixed with runs of bit-packed values: definition levels and dictionary indices
//! (<https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE>).
//!
//! ```text
//! bytes ─▶ headers of runs ─▶ pieces: a value and how often, or bits ─▶ a bitmap, or entries of a dictionary
//! ```

use arrow_buffer::BooleanBufferBuilder;
use bytes::Bytes;

use super::NotRead;

/// The bytes not yet decoded.
pub(super) struct Hybrid {
    bytes: Bytes,
    /// The position of the next run's header.
    at: usize,
    /// Number of bits of a value.
    width: usize,
    run: Run,
}

/// The values of a run not yet decoded.
#[derive(Clone, Copy)]
enum Run {
    Same {
        value: u32,
        left: usize,
    },
    /// Bit-packed values, starting at a bit of the bytes.
    Packed {
        bit: usize,
        left: usize,
    },
}

impl Hybrid {
    /// Returns a decoder of values of `width` bits, at most 32.
    pub(super) fn new(bytes: Bytes, width: u8) -> Result<Self, NotRead> {
        if width > 32 {
            return Err(NotRead);
        }
        Ok(Self { bytes, at: 0, width: width.into(), run: Run::Same { value: 0, left: 0 } })
    }

    /// Splits off at most `most` values of the next run.
    #[inline(always)]
    fn piece(&mut self, most: usize) -> Result<Run, NotRead> {
        loop {
            match &mut self.run {
                Run::Same { left: 0, .. } | Run::Packed { left: 0, .. } => self.next_run()?,
                Run::Same { value, left } => {
                    let taken = most.min(*left);
                    *left -= taken;
                    return Ok(Run::Same { value: *value, left: taken });
                }
                Run::Packed { bit, left } => {
                    let piece = Run::Packed { bit: *bit, left: most.min(*left) };
                    *left -= most.min(*left);
                    *bit += most * self.width;
                    return Ok(piece);
                }
            }
        }
    }

    fn next_run(&mut self) -> Result<(), NotRead> {
        // Seven bits per byte, at most 32 bits in total.
        let mut header = 0u64;
        for shift in (0..).step_by(7) {
            let byte = *self.bytes.get(self.at).filter(|_| shift < 35).ok_or(NotRead)?;
            self.at += 1;
            header |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let count = (header >> 1) as usize;
        if count == 0 {
            // An empty run: padding, or corrupt bytes.
            return Err(NotRead);
        }
        if header & 1 == 0 {
            let length = self.width.div_ceil(8);
            let value = self.bytes.get(self.at..self.at + length).ok_or(NotRead)?;
            self.at += length;
            let value = value.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
            self.run = Run::Same { value, left: count };
        } else {
            // Some writers truncate the last run after its last value.
            let length = (count * self.width).min(self.bytes.len() - self.at);
            let left = (length * 8).checked_div(self.width).map_or(count * 8, |held| held.min(count * 8));
            self.run = Run::Packed { bit: self.at * 8, left };
            self.at += length;
            if left == 0 {
                return Err(NotRead);
            }
        }
        Ok(())
    }

    /// Appends `levels` levels of one bit each to a bitmap.
    pub(super) fn bits(&mut self, levels: usize, bitmap: &mut BooleanBufferBuilder) -> Result<(), NotRead> {
        let mut missing = levels;
        while missing > 0 {
            match self.piece(missing)? {
                // No level: the other decoder decides.
                Run::Same { value: 2.., .. } => return Err(NotRead),
                Run::Same { value, left } => {
                    bitmap.append_n(left, value == 1);
                    missing -= left;
                }
                Run::Packed { bit, left } => {
                    bitmap.append_packed_range(bit..bit + left, &self.bytes);
                    missing -= left;
                }
            }
        }
        Ok(())
    }

    /// Appends the dictionary entries at the next `count` indices.
    pub(super) fn entries<T: Copy + Default>(
        &mut self,
        count: usize,
        dictionary: &[T],
        to: &mut Vec<T>,
    ) -> Result<(), NotRead> {
        let mut missing = count;
        while missing > 0 {
            match self.piece(missing)? {
                Run::Same { value, left } => {
                    let entry = *dictionary.get(value as usize).ok_or(NotRead)?;
                    to.extend(std::iter::repeat_n(entry, left));
                    missing -= left;
                }
                Run::Packed { bit, left } => {
                    look_up(&self.bytes, bit, self.width, left, dictionary, to)?;
                    missing -= left;
                }
            }
        }
        Ok(())
    }
}

/// Appends the entries at `count` indices of `width` bits, starting at a bit, the lowest bits first.
fn look_up<T: Copy + Default>(
    bytes: &[u8],
    mut bit: usize,
    width: usize,
    count: usize,
    dictionary: &[T],
    to: &mut Vec<T>,
) -> Result<(), NotRead> {
    let mut missing = count;
    // If an index begins at the start of a byte, so does the index eight places later.
    while !bit.is_multiple_of(8) && missing > 0 {
        to.push(*dictionary.get(index(bytes, bit, width)).ok_or(NotRead)?);
        (bit, missing) = (bit + width, missing - 1);
    }
    let from = bytes.get(bit / 8..).unwrap_or_default();
    macro_rules! by_width {
        ($($w:literal)*) => {
            match width {
                $($w => eights::<T, $w>(from, missing / 8, dictionary, to)?,)*
                _ => 0,
            }
        };
    }
    let done = 8 * by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24);
    for i in done..missing {
        to.push(*dictionary.get(index(bytes, bit + i * width, width)).ok_or(NotRead)?);
    }
    Ok(())
}

/// Looks up at most `groups` groups of eight indices, while at least 32 bytes remain. Returns the number of
/// groups.
#[inline(never)]
fn eights<T: Copy + Default, const W: usize>(
    bytes: &[u8],
    groups: usize,
    dictionary: &[T],
    to: &mut Vec<T>,
) -> Result<usize, NotRead> {
    let mask = (1u64 << W) - 1;
    let mut from = bytes;
    let (mut done, mut beyond) = (0, false);
    while done < groups
        && let Some(window) = from.first_chunk::<32>()
    {
        let word = |bit: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&window[bit / 8..bit / 8 + 8]);
            u64::from_le_bytes(word) >> (bit % 8)
        };
        let all = word(0);
        let mut entries = [T::default(); 8];
        for (i, entry) in entries.iter_mut().enumerate() {
            let index = if W <= 8 { all >> (i * W) } else { word(i * W) } & mask;
            match dictionary.get(index as usize) {
                Some(there) => *entry = *there,
                None => beyond = true,
            }
        }
        to.extend_from_slice(&entries);
        from = &from[W..];
        done += 1;
    }
    if beyond { Err(NotRead) } else { Ok(done) }
}

/// Returns the number that starts at a bit; bits after the end are zero.
fn index(bytes: &[u8], bit: usize, width: usize) -> usize {
    let from = bytes.get(bit / 8..).unwrap_or_default();
    let mut word = [0; 8];
    let length = from.len().min(8);
    word[..length].copy_from_slice(&from[..length]);
    let mask = (1u64 << width) - 1;
    (u64::from_le_bytes(word) >> (bit % 8) & mask) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs the bits of numbers, the lowest first, padded to a whole byte.
    fn packed(numbers: &[u32], width: usize) -> Vec<u8> {
        let mut bytes = vec![0; (numbers.len() * width).div_ceil(8)];
        for (i, number) in numbers.iter().enumerate() {
            for bit in (0..width).filter(|bit| number >> bit & 1 == 1) {
                let at = i * width + bit;
                bytes[at / 8] |= 1 << (at % 8);
            }
        }
        bytes
    }

    /// The dictionary maps each number below 2^16 to itself.
    fn read(hybrid: &mut Hybrid, count: usize) -> Result<Vec<u32>, NotRead> {
        let dictionary: Vec<u32> = (0..1 << 16).collect();
        let mut read = Vec::new();
        hybrid.entries(count, &dictionary, &mut read).map(|()| read)
    }

    #[test]
    fn numbers_of_every_width_are_unpacked_however_they_are_read() {
        for width in 0..=32usize {
            let most = ((1u64 << width.min(16)) - 1) as u32;
            let numbers: Vec<u32> =
                (0..96u32).map(|i| i.wrapping_mul(0x9E37_79B9).rotate_left(i) & most).collect();
            let mut bytes = vec![12 << 1 | 1];
            bytes.extend(packed(&numbers, width));
            bytes.push(5 << 1);
            bytes.extend(&most.to_le_bytes()[..width.div_ceil(8)]);
            for pause in [1, 7, 8, 50, 96, 101] {
                let mut hybrid = Hybrid::new(bytes.clone().into(), width as u8).unwrap();
                let mut all = read(&mut hybrid, pause).unwrap();
                all.extend(read(&mut hybrid, 101 - pause).unwrap());
                assert_eq!(all[..96], numbers, "{width} bits, {pause} first");
                assert_eq!(all[96..], [most; 5]);
                assert!(read(&mut hybrid, 1).is_err(), "the values have ended");
            }
        }
    }

    #[test]
    fn levels_become_a_bitmap() {
        let mut hybrid = Hybrid::new(vec![3 << 1, 1, 1 << 1 | 1, 0b1010_0110, 2 << 1, 0].into(), 1).unwrap();
        let mut bitmap = BooleanBufferBuilder::new(0);
        for levels in [2, 5, 6] {
            hybrid.bits(levels, &mut bitmap).unwrap();
        }
        let bits: Vec<u8> = bitmap.finish().iter().map(u8::from).collect();
        assert_eq!(bits, [1, 1, 1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0]);
        assert!(hybrid.bits(1, &mut bitmap).is_err());
    }

    #[test]
    fn the_last_run_may_end_after_its_last_value() {
        let mut hybrid = Hybrid::new(vec![2 << 1 | 1, 0b11_10_01_00, 0b11].into(), 2).unwrap();
        assert_eq!(read(&mut hybrid, 6).unwrap(), [0, 1, 2, 3, 3, 0]);
        assert!(Hybrid::new(vec![].into(), 33).is_err());
        for empty in [vec![], vec![0], vec![1], vec![2 << 1], vec![0xff; 9]] {
            assert!(read(&mut Hybrid::new(empty.clone().into(), 9).unwrap(), 3).is_err(), "{empty:?}");
        }
    }
}
