//! JSON that is written while it is made, so that a million column chunks are never in memory, and that is
//! safe for a terminal.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use crate::text::escape::is_unsafe;

/// Serialises the items of an iterator, one after the other.
pub(crate) struct Each<F>(pub(crate) F);

impl<F, I> Serialize for Each<F>
where
    F: Fn() -> I,
    I: Iterator,
    I::Item: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// Serialises a value as the text that it displays.
pub(crate) fn shown<S: Serializer>(
    value: &Option<impl std::fmt::Display>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

/// Escapes the characters that JSON allows and terminals act upon.
///
/// Every write must contain whole characters, as `serde_json` does. JSON has these characters only in strings, where
/// an escape means the same.
pub struct JsonSafe<W>(pub W);

impl<W: Write> Write for JsonSafe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        // C0 is escaped by JSON itself, newlines between values are wanted.
        let suspect = |b: &u8| *b >= 0x7f;
        let Some(first) = bytes.iter().position(suspect) else { return self.0.write_all(bytes) };
        let Ok(text) = std::str::from_utf8(&bytes[first..]) else { return self.0.write_all(bytes) };
        self.0.write_all(&bytes[..first])?;
        let mut start = 0;
        for (at, c) in text.char_indices().filter(|&(_, c)| c >= '\u{7f}' && is_unsafe(c)) {
            self.0.write_all(&text.as_bytes()[start..at])?;
            // All of them are in the basic multilingual plane: four digits are enough.
            write!(self.0, "\\u{:04x}", c as u32)?;
            start = at + c.len_utf8();
        }
        self.0.write_all(&text.as_bytes()[start..])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_its_meaning_without_control_characters() {
        let text = "é\u{9b}31m\u{7f}\u{202e}\u{1b}[0m";
        let mut out = Vec::new();
        serde_json::to_writer(JsonSafe(&mut out), text).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out, "\"é\\u009b31m\\u007f\\u202e\\u001b[0m\"");
        assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
    }
}
