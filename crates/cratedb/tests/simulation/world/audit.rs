//! Knows which rows the table must have, and looks at each state of the server.

use sawmill_cratedb_standin::Engine;
use sawmill_loader::Mode;

use super::server::{SCHEMA, TABLE};
use super::source::{FileState, named};

/// The events that promises depend on.
pub struct Audit {
    pub mode: Mode,
    /// The table's own key: rows with equal values, such as the first ones of a file that has grown, are one row.
    pub has_own_key: bool,
    /// The rows that the table had before the first load; `None` if there was no table.
    pub before: Option<Vec<u64>>,
    /// The files that complete loads have added, by number and content.
    pub completed: Vec<FileState>,
    /// The files as each loader opened them.
    pub opened: Vec<Vec<FileState>>,
    /// Another client has changed the table, or its rows.
    pub is_tampered: bool,
    /// An append may have left rows of files that have changed.
    pub may_have_more: bool,
    /// Rows that reports of success name as loaded by an append.
    pub claimed: u64,
    pub violation: Option<String>,
}

/// The values of the table, sorted; `None` if it does not exist.
pub fn rows_of(engine: &Engine, table: &str) -> Option<Vec<u64>> {
    let values = engine.values(SCHEMA, table, "value")?;
    let mut rows: Vec<u64> = values.iter().filter_map(|value| value.parse().ok()).collect();
    rows.sort_unstable();
    Some(rows)
}

impl Audit {
    pub fn new(mode: Mode, has_own_key: bool, before: Option<Vec<u64>>) -> Self {
        Self {
            mode,
            has_own_key,
            before,
            completed: Vec::new(),
            opened: Vec::new(),
            is_tampered: false,
            may_have_more: false,
            claimed: 0,
            violation: None,
        }
    }

    /// Another loader starts; returns its number.
    pub fn enter(&mut self) -> usize {
        self.opened.push(Vec::new());
        self.opened.len() - 1
    }

    /// A loader's table has got its name, or its append has ended well.
    pub fn completes(&mut self, process: usize) {
        let opened = self.opened.get(process).cloned().unwrap_or_default();
        if self.mode != Mode::Append {
            self.completed.clear();
        }
        for file in opened {
            if !self.completed.iter().any(|done| done.has_rows_of(&file)) {
                self.completed.push(file);
            }
        }
    }

    /// The rows of files that the table had before.
    pub fn rows_of_files_before(&self) -> u64 {
        self.before.iter().flatten().filter(|row| **row >> 32 != 0xff).count() as u64
    }

    /// A report of success names these rows as loaded: all reports together name no more than the table has gained.
    pub fn claims(&mut self, engine: &Engine, rows: u64) {
        let Some(before) = self.before.as_ref().filter(|_| self.mode == Mode::Append) else { return };
        self.claimed += rows;
        let now = rows_of(engine, TABLE).map_or(0, |rows| rows.len());
        let gained = now.saturating_sub(before.len()) as u64;
        if self.claimed > gained && !self.is_tampered {
            self.violated(format!(
                "reports name {} rows as loaded, and the table gained {gained}",
                self.claimed
            ));
        }
    }

    /// Looks at a state that clients see. Rows of an append are seen before it is complete.
    pub fn look_at(&mut self, engine: &Engine) {
        if self.mode.gathers() {
            self.compare(engine, "while a load is unfinished");
        }
    }

    /// Compares the table with its expected rows.
    pub fn compare(&mut self, engine: &Engine, when: &str) {
        if self.is_tampered || self.violation.is_some() {
            return;
        }
        let (mut rows, mut expected) = (rows_of(engine, TABLE), self.expected());
        if self.has_own_key
            && let Some(expected) = &mut expected
        {
            expected.dedup();
        }
        if self.may_have_more
            && self.mode == Mode::Append
            && let (Some(rows), Some(expected)) = (&mut rows, &expected)
        {
            let is_of_earlier_content = |row: &u64| row >> 32 != 0xff && !expected.contains(row);
            rows.retain(|row| !is_of_earlier_content(row));
        }
        if rows != expected {
            self.violated(format!("{when} the table holds {}, not {}", named(&rows), named(&expected)));
        }
    }
}
