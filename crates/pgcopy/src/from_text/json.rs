//! Rewrites any valid JSON as the exact text that PostgreSQL prints for it as jsonb.
//!
//! [`jsonb`](crate::jsonb) states the rules; this module applies them to text from other writers: members
//! sorted by the length and the bytes of their keys, the last of equal keys, one blank after commas and
//! colons, strings with the escapes of `escape_json`, numbers as `numeric_out` prints them. It rejects what
//! PostgreSQL rejects: `\u0000`, lone surrogates, numbers out of the range of `numeric`.

use super::numeric::Decimal;
use crate::jsonb::text::write_string;

/// Most nested arrays and objects: far fewer than the server's stack allows, and safe on ours.
const MAX_DEPTH: usize = 500;

/// Appends the canonical form of `text`. The error names the problem and its byte.
pub(crate) fn write_canonical(text: &[u8], strip_nul: bool, out: &mut Vec<u8>) -> Result<(), String> {
    let mut reader = Reader { text, at: 0, strip_nul };
    let read = reader.value(out, MAX_DEPTH).and_then(|()| {
        reader.blanks();
        if reader.at == text.len() { Ok(()) } else { Err("expected the end of the value") }
    });
    read.map_err(|what| format!("{what} at byte {}", reader.at))
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    strip_nul: bool,
}

type Read<T = ()> = Result<T, &'static str>;

/// A member of an object: its key, and its place in the output.
struct ParsedMember {
    key: Vec<u8>,
    place: std::ops::Range<usize>,
}

impl Reader<'_> {
    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn value(&mut self, out: &mut Vec<u8>, deeper: usize) -> Read {
        self.blanks();
        match self.peek() {
            None => Err("expected a value"),
            Some(b'{' | b'[') if deeper == 0 => Err("more than 500 nested arrays and objects"),
            Some(b'{') => self.object(out, deeper - 1),
            Some(b'[') => self.array(out, deeper - 1),
            Some(b'"') => {
                let text = self.string()?;
                write_string(&text, out).map_err(|_| "\\u0000, which PostgreSQL cannot store")
            }
            Some(b'-' | b'0'..=b'9') => self.number(out),
            Some(_) => {
                for word in [b"true".as_slice(), b"false", b"null"] {
                    if self.text[self.at..].starts_with(word) {
                        self.at += word.len();
                        out.extend_from_slice(word);
                        return Ok(());
                    }
                }
                Err("invalid JSON value")
            }
        }
    }

    fn array(&mut self, out: &mut Vec<u8>, deeper: usize) -> Read {
        self.at += 1;
        out.push(b'[');
        self.blanks();
        if !self.take(b']') {
            loop {
                self.value(out, deeper)?;
                self.blanks();
                if self.take(b']') {
                    break;
                }
                if !self.take(b',') {
                    return Err("expected a comma or the end of the array");
                }
                out.extend_from_slice(b", ");
            }
        }
        out.push(b']');
        Ok(())
    }

    fn object(&mut self, out: &mut Vec<u8>, deeper: usize) -> Read {
        self.at += 1;
        out.push(b'{');
        let start = out.len();
        let mut members: Vec<ParsedMember> = Vec::new();
        self.blanks();
        if !self.take(b'}') {
            loop {
                if !members.is_empty() {
                    out.extend_from_slice(b", ");
                }
                self.blanks();
                let from = out.len();
                if self.peek() != Some(b'"') {
                    return Err("expected a key");
                }
                let key = self.string()?;
                write_string(&key, out).map_err(|_| "\\u0000, which PostgreSQL cannot store")?;
                self.blanks();
                if !self.take(b':') {
                    return Err("expected a colon");
                }
                out.extend_from_slice(b": ");
                self.value(out, deeper)?;
                members.push(ParsedMember { key, place: from..out.len() });
                self.blanks();
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return Err("expected a comma or the end of the object");
                }
            }
        }
        put_in_order(&mut members, start, out);
        out.push(b'}');
        Ok(())
    }

    /// Consumes a string; returns it with its escapes resolved.
    fn string(&mut self) -> Read<Vec<u8>> {
        self.at += 1;
        let mut text = Vec::new();
        loop {
            let plain =
                self.text[self.at..].iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f));
            let end = self.at + plain.count();
            text.extend_from_slice(&self.text[self.at..end]);
            self.at = end;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => self.escape(&mut text)?,
                Some(0) if self.strip_nul => self.at += 1,
                Some(_) => return Err("control character in a string"),
                None => return Err("unterminated string"),
            }
        }
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> Read {
        let escape = self.text.get(self.at + 1);
        text.push(match escape {
            Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let character = self.code_points()?;
                if character != '\0' || !self.strip_nul {
                    text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                return Ok(());
            }
            _ => return Err("invalid escape"),
        });
        self.at += 2;
        Ok(())
    }

    /// Consumes `\uXXXX`, or two of them that form a surrogate pair.
    fn code_points(&mut self) -> Read<char> {
        let first = self.code_unit()?;
        let code = match first {
            0xd800..=0xdbff => {
                let second = if self.text[self.at..].starts_with(b"\\u") { self.code_unit()? } else { 0 };
                if !(0xdc00..=0xdfff).contains(&second) {
                    return Err("lone surrogate");
                }
                0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            other => other,
        };
        char::from_u32(code).ok_or("lone surrogate")
    }

    fn code_unit(&mut self) -> Read<u32> {
        let digits =
            self.text.get(self.at + 2..self.at + 6).ok_or("expected four hexadecimal digits after \\u")?;
        let digit =
            |digit: &u8| char::from(*digit).to_digit(16).ok_or("expected four hexadecimal digits after \\u");
        let unit = digits.iter().try_fold(0, |sum, next| Ok::<u32, &'static str>(sum * 16 + digit(next)?))?;
        self.at += 6;
        Ok(unit)
    }

    fn number(&mut self, out: &mut Vec<u8>) -> Read {
        let start = self.at;
        let digits = |reader: &mut Self| {
            let from = reader.at;
            while matches!(reader.peek(), Some(b'0'..=b'9')) {
                reader.at += 1;
            }
            reader.at - from
        };
        self.take(b'-');
        let leading_zero = self.peek() == Some(b'0');
        let before = digits(self);
        if before == 0 || (leading_zero && before > 1) {
            return Err("invalid JSON number");
        }
        if self.take(b'.') && digits(self) == 0 {
            return Err("expected digits after the decimal point");
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'-') || self.take(b'+');
            if digits(self) == 0 {
                return Err("expected digits in the exponent");
            }
        }
        let decimal = Decimal::read(&self.text[start..self.at]).filter(Decimal::fits);
        write_number(&decimal.ok_or("the number is out of the range of PostgreSQL's numeric")?, out);
        Ok(())
    }
}

/// Writes a number as `numeric_out` prints it: all digits after the decimal point, no exponent, zero without
/// a sign.
fn write_number(decimal: &Decimal, out: &mut Vec<u8>) {
    if decimal.negative {
        out.push(b'-');
    }
    let digit = |place: i64| match usize::try_from(place).ok().and_then(|place| decimal.digits.get(place)) {
        Some(digit) => digit + b'0',
        None => b'0',
    };
    match decimal.digits.is_empty() || decimal.before <= 0 {
        true => out.push(b'0'),
        false => out.extend((0..decimal.before).map(digit)),
    }
    if decimal.scale > 0 {
        out.push(b'.');
        out.extend((0..decimal.scale).map(|place| digit(decimal.before + place)));
    }
}

/// Sorts the members of an object by the length and the bytes of their keys, and removes all but the last of
/// equal keys.
fn put_in_order(members: &mut Vec<ParsedMember>, start: usize, out: &mut Vec<u8>) {
    let order =
        |a: &ParsedMember, b: &ParsedMember| a.key.len().cmp(&b.key.len()).then_with(|| a.key.cmp(&b.key));
    if members.windows(2).all(|pair| order(&pair[0], &pair[1]).is_lt()) {
        return;
    }
    // Among equal keys later members come first, and `dedup_by` retains the first.
    members.reverse();
    members.sort_by(order);
    members.dedup_by(|next, retained| next.key == retained.key);
    let written = out.split_off(start);
    for (i, member) in members.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(&written[member.place.start - start..member.place.end - start]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> Result<String, String> {
        let mut out = Vec::new();
        write_canonical(text.as_bytes(), false, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn members_are_sorted_and_the_last_of_equal_keys_wins() {
        let sorted = canonical(" {\"bb\":1,\"c\":[ ],\"a\":{ },\"bb\":2,\"\\u0061\":3} ");
        assert_eq!(sorted.unwrap(), "{\"a\": 3, \"c\": [], \"bb\": 2}");
    }

    #[test]
    fn numbers_are_written_in_full_with_their_scale() {
        let numbers = "[1.10,-0,-0.0,1e2,1.50e1,12e-3,0e-2,1E+3]";
        assert_eq!(canonical(numbers).unwrap(), "[1.10, 0, 0.0, 100, 15.0, 0.012, 0.00, 1000]");
    }

    #[test]
    fn invalid_json_is_rejected_and_the_byte_is_named() {
        for bad in ["", "{", "[1,]", "01", "1.", "\"a", "{\"a\" 1}", "tru", "1 2", "\"\u{1}\"", "{1:2}", "-"]
        {
            assert!(canonical(bad).is_err(), "{bad}");
        }
        assert_eq!(canonical("[1, x]").unwrap_err(), "invalid JSON value at byte 4");
        assert!(canonical("\"\\u0000\"").unwrap_err().contains("cannot store"));
        assert!(canonical("\"\\ud800x\"").unwrap_err().contains("surrogate"));
        assert_eq!(canonical("\"\\ud83d\\ude00\"").unwrap(), "\"😀\"");
        assert!(canonical(&"[".repeat(100_000)).unwrap_err().contains("more than 500"));
        assert!(canonical("1e200000").unwrap_err().contains("numeric"));
    }
}
