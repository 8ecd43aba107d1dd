//! Rows on a terminal.

use std::io::{self, Write};

use crate::text::escape::is_unsafe;

/// Escapes what would control a terminal (`\u{1b}`), but line ends and tabs. Invalid UTF-8 becomes replacement
/// characters. Characters may be cut by writes.
pub struct TerminalSafe<W> {
    out: W,
    /// The bytes of a character that is not complete.
    begun: Vec<u8>,
}

impl<W: Write> TerminalSafe<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, begun: Vec::new() }
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        let mut start = 0;
        let is_escaped = |c: char| is_unsafe(c) && !matches!(c, '\n' | '\t');
        for (at, c) in text.char_indices().filter(|(_, c)| is_escaped(*c)) {
            self.out.write_all(&text.as_bytes()[start..at])?;
            write!(self.out, "{}", c.escape_default())?;
            start = at + c.len_utf8();
        }
        self.out.write_all(&text.as_bytes()[start..])
    }
}

impl<W: Write> Write for TerminalSafe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let mut chunks = all.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.text(chunk.valid())?;
            // Four bytes are a whole character, or never become one.
            match chunks.peek().is_none() && chunk.invalid().len() < 4 {
                true => self.begun = chunk.invalid().to_vec(),
                false => self.text("\u{fffd}")?,
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_controls_whatever_the_writes() {
        let text = "a,\u{1b}[31m\tü\u{202e}\u{9b}€\r\n";
        for size in 1..text.len() {
            let mut out = TerminalSafe::new(Vec::new());
            for piece in text.as_bytes().chunks(size) {
                out.write_all(piece).unwrap();
            }
            let shown = String::from_utf8(out.out).unwrap();
            assert_eq!(shown, "a,\\u{1b}[31m\tü\\u{202e}\\u{9b}€\\r\n", "{size}");
        }
    }
}
