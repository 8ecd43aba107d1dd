//! The error for a value that cannot be encoded: its row in the batch, and the reason.

/// A rejected value. The row counts from the start of the batch given to the encoder; each caller adds its
/// own offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The row, counted from 0.
    pub row: usize,
    /// Position below the column, such as `.phones[0].number`; empty for the column itself.
    pub path: String,
    /// The value, and its fault.
    pub what: String,
    /// The server did not say whether there is a fault.
    pub unanswered: bool,
}

impl Fault {
    /// Returns a fault in `row`; `what` names the value and the problem.
    pub fn new(row: usize, what: impl Into<String>) -> Self {
        Self { row, path: String::new(), what: what.into(), unanswered: false }
    }

    /// Returns the fault for a value that a silent server did not judge.
    pub(crate) fn unanswered(what: String) -> Self {
        Self { unanswered: true, ..Self::new(0, what) }
    }

    /// Prepends an element to the path.
    pub fn below(mut self, element: &str) -> Self {
        self.path.insert_str(0, element);
        self
    }

    /// Counts the row from `rows` rows earlier.
    pub(crate) fn after(mut self, rows: usize) -> Self {
        self.row += rows;
        self
    }
}

/// Returns a value as error messages quote it: shortened, without control characters.
pub fn shown(text: &str) -> String {
    const MAX: usize = 60;
    let mut shown: String = text.chars().take(MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX).is_some() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}
