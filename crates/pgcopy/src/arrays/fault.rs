//! A value that cannot be encoded: which row of a batch, and why.

/// A refused value. The row counts from the start of what was being encoded; each caller on the way
/// out adds where that was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The row, from 0 on.
    pub row: usize,
    /// Position below the column, such as `.phones[0].number`; empty for the column itself.
    pub path: String,
    /// The value and what is wrong with it.
    pub what: String,
}

impl Fault {
    /// A refused value in this row, and what is wrong with it.
    pub fn new(row: usize, what: impl Into<String>) -> Self {
        Self { row, path: String::new(), what: what.into() }
    }

    /// Puts a path element in front.
    pub fn below(mut self, element: &str) -> Self {
        self.path.insert_str(0, element);
        self
    }

    /// Counts rows from `rows` before.
    pub(crate) fn after(mut self, rows: usize) -> Self {
        self.row += rows;
        self
    }
}

/// A value as it stands in an error: short, and without control characters.
pub fn shown(text: &str) -> String {
    const MOST: usize = 60;
    let mut shown: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}
