//! Aligned text tables for terminals. Width is counted in characters, which is right for ASCII and
//! Latin text.

use std::fmt;

use crate::reports::page::text_table;

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table of text cells. [`fmt::Display`] draws a line of headers, a rule and the rows, with two blanks
/// between columns and no trailing blanks.
///
/// ```
/// use sawmill_profile::{Align, Table};
/// let mut table = Table::new([("phase", Align::Left), ("rows/s", Align::Right)]);
/// table.row(["generate", "4.40 M"]);
/// table.row(["load", "950 k"]);
/// assert_eq!(table.to_string(), "\
/// phase     rows/s
/// --------  ------
/// generate  4.40 M
/// load       950 k
/// ");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    headers: Vec<String>,
    aligns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns and no rows.
    pub fn new(columns: impl IntoIterator<Item = (impl Into<String>, Align)>) -> Self {
        let (headers, aligns) = columns.into_iter().map(|(name, align)| (name.into(), align)).unzip();
        Self { headers, aligns, rows: Vec::new() }
    }

    /// Adds a row. Missing cells are empty, surplus cells are dropped, and a line break in a cell becomes a
    /// blank.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        let mut row: Vec<String> = cells.into_iter().take(self.headers.len()).map(Into::into).collect();
        row.resize(self.headers.len(), String::new());
        for cell in &mut row {
            if cell.contains(['\n', '\r', '\t']) {
                *cell = cell.replace(['\n', '\r', '\t'], " ");
            }
        }
        self.rows.push(row);
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as HTML, with a mark in place of an empty cell.
    pub fn html(&self) -> String {
        let heads: Vec<&str> = self.headers.iter().map(String::as_str).collect();
        let marked = |cell: &String| if cell.is_empty() { "-".to_owned() } else { cell.clone() };
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| row.iter().map(marked).collect()).collect();
        text_table(&heads, &rows)
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.headers.iter().map(|header| header.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        widths
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        let line = |f: &mut fmt::Formatter<'_>, cells: &[String]| {
            let mut text = String::new();
            for ((cell, width), align) in cells.iter().zip(&widths).zip(&self.aligns) {
                // A width within `format!` has 16 bits, and the name of a column more characters.
                let gap = " ".repeat(width.saturating_sub(cell.chars().count()));
                let (before, behind) =
                    if matches!(align, Align::Left) { ("", gap) } else { (&*gap, String::new()) };
                text.extend([before, cell, &behind, "  "]);
            }
            writeln!(f, "{}", text.trim_end())
        };
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        line(f, &self.headers)?;
        line(f, &rule)?;
        self.rows.iter().try_for_each(|row| line(f, row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_may_be_wider_than_formats_allow() {
        let long = "n".repeat(70_000);
        let mut table = Table::new([("name", Align::Left), ("n", Align::Right)]);
        table.row([&*long, "1"]);
        table.row(["b", &long]);
        assert!(table.to_string().lines().all(|line| line.len() == 140_002));
    }

    #[test]
    fn numbers_are_right_aligned_and_a_cell_has_one_line() {
        let mut table = Table::new([("name", Align::Left), ("n", Align::Right), ("", Align::Left)]);
        table.row(["a", "1", "x"]);
        table.row(["größe", "1,000", ""]);
        table.row(["two\nlines", "7"]);
        let drawn = table.to_string();
        let expected = "\
name           n
---------  -----  -
a              1  x
größe      1,000
two lines      7
";
        assert_eq!(drawn, expected);
    }
}
