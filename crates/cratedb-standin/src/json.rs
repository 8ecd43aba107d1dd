//! JSON that keeps the text of numbers: their meaning depends on the column.

use std::fmt::Write;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number's text.
    Number(String),
    /// A string, unescaped.
    Text(String),
    /// An array.
    Array(Vec<Json>),
    /// An object, in the order of the text.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses a complete text.
    pub fn parse(text: &str) -> Result<Json, String> {
        let mut parser = Parser { bytes: text.as_bytes(), at: 0 };
        let value = parser.value()?;
        parser.space();
        match parser.at == parser.bytes.len() {
            true => Ok(value),
            false => Err(format!("unexpected bytes after JSON at {}", parser.at)),
        }
    }

    /// A member of an object.
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn space(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, String> {
        match self.bytes[self.at..].starts_with(word.as_bytes()) {
            true => {
                self.at += word.len();
                Ok(value)
            }
            false => Err(format!("no JSON at {}", self.at)),
        }
    }

    fn value(&mut self) -> Result<Json, String> {
        self.space();
        match self.bytes.get(self.at) {
            None => Err("JSON ends too early".to_owned()),
            Some(b'n') => self.word("null", Json::Null),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'"') => Ok(Json::Text(self.text()?)),
            Some(b'[') => {
                self.at += 1;
                let mut items = Vec::new();
                if self.eat(b']') {
                    return Ok(Json::Array(items));
                }
                loop {
                    items.push(self.value()?);
                    if self.eat(b']') {
                        return Ok(Json::Array(items));
                    }
                    if !self.eat(b',') {
                        return Err(format!("expected , in an array at {}", self.at));
                    }
                }
            }
            Some(b'{') => {
                self.at += 1;
                let mut members = Vec::new();
                if self.eat(b'}') {
                    return Ok(Json::Object(members));
                }
                loop {
                    self.space();
                    let name = self.text()?;
                    if !self.eat(b':') {
                        return Err(format!("expected : in an object at {}", self.at));
                    }
                    members.push((name, self.value()?));
                    if self.eat(b'}') {
                        return Ok(Json::Object(members));
                    }
                    if !self.eat(b',') {
                        return Err(format!("expected , in an object at {}", self.at));
                    }
                }
            }
            Some(_) => {
                let rest = &self.bytes[self.at..];
                let end =
                    rest.iter().position(|byte| !b"+-.0123456789eE".contains(byte)).unwrap_or(rest.len());
                let text = String::from_utf8_lossy(&rest[..end]).into_owned();
                self.at += end;
                match text.parse::<f64>().is_ok() && !text.starts_with(['+', '.']) {
                    true => Ok(Json::Number(text)),
                    false => Err(format!("no JSON at {}", self.at)),
                }
            }
        }
    }

    fn text(&mut self) -> Result<String, String> {
        if self.bytes.get(self.at) != Some(&b'"') {
            return Err(format!("expected a string at {}", self.at));
        }
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let byte = *self.bytes.get(self.at).ok_or("a string is not closed")?;
            self.at += 1;
            match byte {
                b'"' => return String::from_utf8(out).map_err(|_| "a string is not UTF-8".to_owned()),
                b'\\' => {
                    let escape = *self.bytes.get(self.at).ok_or("a string is not closed")?;
                    self.at += 1;
                    match escape {
                        b'n' => out.push(b'\n'),
                        b'r' => out.push(b'\r'),
                        b't' => out.push(b'\t'),
                        b'b' => out.push(8),
                        b'f' => out.push(12),
                        b'u' => {
                            let mut code = self.hex()?;
                            if (0xd800..0xdc00).contains(&code) && self.bytes[self.at..].starts_with(b"\\u") {
                                self.at += 2;
                                code = 0x10000
                                    + ((code - 0xd800) << 10)
                                    + (self.hex()?.wrapping_sub(0xdc00) & 0x3ff);
                            }
                            let character = char::from_u32(code).unwrap_or('\u{fffd}');
                            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                        }
                        other => out.push(other),
                    }
                }
                0..0x20 => return Err("a string contains a control character".to_owned()),
                other => out.push(other),
            }
        }
    }

    fn hex(&mut self) -> Result<u32, String> {
        let digits = self.bytes.get(self.at..self.at + 4).ok_or("a string is not closed")?;
        self.at += 4;
        let digits = std::str::from_utf8(digits).map_err(|_| "expected hexadecimal digits")?;
        u32::from_str_radix(digits, 16).map_err(|_| "expected hexadecimal digits".to_owned())
    }
}

/// A string as JSON, escaped slightly differently from most clients.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '/' => out.push_str("\\/"),
            c if c < ' ' => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_text_and_strings_lose_their_escapes() {
        let json = Json::parse(r#"{"a":[1.50, -2e3,"x\u00e9\ud83d\ude00\n"], "b":null}"#).unwrap();
        let expected =
            vec![Json::Number("1.50".into()), Json::Number("-2e3".into()), Json::Text("xé😀\n".into())];
        assert_eq!(json.get("a"), Some(&Json::Array(expected)));
        assert_eq!(json.get("b"), Some(&Json::Null));
        for bad in ["", "[1,]", "{\"a\"}", "nul", "[1] 2", "\"a", "+1", "NaN"] {
            assert!(Json::parse(bad).is_err(), "{bad}");
        }
    }
}
