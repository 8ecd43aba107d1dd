//! Text from a file's content on a terminal: escaped, clipped, in aligned columns.
//!
//! Names, values and paths come from files that anybody may have written. Whatever reaches the
//! screen passes through [`escaped`] or, in JSON, through [`JsonSafe`].

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{self, Write};

use unicode_width::UnicodeWidthChar;

/// Whether a terminal would act on a character or show later ones elsewhere: control characters
/// (C0, DEL, C1), line and paragraph separators, bidirectional controls, byte-order marks.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// The text with the characters escaped that would drive a terminal: `\n`, `\u{1b}`.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match is_unsafe(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// The text in quotes, escaped, so that empty text and spaces at its ends can be seen.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if is_unsafe(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The first `limit` characters of a text, and whether there are more.
pub(crate) fn clipped(text: &str, limit: usize) -> (&str, bool) {
    match text.char_indices().nth(limit) {
        Some((at, _)) => (&text[..at], true),
        None => (text, false),
    }
}

/// Columns that a terminal takes for a text.
fn width_of(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(|c| c.width().unwrap_or(0)).sum() }
}

/// Where a column's cells stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}
pub(crate) use Align::{Left, Right};

/// A table whose cells stand in one string, so that a hundred thousand rows cost little more than
/// their text.
pub(crate) struct Table {
    aligns: Vec<Align>,
    widths: Vec<usize>,
    cells: String,
    ends: Vec<usize>,
}

impl Table {
    /// A table with a head.
    pub(crate) fn new(head: &[(&str, Align)]) -> Self {
        let mut table = Table {
            aligns: head.iter().map(|&(_, align)| align).collect(),
            widths: vec![0; head.len()],
            cells: String::new(),
            ends: Vec::new(),
        };
        for (name, _) in head {
            table.cell(name);
        }
        table
    }

    /// Adds a row of as many cells as the head has.
    pub(crate) fn row(&mut self, cells: &[&dyn fmt::Display]) {
        debug_assert_eq!(cells.len(), self.aligns.len(), "as many cells as the head has");
        for cell in cells {
            self.cell(cell);
        }
    }

    fn cell(&mut self, cell: impl fmt::Display) {
        let start = self.cells.len();
        // Writing to a string does not fail.
        let _ = write!(self.cells, "{cell}");
        if let Cow::Owned(safe) = escaped(&self.cells[start..]) {
            self.cells.replace_range(start.., &safe);
        }
        let column = self.ends.len() % self.aligns.len();
        self.widths[column] = self.widths[column].max(width_of(&self.cells[start..]));
        self.ends.push(self.cells.len());
    }

    /// Prints the table: its head, a rule, its rows.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (mut start, columns) = (0, self.aligns.len());
        let mut line = String::new();
        for (at, row) in self.ends.chunks_exact(columns).enumerate() {
            line.clear();
            for (i, &end) in row.iter().enumerate() {
                let cell = &self.cells[start..end];
                let space = self.widths[i].saturating_sub(width_of(cell));
                if i > 0 {
                    line.push_str("  ");
                }
                if self.aligns[i] == Right {
                    line.extend(std::iter::repeat_n(' ', space));
                }
                line.push_str(cell);
                if self.aligns[i] == Left {
                    line.extend(std::iter::repeat_n(' ', space));
                }
                start = end;
            }
            out.write_all(line.trim_end().as_bytes())?;
            out.write_all(b"\n")?;
            if at == 0 {
                let rules: Vec<String> = self.widths.iter().map(|&width| "-".repeat(width)).collect();
                writeln!(out, "{}", rules.join("  ").trim_end())?;
            }
        }
        Ok(())
    }
}

/// A bar of at most `width` cells for a share from 0 to 1, in eighths of a cell.
pub(crate) fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    } else if eighths == 0 && share > 0.0 {
        bar.push(EIGHTHS[1]);
    }
    bar
}

/// A share from 0 to 1: `12.3%`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1}%", part as f64 * 100.0 / whole as f64) }
}

/// How many times `small` goes into `large`: `2.35`.
pub(crate) fn ratio(large: u64, small: u64) -> String {
    if small == 0 { "-".to_owned() } else { format!("{:.2}", large as f64 / small as f64) }
}

/// Writes JSON with the characters escaped that JSON allows and terminals act upon.
///
/// Whoever writes to it must hand over whole characters, as `serde_json` does. Outside of strings
/// JSON has none of these characters, and within them an escape means the same.
pub(crate) struct JsonSafe<W>(pub(crate) W);

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
            // All of them stand in the basic plane: four digits do.
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
    fn nothing_that_drives_a_terminal_is_left() {
        assert_eq!(escaped("name"), "name");
        assert_eq!(escaped("é名\u{1f600}"), "é名\u{1f600}");
        assert_eq!(escaped("a\u{1b}[2J\n\u{9b}x\u{202e}"), "a\\u{1b}[2J\\n\\u{9b}x\\u{202e}");
        assert_eq!(quoted(" a\"b\\\t"), "\" a\\\"b\\\\\\t\"");
    }

    #[test]
    fn json_keeps_its_meaning_without_control_characters() {
        let text = "é\u{9b}31m\u{7f}\u{202e}\u{1b}[0m";
        let mut out = Vec::new();
        serde_json::to_writer(JsonSafe(&mut out), text).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out, "\"é\\u009b31m\\u007f\\u202e\\u001b[0m\"");
        assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
    }

    #[test]
    fn columns_line_up_by_what_a_terminal_shows() {
        let mut table = Table::new(&[("name", Left), ("n", Right)]);
        table.row(&[&"名", &1]);
        table.row(&[&"abc\n", &10]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "name    n\n-----  --\n名      1\nabc\\n  10\n");
    }

    #[test]
    fn bars_are_as_long_as_their_shares() {
        assert_eq!([0.0, 0.001, 0.5, 1.0, 7.0].map(|share| bar(share, 4)), ["", "▏", "██", "████", "████"]);
        assert_eq!(bar(0.375, 4), "█▌");
    }
}
