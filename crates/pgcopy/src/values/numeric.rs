//! Writes PostgreSQL's `numeric` for the wire, and as text within jsonb.
//!
//! On the wire (`numeric_send` in src/backend/utils/adt/numeric.c): the number of base-10000 digits, the
//! weight of the first, the sign, the display scale, then the digits, each 16 bits. The server strips zero
//! digits at both ends and writes zero with a weight and a sign of 0. This encoder does the same, because
//! content sums compare bytes.

use arrow_buffer::i256;

pub(crate) const NEGATIVE: u16 = 0x4000;
/// The sign word of NaN (`NUMERIC_NAN`).
pub(crate) const NAN: u16 = 0xc000;
/// Base-10000 digits of the widest input of 128 bits: 39 decimal digits and up to three of alignment.
const MAX_DIGITS: usize = 11;
/// Most base-10000 digits that the server accepts on the wire: `NUMERIC_MAX_PRECISION +
/// NUMERIC_MAX_RESULT_SCALE` (`numeric_recv` in src/backend/utils/adt/numeric.c).
const MAX_GROUPS: usize = 3000;

/// Appends an integer `magnitude` times 10^-`scale` with display scale `display`.
pub fn write_u128(negative: bool, magnitude: u128, scale: u16, display: u16, out: &mut Vec<u8>) {
    let mut digits = [0u16; MAX_DIGITS];
    let (fraction, pad) = aligned(scale);
    let factor = [1u64, 10, 100, 1000][pad];
    // The digit groups are aligned to the decimal point. u128 division is slow, and most values fit into u64
    // after alignment. The last group of a wider value is split off before the multiplication, so that
    // nothing overflows.
    let mut count = 0;
    let mut push = |digit: u64| {
        digits[count] = digit as u16;
        count += 1;
    };
    match u64::try_from(magnitude).ok().and_then(|small| small.checked_mul(factor)) {
        Some(mut small) => {
            while small > 0 {
                push(small % 10_000);
                small /= 10_000;
            }
        }
        None => {
            let unit = 10_000 / factor;
            push((magnitude % u128::from(unit)) as u64 * factor);
            let mut rest = magnitude / u128::from(unit);
            while rest > 0 {
                match u64::try_from(rest) {
                    Ok(mut small) => {
                        while small > 0 {
                            push(small % 10_000);
                            small /= 10_000;
                        }
                        rest = 0;
                    }
                    Err(_) => {
                        push((rest % 10_000) as u64);
                        rest /= 10_000;
                    }
                }
            }
        }
    }
    finish(negative, &digits[..count], fraction, display, out);
}

/// Appends an `i256` times 10^-`scale`. Values of more than 128 bits are converted through their decimal
/// text.
pub fn write_i256(value: i256, scale: u16, display: u16, out: &mut Vec<u8>) {
    if let Some(small) = value.to_i128() {
        return write_u128(small < 0, small.unsigned_abs(), scale, display, out);
    }
    let text = value.to_string();
    let digits: Vec<u8> = text.trim_start_matches('-').bytes().map(|digit| digit - b'0').collect();
    let before = digits.len() as i64 - i64::from(scale);
    // Its digits are fewer than the server accepts.
    let _ = write_digits(text.starts_with('-'), &digits, before, display, out);
}

/// Appends a number of these decimal digits, `before` of them before the decimal point; negative if zeros follow the
/// point first. The error says that there are more than the server accepts.
pub(crate) fn write_digits(
    negative: bool,
    digits: &[u8],
    before: i64,
    display: u16,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let end = digits.iter().rposition(|digit| *digit != 0).map_or(0, |last| last + 1);
    let digits = &digits[..end];
    // The first digit counts 10^(before - 1); its group begins at a multiple of four.
    let first = before - 1;
    let (weight, pad) = (first.div_euclid(4), 3 - first.rem_euclid(4) as usize);
    let groups = if digits.is_empty() { 0 } else { (pad + digits.len()).div_ceil(4) };
    if groups > MAX_GROUPS {
        return Err(format!("it takes {groups} groups of four digits; the server accepts {MAX_GROUPS}"));
    }
    let (weight, sign) = match groups {
        0 => (0, 0),
        _ => (weight as i16, if negative { NEGATIVE } else { 0 }),
    };
    for word in [groups as u16, weight as u16, sign, display] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    for group in 0..groups {
        let at = |place: usize| (4 * group + place).checked_sub(pad).and_then(|i| digits.get(i).copied());
        let value = (0..4).fold(0, |sum, place| sum * 10 + u16::from(at(place).unwrap_or(0)));
        out.extend_from_slice(&value.to_be_bytes());
    }
    Ok(())
}

/// Returns the digit groups of the fraction, and the zeros that pad the last of them.
pub(crate) fn aligned(scale: u16) -> (usize, usize) {
    let fraction = usize::from(scale).div_ceil(4);
    (fraction, fraction * 4 - usize::from(scale))
}

/// Appends the numeric of `digits`, the least significant first, `fraction` of them after the decimal point.
fn finish(negative: bool, digits: &[u16], fraction: usize, display: u16, out: &mut Vec<u8>) {
    let top = digits.iter().rposition(|digit| *digit != 0).map_or(0, |last| last + 1);
    let low = digits[..top].iter().position(|digit| *digit != 0).unwrap_or(0);
    let stored = &digits[low..top];
    let (weight, sign) = match stored.is_empty() {
        true => (0, 0),
        false => (top as i16 - 1 - fraction as i16, if negative { NEGATIVE } else { 0 }),
    };
    out.extend_from_slice(&(stored.len() as u16).to_be_bytes());
    out.extend_from_slice(&weight.to_be_bytes());
    out.extend_from_slice(&sign.to_be_bytes());
    out.extend_from_slice(&display.to_be_bytes());
    for digit in stored.iter().rev() {
        out.extend_from_slice(&digit.to_be_bytes());
    }
}

/// Appends the decimal text of `digits` (an integer's text) with the decimal point moved `scale` places, as
/// `numeric_out` prints it: always `scale` places, zero without a sign.
pub fn write_text(integer: &str, scale: u16, out: &mut Vec<u8>) {
    let (negative, digits) = integer.strip_prefix('-').map_or((false, integer), |digits| (true, digits));
    let scale = usize::from(scale);
    if negative && digits.bytes().any(|digit| digit != b'0') {
        out.push(b'-');
    }
    let whole = digits.len().saturating_sub(scale);
    match whole {
        0 => out.push(b'0'),
        _ => out.extend_from_slice(&digits.as_bytes()[..whole]),
    }
    if scale > 0 {
        out.push(b'.');
        out.resize(out.len() + scale.saturating_sub(digits.len()), b'0');
        out.extend_from_slice(&digits.as_bytes()[whole..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(write: impl Fn(&mut Vec<u8>)) -> Vec<i16> {
        let mut out = Vec::new();
        write(&mut out);
        out.chunks(2).map(|pair| i16::from_be_bytes([pair[0], pair[1]])).collect()
    }

    #[test]
    fn digits_align_to_the_decimal_point_and_lose_zeros_at_both_ends() {
        // 12345.678: groups 1, 2345, 6780; weight 1.
        assert_eq!(words(|out| write_u128(false, 12_345_678, 3, 3, out)), [3, 1, 0, 3, 1, 2345, 6780]);
        assert_eq!(words(|out| write_u128(true, 50_000, 0, 0, out)), [1, 1, 0x4000, 0, 5]);
        assert_eq!(words(|out| write_u128(false, 0, 2, 2, out)), [0, 0, 0, 2]);
        assert_eq!(words(|out| write_u128(true, 1, 5, 5, out)), [1, -2, 0x4000, 5, 1000]);
    }

    #[test]
    fn text_has_the_full_scale_and_zero_has_no_sign() {
        let text = |integer: &str, scale| {
            let mut out = Vec::new();
            write_text(integer, scale, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text("-12345", 2), "-123.45");
        assert_eq!(text("5", 3), "0.005");
        assert_eq!(text("-5", 1), "-0.5");
        assert_eq!(text("0", 2), "0.00");
        assert_eq!(text("70", 0), "70");
    }

    proptest! {
        #[test]
        fn wide_and_narrow_values_are_written_alike(value in any::<i128>(), scale in 0u16..38) {
            let mut narrow = Vec::new();
            write_u128(value < 0, value.unsigned_abs(), scale, scale, &mut narrow);
            let word = |i: usize| i16::from_be_bytes([narrow[2 * i], narrow[2 * i + 1]]);
            let (count, weight) = (word(0), word(1));
            let mut digits = String::new();
            for i in 0..count {
                digits.push_str(&format!("{:04}", word(4 + i as usize)));
            }
            let places = i32::from(count - 1 - weight) * 4;
            let missing = i32::from(scale) - places;
            if missing >= 0 {
                digits.push_str(&"0".repeat(missing as usize));
            } else {
                digits.truncate(digits.len() - (-missing) as usize);
            }
            let magnitude: u128 = if count == 0 { 0 } else { digits.parse().unwrap() };
            prop_assert_eq!(magnitude, value.unsigned_abs());
        }
    }
}
