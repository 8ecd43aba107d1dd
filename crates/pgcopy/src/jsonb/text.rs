//! Writes jsonb strings.

use crate::arrays::fault::{Fault, shown};

/// Appends a string in quotation marks, escaped as by `escape_json` (src/backend/utils/adt/json.c):
/// two-character escapes for `"` `\` and \b \f \n \r \t, four hexadecimal digits in lower case for the other
/// bytes below 0x20, everything else unchanged. Rejects 0x00, which jsonb cannot represent.
pub(crate) fn write_string(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte < 0x20 || *byte == b'"' || *byte == b'\\') {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0 => {
                let value = shown(&String::from_utf8_lossy(text));
                return Err(Fault::new(
                    0,
                    format!("the text {value} contains 0x00, which PostgreSQL cannot store"),
                ));
            }
            control => {
                out.extend_from_slice(b"\\u00");
                write_hex(&[control], out);
            }
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
    Ok(())
}

/// Appends two lower-case hexadecimal digits per byte.
pub fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

/// Appends the five groups of a UUID.
pub fn write_uuid(bytes: &[u8], out: &mut Vec<u8>) {
    for (i, part) in bytes.chunks(2).enumerate() {
        if (2..=5).contains(&i) {
            out.push(b'-');
        }
        write_hex(part, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_the_server_escapes_them() {
        let mut out = Vec::new();
        write_string("a\"\\\u{8}\u{c}\n\r\t\u{1}\u{1f}\u{7f}é/".as_bytes(), &mut out).unwrap();
        let expected = "\"a\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\u{7f}é/\"";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        assert!(write_string(b"a\0", &mut Vec::new()).is_err());
    }
}
