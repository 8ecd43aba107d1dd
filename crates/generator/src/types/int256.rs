//! Whole numbers of 256 bits: unscaled decimals of up to 76 digits.

use std::ops::{Add, Neg, Sub};

/// A number in two's complement; the order of the halves is its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Int256 {
    high: i128,
    low: u128,
}

const HALF: f64 = (1u128 << 127) as f64 * 2.0;

impl Int256 {
    /// 10^`digits`, of at most 76.
    pub(crate) fn power_of_ten(digits: u8) -> Self {
        Int256::from(1).shifted(digits.into()).unwrap_or(Int256 { high: i128::MAX, low: u128::MAX })
    }

    /// Ten times the number and a `digit`; `None` if it has more than 256 bits.
    pub(crate) fn with_digit(self, digit: u8) -> Option<Self> {
        let below = (self.low & u128::from(u64::MAX)) * 10 + u128::from(digit);
        let above = (self.low >> 64) * 10 + (below >> 64);
        let high = self.high.checked_mul(10)?.checked_add((above >> 64) as i128)?;
        Some(Int256 { high, low: above << 64 | below & u128::from(u64::MAX) })
    }

    /// The number times 10^`places`; `None` if it has more than 256 bits.
    pub(crate) fn shifted(self, places: u32) -> Option<Self> {
        (0..places).try_fold(self, |number, _| number.with_digit(0))
    }

    /// The number, if it has at most 128 bits.
    pub(crate) fn narrow(self) -> Option<i128> {
        let low = self.low as i128;
        (self.high == low >> 127).then_some(low)
    }

    pub(crate) fn real(self) -> f64 {
        self.narrow().map_or_else(|| self.high as f64 * HALF + self.low as f64, |narrow| narrow as f64)
    }

    /// The nearest number; `None` for NaN, infinity and numbers of more than 253 bits.
    pub(crate) fn nearest(value: f64) -> Option<Self> {
        let rounded = value.abs().round();
        let high = (rounded / HALF).floor();
        // The rest is exact: a double has 53 bits.
        let magnitude = Int256 { high: high as i128, low: (rounded - high * HALF) as u128 };
        (high < HALF / 8.0).then_some(if value < 0.0 { -magnitude } else { magnitude })
    }

    /// The number in the bytes `big_endian`, sign-extended; at most 32 of them.
    pub(crate) fn from_bytes(big_endian: &[u8]) -> Self {
        let negative = big_endian.first().is_some_and(|byte| byte & 0x80 != 0);
        let mut bytes = [if negative { 0xFF } else { 0 }; 32];
        let n = big_endian.len().min(32);
        bytes[32 - n..].copy_from_slice(&big_endian[big_endian.len() - n..]);
        let half = |at: usize| bytes[at..at + 16].iter().fold(0, |n: u128, byte| n << 8 | u128::from(*byte));
        Int256 { high: half(0) as i128, low: half(16) }
    }

    /// Its bytes, the highest first.
    pub(crate) fn bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.high.to_be_bytes());
        bytes[16..].copy_from_slice(&self.low.to_be_bytes());
        bytes
    }

    /// Scales 256 uniform bits to `0..n`: the upper half of their product. `n` is positive.
    pub(crate) fn scaled(bits: [u64; 4], n: Int256) -> Int256 {
        let n = [n.low as u64, (n.low >> 64) as u64, n.high as u64, (n.high >> 64) as u64];
        let mut product = [0u64; 8];
        for (i, bits) in bits.into_iter().enumerate() {
            let mut carried = 0;
            for (j, n) in n.into_iter().enumerate() {
                let sum = u128::from(product[i + j]) + u128::from(bits) * u128::from(n) + carried;
                product[i + j] = sum as u64;
                carried = sum >> 64;
            }
            product[i + 4] = carried as u64;
        }
        let half = |at: usize| u128::from(product[at + 1]) << 64 | u128::from(product[at]);
        Int256 { high: half(6) as i128, low: half(4) }
    }
}

impl From<i128> for Int256 {
    fn from(number: i128) -> Self {
        Int256 { high: number >> 127, low: number as u128 }
    }
}

/// Decimals are far from overflow: they have at most 254 bits.
impl Add for Int256 {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (low, carries) = self.low.overflowing_add(other.low);
        Int256 { high: self.high.wrapping_add(other.high).wrapping_add(carries.into()), low }
    }
}

impl Neg for Int256 {
    type Output = Self;

    fn neg(self) -> Self {
        Int256 { high: !self.high, low: !self.low } + Int256::from(1)
    }
}

impl Sub for Int256 {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use arrow_buffer::i256;

    fn known(number: Int256) -> i256 {
        i256::from_be_bytes(number.bytes())
    }

    proptest! {
        #[test]
        fn arithmetic_is_that_of_256_bits(a in any::<i128>(), b in any::<i128>(), digits in 0u8..38) {
            let (x, y) = (Int256::from(a).shifted(digits.into()), Int256::from(b));
            let power = i256::from_i128(10i128.pow(digits.into()));
            let exact = i256::from_i128(a).checked_mul(power);
            prop_assert_eq!(x.map(known), exact);
            if let (Some(x), Some(exact)) = (x, exact) {
                prop_assert_eq!(known(x + y), exact.wrapping_add(i256::from_i128(b)));
                prop_assert_eq!(known(x - y), exact.wrapping_sub(i256::from_i128(b)));
                prop_assert_eq!(x < y, exact < i256::from_i128(b));
                prop_assert_eq!(x.narrow(), exact.to_i128());
                prop_assert_eq!(Int256::from_bytes(&x.bytes()), x);
                prop_assert!((Int256::nearest(x.real()).unwrap().real() - x.real()).abs() <= x.real().abs() * 1e-15);
            }
        }
    }

    #[test]
    fn uniform_bits_reach_both_ends() {
        let n = Int256::power_of_ten(76);
        assert_eq!(Int256::scaled([0; 4], n), Int256::from(0));
        assert_eq!(Int256::scaled([u64::MAX; 4], n), n - Int256::from(1));
        assert_eq!(Int256::scaled([0, 0, 0, 1 << 63], Int256::from(7)), Int256::from(3));
    }

    #[test]
    fn real_numbers_become_the_nearest_whole_ones() {
        assert_eq!(Int256::nearest(-2.5), Some(Int256::from(-3)));
        assert_eq!(Int256::nearest(2f64.powi(200)).map(Int256::real), Some(2f64.powi(200)));
        assert_eq!(Int256::nearest(-(2f64.powi(200))).map(Int256::real), Some(-(2f64.powi(200))));
        assert_eq!(Int256::nearest(f64::NAN), None);
        assert_eq!(Int256::nearest(1e80), None);
    }
}
