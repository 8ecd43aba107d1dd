//! Tables on a terminal that is narrower than they are.
//!
//! A terminal breaks a long line within a word. Such a table is printed in parts, each with the first column.

use std::ops::Range;

use unicode_width::UnicodeWidthChar;

/// Lines on their way to a terminal.
#[derive(Debug)]
pub struct NarrowLines {
    width: usize,
    /// The bytes of a line that has not ended.
    begun: Vec<u8>,
    /// The last line, which may be the head of a table.
    head: Option<String>,
    table: Option<WideTable>,
}

/// A table whose lines are longer than the terminal is wide.
#[derive(Debug)]
struct WideTable {
    columns: Vec<Range<usize>>,
    lines: Vec<String>,
}

impl NarrowLines {
    /// Lines for a terminal of so many columns.
    pub fn new(width: usize) -> Self {
        Self { width, begun: Vec::new(), head: None, table: None }
    }

    /// Takes bytes of a text, and returns the lines that can be printed now.
    pub fn take(&mut self, bytes: &[u8]) -> String {
        let mut out = String::new();
        self.begun.extend_from_slice(bytes);
        let Some(end) = self.begun.iter().rposition(|byte| *byte == b'\n') else { return out };
        let rest = self.begun.split_off(end + 1);
        let whole = std::mem::replace(&mut self.begun, rest);
        String::from_utf8_lossy(&whole).lines().for_each(|line| self.line(line, &mut out));
        out
    }

    /// Returns what is left when the text has ended.
    pub fn end(&mut self) -> String {
        let mut out = String::new();
        self.end_table(&mut out);
        self.end_head(&mut out);
        out + &String::from_utf8_lossy(&std::mem::take(&mut self.begun))
    }

    fn line(&mut self, line: &str, out: &mut String) {
        if let Some(table) = self.table.as_mut().filter(|table| table.has(line)) {
            table.lines.push(line.to_owned());
            return;
        }
        self.end_table(out);
        let columns =
            columns_of(line).filter(|columns| columns.last().is_some_and(|last| last.end > self.width));
        if let (Some(columns), Some(_)) = (columns, &self.head) {
            let lines = self.head.take().into_iter().chain([line.to_owned()]).collect();
            self.table = Some(WideTable { columns, lines });
            return;
        }
        self.end_head(out);
        self.head = Some(line.to_owned());
    }

    fn end_head(&mut self, out: &mut String) {
        if let Some(head) = self.head.take() {
            *out += &(head + "\n");
        }
    }

    fn end_table(&mut self, out: &mut String) {
        if let Some(table) = self.table.take() {
            table.print(self.width, out);
        }
    }
}

impl WideTable {
    /// Whether a line is a row: between its columns are blanks.
    fn has(&self, line: &str) -> bool {
        let gaps = self.columns.windows(2).map(|pair| pair[0].end..pair[1].start);
        !line.trim().is_empty() && gaps.into_iter().all(|gap| cell(line, &gap).trim().is_empty())
    }

    /// Prints as many columns beside each other as fit, each time after the first one.
    fn print(&self, width: usize, out: &mut String) {
        let Some((first, mut others)) = self.columns.split_first() else { return };
        while !others.is_empty() {
            let mut room = width.saturating_sub(first.len());
            let fits = others.iter().take_while(|column| {
                let needed = column.len() + 2;
                let fits = needed <= room;
                room = room.saturating_sub(needed);
                fits
            });
            let (part, left) = others.split_at(fits.count().max(1));
            for line in &self.lines {
                let cells: Vec<String> =
                    std::iter::once(first).chain(part).map(|column| cell(line, column)).collect();
                *out += cells.join("  ").trim_end();
                out.push('\n');
            }
            if !left.is_empty() {
                out.push('\n');
            }
            others = left;
        }
    }
}

/// The columns over which a line draws the rule of a table with several.
fn columns_of(line: &str) -> Option<Vec<Range<usize>>> {
    let mut columns = Vec::new();
    let mut start = 0;
    for dashes in line.split("  ") {
        if dashes.is_empty() || dashes.bytes().any(|byte| byte != b'-') {
            return None;
        }
        columns.push(start..start + dashes.len());
        start += dashes.len() + 2;
    }
    (columns.len() > 1).then_some(columns)
}

/// The part of a line in these columns of the terminal, as wide as they are.
fn cell(line: &str, columns: &Range<usize>) -> String {
    let (mut at, mut cell) = (0, String::new());
    for c in line.chars() {
        if columns.contains(&at) {
            cell.push(c);
        }
        at += c.width().unwrap_or(0);
    }
    cell.extend(std::iter::repeat_n(' ', columns.end.saturating_sub(at.max(columns.start))));
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
title

file  rows  bytes
----  ----  -----
a        1   10 B
\u{540d}      22    2 B
2 files in all
";

    fn fitted(text: &str, width: usize) -> String {
        let mut lines = NarrowLines::new(width);
        let (begin, end) = text.as_bytes().split_at(text.len() / 2);
        let printed = lines.take(begin) + &lines.take(end);
        printed + &lines.end()
    }

    #[test]
    fn a_table_is_split_between_columns_if_it_is_wider_than_the_terminal() {
        let expected = "\
title

file  rows
----  ----
a        1
\u{540d}      22

file  bytes
----  -----
a      10 B
\u{540d}      2 B
2 files in all
";
        assert_eq!(fitted(TABLE, 16), expected);
        assert_eq!(fitted(TABLE, 3), expected);
    }

    #[test]
    fn all_other_text_stays() {
        for text in [TABLE, "", "\n", "a", "a\nb", "----  ----\n", "a\n----\n", "a  b\n--  -x\n"] {
            assert_eq!(fitted(text, 17), text);
        }
    }
}
