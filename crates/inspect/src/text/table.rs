//! Aligned tables of text from files.
//!
//! Why our own: a table of a hundred thousand column chunks is one string here. `comfy-table` and `tabled`
//! keep every cell apart, put one character between columns where we put two blanks, and do not escape
//! text from a file. `sawmill-profile` has a table for its small reports, which this crate does not
//! know.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{self, Write};

use unicode_width::UnicodeWidthChar;

use crate::text::escape::escaped;

/// The width of a text in columns of a terminal.
fn width_of(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(|c| c.width().unwrap_or(0)).sum() }
}

/// A table that holds all cells in one string, so that a hundred thousand rows take little more memory than
/// their text.
pub(crate) struct Table {
    /// Whether each column is aligned right.
    aligns_right: Vec<bool>,
    widths: Vec<usize>,
    cells: String,
    ends: Vec<usize>,
}

impl Table {
    /// A table of columns with these names, separated by commas. One that ends with `>` is aligned right.
    pub(crate) fn new(head: &str) -> Self {
        let names = || head.split(',').map(str::trim);
        let aligns_right: Vec<bool> = names().map(|name| name.ends_with('>')).collect();
        let widths = vec![0; aligns_right.len()];
        let mut table = Table { aligns_right, widths, cells: String::new(), ends: Vec::new() };
        names().for_each(|name| table.cell(name.trim_end_matches('>')));
        table
    }

    /// Adds a row of as many cells as the head has.
    pub(crate) fn row(&mut self, cells: &[&dyn fmt::Display]) {
        debug_assert_eq!(cells.len(), self.aligns_right.len(), "as many cells as the head has");
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
        let column = self.ends.len() % self.aligns_right.len();
        self.widths[column] = self.widths[column].max(width_of(&self.cells[start..]));
        self.ends.push(self.cells.len());
    }

    /// Writes the table: its header, a rule, its rows.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (mut start, columns) = (0, self.aligns_right.len());
        let mut line = String::new();
        for (at, row) in self.ends.chunks_exact(columns).enumerate() {
            line.clear();
            for (i, &end) in row.iter().enumerate() {
                let cell = &self.cells[start..end];
                let space = self.widths[i].saturating_sub(width_of(cell));
                if i > 0 {
                    line.push_str("  ");
                }
                if self.aligns_right[i] {
                    line.extend(std::iter::repeat_n(' ', space));
                }
                line.push_str(cell);
                if !self.aligns_right[i] {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_by_their_width_on_a_terminal() {
        let mut table = Table::new("name, n>");
        table.row(&[&"名", &1]);
        table.row(&[&"abc\n", &10]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "name    n\n-----  --\n名      1\nabc\\n  10\n");
    }
}
