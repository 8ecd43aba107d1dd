//! Logarithm, exponential, power, sine and cosine: the same bits on every platform.
//!
//! The standard library's `f64::ln`, `exp` and `powf` call the system's C library. Their last bit differs
//! between glibc, musl and macOS, and within glibc between processors with and without fused multiply-add.
//! The crate `libm` is plain Rust and only uses operations that IEEE 754 rounds correctly. All bytes of a
//! file are computed with these functions; `clippy.toml` forbids the others.

/// The natural logarithm.
pub(crate) fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// e to the power of `x`.
pub(crate) fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// e to the power of `x`, for draws: equal to [`exp`] except for the last bit, in a fifth of the time.
///
/// x = k ln 2 + r with |r| <= ln 2 / 2, so e^x = 2^k e^r. e^r is computed by its Taylor polynomial, whose
/// remainder after r^13 is less than 2^-57. It takes only additions and multiplications in a fixed order, so
/// the processor can work on several draws at once and every platform computes the same bits.
#[inline]
pub(crate) fn fast_exp(x: f64) -> f64 {
    /// ln 2 in two parts. The first ends in enough zeros to make its product with k exact.
    const LN_2: (f64, f64) = (f64::from_bits(0x3FE6_2E42_FEE0_0000), f64::from_bits(0x3DEA_39EF_3579_3C76));
    /// 1.5 * 2^52: adding it rounds to a whole number, which is then in the lowest bits. Subtracting it
    /// restores the value.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    /// 1 / n!
    const C: [f64; 14] = {
        let (mut c, mut n) = ([1.0; 14], 1);
        while n < 14 {
            c[n] = c[n - 1] / n as f64;
            n += 1;
        }
        c
    };
    // Whether 2^k is a normal double. False for NaN.
    let ordinary = x.abs() < 708.0;
    if !ordinary {
        return exp(x);
    }
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (x - k * LN_2.0) - k * LN_2.1;
    let (r2, pair) = (r * r, |n: usize| C[n] + C[n + 1] * r);
    let r4 = r2 * r2;
    let low = pair(2) + pair(4) * r2;
    let middle = pair(6) + pair(8) * r2;
    let high = pair(10) + pair(12) * r2;
    let power = 1.0 + (r + r2 * (low + middle * r4 + high * (r4 * r4)));
    power * f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

pub(crate) fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// The sine of an angle in radians.
pub(crate) fn sin(x: f64) -> f64 {
    libm::sin(x)
}

/// The cosine of an angle in radians.
pub(crate) fn cos(x: f64) -> f64 {
    libm::cos(x)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The distance between two positive doubles, counted in doubles.
    fn apart(a: f64, b: f64) -> u64 {
        a.to_bits().abs_diff(b.to_bits())
    }

    #[test]
    fn sine_and_cosine_have_the_same_bits_everywhere() {
        assert_eq!([sin(1.0).to_bits(), cos(1.0).to_bits()], [0x3FEA_ED54_8F09_0CEE, 0x3FE1_4A28_0FB5_068C]);
    }

    #[test]
    fn the_fast_exponential_equals_libm_except_for_the_last_bit() {
        for i in 0..2_000_000u32 {
            let unit = f64::from(i) / 2e6 - 0.5;
            for x in [unit * 1416.0, unit * 20.0, unit * 1e-3] {
                assert!(apart(fast_exp(x), exp(x)) <= 1, "{x}: {} {}", fast_exp(x), exp(x));
            }
        }
        for x in [0.0, -0.0, 1.0, 709.7, 710.0, -745.0, -746.0, f64::INFINITY, f64::NEG_INFINITY, 5e-324] {
            assert!(apart(fast_exp(x), exp(x)) <= 1, "{x}");
        }
        assert!(fast_exp(f64::NAN).is_nan() && fast_exp(0.0) == 1.0);
    }

    proptest! {
        #[test]
        fn the_fast_exponential_equals_libm_at_any_argument(x in -760.0..760.0f64) {
            prop_assert!(apart(fast_exp(x), exp(x)) <= 1);
        }
    }
}
