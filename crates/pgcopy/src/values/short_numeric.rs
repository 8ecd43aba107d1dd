//! Numerics of up to four base-10000 digits, as most are: two words each, computed for all rows of a block
//! without a branch that depends on a value.
//!
//! ```text
//! 12345678, scale 3 ─▶ 123456780 ─▶ digits 0000 0001 2345 6780 ─▶ header: 3 digits, weight 1, sign, scale
//!                                                                 digits: 0001 2345 6780 ----
//! ```
//!
//! The format is the same as in [`numeric`](super::numeric), which writes all others.

use super::numeric::{NEGATIVE, aligned};
use crate::arrays::integers::Integers;
use crate::rows::valid::Valid;

/// The bytes of a numeric after the length of its field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortNumeric {
    /// Number of digits, weight, sign and display scale, 16 bits each.
    header: u64,
    /// The digits, 16 bits each, the highest first, padded with zeros.
    digits: u64,
}

impl ShortNumeric {
    /// Returns the numeric of `magnitude`, which is below 10^16; `fraction` of its four digits follow the
    /// decimal point.
    #[inline(always)]
    fn new(negative: bool, magnitude: u64, fraction: u64, display: u16) -> Self {
        let (high, low) = ((magnitude / 100_000_000) as u32, (magnitude % 100_000_000) as u32);
        let digits = [high / 10_000, high % 10_000, low / 10_000, low % 10_000];
        let digits = digits.iter().fold(0, |word, digit| word << 16 | u64::from(*digit));
        // For zero, both counts cover all four digits.
        let leading = u64::from(digits.leading_zeros() / 16);
        let trailing = u64::from(digits.trailing_zeros() / 16);
        let some = digits != 0;
        let count = if some { 4 - leading - trailing } else { 0 };
        let weight = if some { 3u64.wrapping_sub(leading + fraction) & 0xffff } else { 0 };
        let sign = if some && negative { u64::from(NEGATIVE) } else { 0 };
        let header = count << 48 | weight << 32 | sign << 16 | u64::from(display);
        Self { header, digits: digits.checked_shl(16 * leading as u32).unwrap_or(0) }
    }

    fn digits_bytes(self) -> u32 {
        (self.header >> 48) as u32 * 2
    }

    /// Returns the number of bytes after the length.
    pub(crate) fn length(self) -> u32 {
        8 + self.digits_bytes()
    }

    /// The bytes of the longest field.
    pub(crate) const MAX_BYTES: usize = 20;

    /// Writes length and value at the start of `field`; returns their number of bytes. The bytes after them
    /// stay unchanged.
    #[inline(always)]
    pub(crate) fn write(self, field: &mut [u8]) -> u32 {
        let length = self.length();
        let mut there = [0; 8];
        there.copy_from_slice(&field[12..Self::MAX_BYTES]);
        let there = u64::from_be_bytes(there);
        let beyond = u64::MAX.checked_shr(8 * self.digits_bytes()).unwrap_or(0);
        field[..4].copy_from_slice(&length.to_be_bytes());
        field[4..12].copy_from_slice(&self.header.to_be_bytes());
        field[12..Self::MAX_BYTES].copy_from_slice(&(self.digits | there & beyond).to_be_bytes());
        4 + length
    }
}

impl Integers<'_> {
    /// Fills `short` with the rows from `first` on, arbitrary for a NULL. Returns false if a value is too
    /// long, or has a rare type.
    #[inline(never)]
    pub(crate) fn short_numerics(
        &self,
        first: usize,
        valid: &Valid,
        rows: usize,
        (scale, display): (u16, u16),
        short: &mut Vec<ShortNumeric>,
    ) -> bool {
        let (fraction, pad) = aligned(scale);
        let factor = [1u64, 10, 100, 1000][pad];
        let end = 10_000_000_000_000_000 / factor;
        short.clear();
        short.resize(rows, ShortNumeric { header: 0, digits: 0 });
        let mut all = true;
        macro_rules! each {
            ($values:expr, $of:expr) => {
                for (row, (value, short)) in $values[first..first + rows].iter().zip(short).enumerate() {
                    let (negative, magnitude): (bool, u64) = $of(*value);
                    if magnitude < end {
                        *short = ShortNumeric::new(negative, magnitude * factor, fraction as u64, display);
                    } else {
                        all &= !valid.is_valid(row);
                    }
                }
            };
        }
        match self {
            Integers::Int32(values) => each!(values, |n: i32| (n < 0, n.unsigned_abs().into())),
            Integers::Int64(values) => each!(values, |n: i64| (n < 0, n.unsigned_abs())),
            Integers::UInt64(values) => each!(values, |n| (false, n)),
            Integers::Int128(values) => {
                each!(values, |n: i128| match i64::try_from(n) {
                    Ok(n) => (n < 0, n.unsigned_abs()),
                    Err(_) => (false, u64::MAX),
                });
            }
            _ => return false,
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::values::numeric::write_u128;

    proptest! {
        #[test]
        fn short_numerics_equal_the_general_encoding_and_leave_the_bytes_after_them(
            values in proptest::collection::vec(
                prop_oneof![any::<i64>(), -20_000..20_000i64, (-9999..9999i64).prop_map(|n| n * 10_000)],
                1..20,
            ),
            scale in 0..20u16,
            display in 0..20u16,
        ) {
            for value in values {
                let mut expected = Vec::new();
                write_u128(value < 0, value.unsigned_abs().into(), scale, display, &mut expected);
                let narrow = [value];
                let wide = [i128::from(value)];
                for integers in [Integers::Int64(&narrow), Integers::Int128(&wide)] {
                    let mut short = Vec::new();
                    let fits = integers.short_numerics(0, &Valid::all(), 1, (scale, display), &mut short);
                    prop_assert_eq!(fits, value.unsigned_abs().checked_mul(
                        [1, 1000, 100, 10][usize::from(scale) % 4]
                    ).is_some_and(|aligned| aligned < 10u64.pow(16)));
                    if fits {
                        let mut field = [0xaa; ShortNumeric::MAX_BYTES];
                        let bytes = short[0].write(&mut field) as usize;
                        prop_assert_eq!(bytes, 4 + expected.len());
                        prop_assert_eq!(&field[..4], (expected.len() as u32).to_be_bytes());
                        prop_assert_eq!(&field[4..bytes], &expected[..]);
                        prop_assert!(field[bytes..].iter().all(|byte| *byte == 0xaa));
                    }
                }
            }
        }
    }
}
