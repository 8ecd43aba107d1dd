//! Decimal digits written eight at a time, into arrays whose room is known beforehand.
//!
//! Eight digits are made in one 64-bit register by three rounds of halving (four and four digits, two and
//! two, one and one), each by a multiplication instead of a division; zeros in front are shifted out. So
//! numbers of up to eight digits take no branch at all, whatever their length.

/// 10 to the power of 0..=19.
pub(crate) const POWERS: [u64; 20] = {
    let mut powers = [1; 20];
    let mut i = 1;
    while i < 20 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

const EIGHT: u64 = 100_000_000;
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The digits of a number below 10^8 as values 0 to 9, the first one in the lowest byte.
#[inline]
fn eight(number: u64) -> u64 {
    debug_assert!(number < EIGHT);
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    // x / 100 = x * 10486 >> 20 for x < 10,000, and x / 10 = x * 103 >> 10 for x < 100.
    let high = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = high | ((fours - high * 100) << 16);
    let high = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    high | ((twos - high * 10) << 8)
}

/// The digits of a number below 10,000 in the same way, behind four zeros.
#[inline]
fn four(number: u64) -> u64 {
    debug_assert!(number < 10_000);
    let high = (number * 10_486) >> 20;
    let twos = high | ((number - high * 100) << 16);
    let high = ((twos * 103) >> 10) & 0x000f_000f;
    (high | ((twos - high * 10) << 8)) << 32
}

/// Writes the digits of a number below 10^8 at `at`; returns where they end. Eight bytes are touched.
#[inline]
fn put_short<const N: usize>(out: &mut [u8; N], at: usize, number: u64) -> usize {
    let digits = if number < 10_000 { four(number) } else { eight(number) };
    // The last digit stays, also of zero.
    let zeros = ((digits | 1 << 56).trailing_zeros() / 8) as usize;
    put_word(out, at, (digits | ZEROS) >> (8 * zeros));
    at + 8 - zeros
}

/// Writes a number of hundredths with its point at `at`, and one or two places behind it; returns where they
/// end. There has to be room for 24 bytes.
#[inline]
pub(crate) fn put_hundredths<const N: usize>(out: &mut [u8; N], at: usize, number: u64) -> usize {
    if number >= EIGHT {
        return put_many_hundredths(out, at, number);
    }
    let digits = if number < 10_000 { four(number) } else { eight(number) };
    // Three digits stay.
    let zeros = ((digits | 1 << 40).trailing_zeros() / 8) as usize;
    put_word(out, at, (digits | ZEROS) >> (8 * zeros));
    let point = at + 6 - zeros;
    put_places(out, point, ((digits | ZEROS) >> 48) as u16)
}

#[inline(never)]
fn put_many_hundredths<const N: usize>(out: &mut [u8; N], at: usize, number: u64) -> usize {
    let point = put_number(out, at, number / 100);
    put_places(out, point, u16::from_le_bytes(two(number % 100)))
}

#[inline]
fn put_places<const N: usize>(out: &mut [u8; N], point: usize, places: u16) -> usize {
    out[point] = b'.';
    out[point + 1..point + 3].copy_from_slice(&places.to_le_bytes());
    point + 3 - usize::from(places >> 8 == u16::from(b'0'))
}

/// Writes the last `width` (at most eight) digits of a number below 10^`width`, zeros in front included.
#[inline]
fn put_filled<const N: usize>(out: &mut [u8; N], at: usize, number: u64, width: usize) -> usize {
    put_word(out, at, (eight(number) | ZEROS) >> (64 - 8 * width as u32));
    at + width
}

#[inline]
fn put_word<const N: usize>(out: &mut [u8; N], at: usize, word: u64) {
    out[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

/// Writes a number at `at`; returns where it ends. There has to be room for 20 digits rounded up to 24.
#[inline]
pub(crate) fn put_number<const N: usize>(out: &mut [u8; N], at: usize, number: u64) -> usize {
    if number < EIGHT {
        return put_short(out, at, number);
    }
    put_long(out, at, number)
}

#[inline(never)]
fn put_long<const N: usize>(out: &mut [u8; N], at: usize, number: u64) -> usize {
    let (high, low) = (number / EIGHT, number % EIGHT);
    let at = match high < EIGHT {
        true => put_short(out, at, high),
        false => {
            let at = put_short(out, at, high / EIGHT);
            put_filled(out, at, high % EIGHT, 8)
        }
    };
    put_filled(out, at, low, 8)
}

/// Writes the `width` (1 to 16) digits of a number below 10^`width`, zeros in front included; returns where
/// they end.
#[inline]
pub(crate) fn put_fraction<const N: usize>(out: &mut [u8; N], at: usize, number: u64, width: usize) -> usize {
    if width <= 8 {
        return put_filled(out, at, number, width);
    }
    let at = put_filled(out, at, number / EIGHT, width - 8);
    put_filled(out, at, number % EIGHT, 8)
}

/// Two digits of a number below 100.
#[inline]
pub(crate) fn two(number: u64) -> [u8; 2] {
    [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(value: u64) -> String {
        let mut out = [b'x'; 32];
        let end = put_number(&mut out, 1, value);
        String::from_utf8(out[1..end].to_vec()).unwrap()
    }

    proptest! {
        #[test]
        fn numbers_of_every_length_are_written_as_the_standard_library_does(value: u64, shift in 0u32..64) {
            prop_assert_eq!(number(value >> shift), (value >> shift).to_string());
        }

        #[test]
        fn fractions_keep_their_zeros(value: u64, width in 1usize..=16) {
            let value = value % POWERS[width];
            let mut out = [b'x'; 32];
            let end = put_fraction(&mut out, 3, value, width);
            prop_assert_eq!(String::from_utf8(out[3..end].to_vec()).unwrap(), format!("{value:0width$}"));
        }
    }

    #[test]
    fn hundredths_have_a_point_and_one_place_at_least() {
        for (number, expected) in [
            (0, "0.0"),
            (5, "0.05"),
            (10, "0.1"),
            (100, "1.0"),
            (1_234, "12.34"),
            (99_999_999, "999999.99"),
            (100_000_000, "1000000.0"),
            (123_456_789_012_345, "1234567890123.45"),
        ] {
            let mut out = [b'x'; 32];
            let end = put_hundredths(&mut out, 2, number);
            assert_eq!(String::from_utf8_lossy(&out[2..end]), expected);
        }
    }

    #[test]
    fn numbers_beside_every_power_of_ten_are_right() {
        for power in POWERS {
            for value in [power - 1, power, power + 1] {
                assert_eq!(number(value), value.to_string());
            }
        }
        assert_eq!(number(u64::MAX), u64::MAX.to_string());
        assert_eq!(two(7), *b"07");
    }

    #[test]
    fn all_short_numbers_below_a_million_are_right() {
        for value in 0..1_000_000 {
            assert_eq!(number(value), value.to_string());
        }
    }
}
