//! JSON tokens: text, floats, decimals, dates, as the loader writes them into request bodies.

use std::io::Write;

use arrow_schema::TimeUnit;
use sawmill_pgcopy::calendar::{civil, per_second};
use sawmill_pgcopy::{numeric, write_clock, write_hex};

/// Writing to a `Vec` cannot fail; this says so in one place.
macro_rules! put {
    ($out:expr, $($format:tt)*) => {{
        let written = write!($out, $($format)*);
        debug_assert!(written.is_ok(), "a Vec takes everything");
    }};
}

/// Appends a string in quotation marks. Only what JSON requires is escaped (RFC 8259, 7).
pub(crate) fn write_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = first_escaped(rest) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            control => {
                out.extend_from_slice(b"\\u00");
                write_hex(&[control], out);
            }
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Whether one of eight bytes has to be escaped: a control character, a quotation mark or a backslash.
#[inline]
fn any_escaped(word: u64) -> bool {
    // The high bit of a byte of `x - ONES & !x` is set where the byte of x is zero. It may also be set in bytes
    // above a zero byte, but nowhere else.
    let zero = |x: u64| x.wrapping_sub(ONES) & !x;
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = zero(word ^ (ONES * u64::from(b'"')));
    let backslash = zero(word ^ (ONES * u64::from(b'\\')));
    (control | quote | backslash) & HIGH != 0
}

/// Position of the first byte that has to be escaped, looking at 32 bytes at a time, then at eight.
#[inline]
fn first_escaped(text: &[u8]) -> Option<usize> {
    let escaped = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    // Without a way out of the loop the compiler compares all bytes of a block at once.
    let any = |block: &[u8; 32]| block.iter().fold(false, |any, byte| any | escaped(byte));
    let (blocks, rest) = text.as_chunks::<32>();
    let found = |at: usize, bytes: &[u8]| bytes.iter().position(escaped).map(|found| at + found);
    if let Some(i) = blocks.iter().position(any) {
        return found(i * 32, &blocks[i]);
    }
    let mut at = blocks.len() * 32;
    let (words, rest) = rest.as_chunks::<8>();
    for word in words {
        if any_escaped(u64::from_le_bytes(*word)) {
            return found(at, word);
        }
        at += 8;
    }
    match (text.last_chunk::<8>(), rest) {
        (_, []) => None,
        // The last eight bytes; the loop has checked some of them before.
        (Some(word), _) if !any_escaped(u64::from_le_bytes(*word)) => None,
        _ => found(at, rest),
    }
}

/// Appends an integer.
#[inline]
pub(crate) fn write_int(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a float: digits that read back the same, or a string where JSON has no number.
#[inline]
pub(crate) fn write_float(value: impl zmij::Float + Copy + Into<f64>, out: &mut Vec<u8>) {
    let special: &[u8] = match value.into() {
        double if double.is_nan() => b"\"NaN\"",
        f64::INFINITY => b"\"Infinity\"",
        f64::NEG_INFINITY => b"\"-Infinity\"",
        _ => return out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes()),
    };
    out.extend_from_slice(special);
}

/// Appends the text of a decimal: `digits` with the point moved by `from` places, filled up with zeros to
/// `to` places. Zero has no sign.
pub(crate) fn write_decimal(digits: &str, from: u8, to: u8, out: &mut Vec<u8>) {
    numeric::write_text(digits, from.into(), out);
    if from == 0 && to > 0 {
        out.push(b'.');
    }
    out.resize(out.len() + usize::from(to.saturating_sub(from)), b'0');
}

/// Appends a date of days since 1970 in ISO 8601. Years beyond 0..9999 carry a sign.
pub(crate) fn write_day(days: i64, out: &mut Vec<u8>) {
    let (year, month, day) = civil(days);
    match year {
        0..=9999 => put!(out, "{year:04}-{month:02}-{day:02}"),
        _ => put!(out, "{year:+07}-{month:02}-{day:02}"),
    }
}

/// Appends a timestamp in ISO 8601, with `Z` where it has a zone.
pub(crate) fn write_stamp(value: i64, unit: TimeUnit, zone: bool, out: &mut Vec<u8>) {
    let day = 86_400 * per_second(unit);
    write_day(value.div_euclid(day), out);
    out.push(b'T');
    write_clock(value.rem_euclid(day), unit, out);
    if zone {
        out.push(b'Z');
    }
}

/// Appends months, days and nanoseconds as an ISO 8601 duration.
pub(crate) fn write_interval(months: i64, days: i64, nanos: i64, out: &mut Vec<u8>) {
    put!(out, "P{months}M{days}DT");
    if nanos < 0 {
        out.push(b'-');
    }
    let nanos = nanos.unsigned_abs();
    put!(out, "{}", nanos / 1_000_000_000);
    if !nanos.is_multiple_of(1_000_000_000) {
        put!(out, ".{:09}", nanos % 1_000_000_000);
    }
    out.push(b'S');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn every_text_reads_back_the_same(value: String) {
            let written = text(|out| write_text(value.as_bytes(), out));
            prop_assert_eq!(serde_json::from_str::<String>(&written).unwrap(), value);
        }

        #[test]
        fn every_text_is_written_as_serde_json_does(value in "[ -~\\n\\r\\té\\x1f]{0,90}") {
            let ours = text(|out| write_text(value.as_bytes(), out));
            prop_assert_eq!(ours, serde_json::to_string(&value).unwrap());
        }

        #[test]
        fn every_double_reads_back_the_same(bits: u64, cents in -1_000_000_000_000i64..1_000_000_000_000) {
            for value in [f64::from_bits(bits), cents as f64 / 100.0, cents as f64 * 0.01, cents as f64] {
                let written = text(|out| write_float(value, out));
                if value.is_finite() {
                    prop_assert_eq!(written.parse::<f64>().unwrap().to_bits(), value.to_bits());
                }
            }
        }

        #[test]
        fn every_float_reads_back_the_same(bits: u32) {
            let value = f32::from_bits(bits);
            if value.is_finite() {
                let written = text(|out| write_float(value, out));
                prop_assert_eq!(written.parse::<f32>().unwrap().to_bits(), bits);
            }
        }
    }

    #[test]
    fn floats_are_written_short_and_specials_as_strings() {
        for (value, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (-17.5, "-17.5"),
            (17.05, "17.05"),
            (1e300, "1e+300"),
            (f64::NAN, "\"NaN\""),
            (f64::INFINITY, "\"Infinity\""),
            (f64::NEG_INFINITY, "\"-Infinity\""),
        ] {
            assert_eq!(text(|out| write_float(value, out)).replace("e300", "e+300"), expected);
        }
    }

    #[test]
    fn decimals_keep_all_places() {
        for (digits, from, to, expected) in [
            ("12345", 2, 2, "123.45"),
            ("-5", 2, 4, "-0.0500"),
            ("0", 0, 0, "0"),
            ("-0", 3, 3, "0.000"),
            ("7", 0, 2, "7.00"),
        ] {
            assert_eq!(text(|out| write_decimal(digits, from, to, out)), expected);
        }
    }

    #[test]
    fn moments_are_iso_8601() {
        assert_eq!(text(|out| write_day(19_782, out)), "2024-02-29");
        assert_eq!(text(|out| write_day(-719_529, out)), "-000001-12-31");
        assert_eq!(text(|out| write_stamp(-1, TimeUnit::Millisecond, false, out)), "1969-12-31T23:59:59.999");
        assert_eq!(
            text(|out| write_stamp(1_500_000, TimeUnit::Microsecond, true, out)),
            "1970-01-01T00:00:01.5Z"
        );
        assert_eq!(text(|out| write_clock(1, TimeUnit::Nanosecond, out)), "00:00:00.000000001");
        assert_eq!(text(|out| write_interval(14, 3, -1_500_000_000, out)), "P14M3DT-1.500000000S");
    }
}
