//! Parses integers, floats, booleans, UUIDs, bytes and text of a limited length.

use std::num::IntErrorKind;
use std::str::FromStr;

use super::trimmed;

/// Most bytes of a `name` (`NAMEDATALEN` - 1 in src/include/pg_config_manual.h).
const MAX_NAME_LENGTH: usize = 63;

fn utf8(text: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(text).map_err(|_| "it is not valid UTF-8".to_owned())
}

/// Parses an integer in decimal digits.
pub(super) fn number<T: FromStr<Err = std::num::ParseIntError>>(text: &[u8]) -> Result<T, String> {
    let text = utf8(trimmed(text))?;
    let digits = text.strip_prefix('-').unwrap_or_default();
    // Types without a sign call it an invalid digit.
    let is_negative = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    text.parse::<T>().map_err(|error| match error.kind() {
        _ if is_negative => "it is out of range".to_owned(),
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "it is out of range".to_owned(),
        _ => "expected digits, with or without a sign".to_owned(),
    })
}

/// Whether the digits of a float are all zero. Other text parses to zero only if it is out of range.
fn says_zero(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    !mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
}

macro_rules! float {
    ($name:ident, $t:ty) => {
        /// Parses a decimal number, `NaN` or `Infinity` into the nearest float. Rejects numbers out of range.
        pub(super) fn $name(text: &[u8]) -> Result<$t, String> {
            let text = utf8(trimmed(text))?;
            let value: $t = text.parse().map_err(|_| "expected a decimal number".to_owned())?;
            let spelt = text.bytes().any(|byte| matches!(byte, b'i' | b'I'));
            match value {
                value if value.is_nan() && text.len() != 3 => Err("NaN cannot have a sign".to_owned()),
                value if (value.is_infinite() && !spelt) || (value == 0.0 && !says_zero(text)) => {
                    Err("it is out of range".to_owned())
                }
                value => Ok(value),
            }
        }
    };
}
float!(real, f32);
float!(double, f64);

/// Parses `true`, `yes`, `on`, `1`, their opposites, or an unambiguous prefix of one (`parse_bool` in
/// src/backend/utils/adt/bool.c).
pub(super) fn boolean(text: &[u8]) -> Result<bool, String> {
    let word = trimmed(text).to_ascii_lowercase();
    let begins = |whole: &[u8], least: usize| word.len() >= least && whole.starts_with(&word);
    if begins(b"true", 1) || begins(b"yes", 1) || begins(b"on", 2) || word == b"1" {
        return Ok(true);
    }
    if begins(b"false", 1) || begins(b"no", 1) || begins(b"off", 2) || word == b"0" {
        return Ok(false);
    }
    Err("expected true, false, yes, no, on, off, 1 or 0".to_owned())
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// Parses 32 hexadecimal digits, with optional hyphens after groups of four and optional braces
/// (`string_to_uuid` in src/backend/utils/adt/uuid.c).
pub(super) fn uuid(text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let refused = || "expected 32 hexadecimal digits, as in 01234567-89ab-cdef-0123-456789abcdef".to_owned();
    let inner = text.strip_prefix(b"{").map_or(Some(text), |rest| rest.strip_suffix(b"}"));
    let mut rest = inner.ok_or_else(refused)?;
    for i in 0..16 {
        let (Some((pair, after)), true) = (rest.split_first_chunk::<2>(), true) else {
            return Err(refused());
        };
        let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else { return Err(refused()) };
        out.push(high << 4 | low);
        rest = after;
        if i % 2 == 1 && i < 15 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
    }
    if rest.is_empty() { Ok(()) } else { Err(refused()) }
}

/// Parses `\x` and pairs of hexadecimal digits.
pub(super) fn bytea(text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let refused = || "expected \\x and pairs of hexadecimal digits".to_owned();
    let digits = text.strip_prefix(b"\\x").ok_or_else(refused)?;
    if digits.len() % 2 == 1 {
        return Err(refused());
    }
    for pair in digits.chunks_exact(2) {
        let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else { return Err(refused()) };
        out.push(high << 4 | low);
    }
    Ok(())
}

/// Returns `text` unchanged. Rejects text that contains 0x00.
pub(super) fn without_nul(text: &[u8]) -> Result<&[u8], String> {
    match memchr::memchr(0, text) {
        None => Ok(text),
        Some(at) => Err(format!("it contains 0x00 at byte {at}, which PostgreSQL cannot store")),
    }
}

/// Appends text of at most `length` characters. The server would cut blanks beyond them silently.
pub(super) fn varchar(text: &[u8], length: u32, out: &mut Vec<u8>) -> Result<(), String> {
    let text = utf8(without_nul(text)?)?;
    match text.chars().count() {
        characters if characters > length as usize => Err(format!("it has {characters} characters")),
        _ => {
            out.extend_from_slice(text.as_bytes());
            Ok(())
        }
    }
}

/// Appends text padded with blanks. Drops blanks beyond the length, which are not significant in this type.
pub(super) fn char(text: &[u8], length: u32, out: &mut Vec<u8>) -> Result<(), String> {
    let text = utf8(without_nul(text)?)?;
    let characters = text.chars().count();
    let length = length as usize;
    match text.char_indices().nth(length) {
        None => {
            out.extend_from_slice(text.as_bytes());
            out.resize(out.len() + length - characters, b' ');
        }
        Some((end, _)) if text[end..].bytes().all(|byte| byte == b' ') => {
            out.extend_from_slice(&text.as_bytes()[..end]);
        }
        Some(_) => return Err(format!("it has {characters} characters")),
    }
    Ok(())
}

/// Appends an identifier.
pub(super) fn name(text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let text = without_nul(text)?;
    if text.len() > MAX_NAME_LENGTH {
        return Err(format!("it has {} bytes, a name {MAX_NAME_LENGTH} at most", text.len()));
    }
    out.extend_from_slice(text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn a_negative_number_is_out_of_range_for_a_type_without_a_sign() {
        assert_eq!(number::<u32>(b"-1").unwrap_err(), "it is out of range");
        assert_eq!(number::<i32>(b"-1"), Ok(-1));
        for text in ["-", "--1", "x", ""] {
            let error = number::<u32>(text.as_bytes()).unwrap_err();
            assert!(error.starts_with("expected digits"), "{text}: {error}");
        }
    }
}
