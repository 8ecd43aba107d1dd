//! Knows which rows the table must have, and looks at each state of the server.

use super::server::{Data, TABLE};
use super::source::{FileState, named};
use sawmill_loader::Mode;

/// The events that promises depend on.
pub struct Audit {
    pub mode: Mode,
    /// The rows that the table had before the first load; `None` if there was no table.
    pub before: Option<Vec<u64>>,
    /// The files that complete loads have added, by number and content.
    pub completed: Vec<FileState>,
    /// The files as each loader opened them.
    pub opened: Vec<Vec<FileState>>,
    /// Another client has changed the table, or its rows.
    pub is_tampered: bool,
    /// The table that each loader verified, by OID, and its rows.
    pub verified: Vec<Option<(u32, Vec<u64>)>>,
    pub violation: Option<String>,
}

impl Audit {
    pub fn new(mode: Mode, before: Option<Vec<u64>>) -> Self {
        Self {
            mode,
            before,
            completed: Vec::new(),
            opened: Vec::new(),
            is_tampered: false,
            verified: Vec::new(),
            violation: None,
        }
    }

    /// Another loader starts; returns its number.
    pub fn enter(&mut self) -> usize {
        self.opened.push(Vec::new());
        self.verified.push(None);
        self.opened.len() - 1
    }

    /// The transaction that completes a load was committed.
    pub fn completes(&mut self, process: usize, id: &str, data: &Data) {
        let Some(load) = data.loads.get(id) else { return };
        let files =
            load.record.files.names.iter().filter_map(|name| {
                self.opened.get(process)?.iter().find(|file| file.name() == *name).cloned()
            });
        let files: Vec<FileState> = files.collect();
        if self.mode != Mode::Append {
            self.completed.clear();
        }
        for file in files {
            if self.completed.iter().any(|done| done.has_rows_of(&file)) && !self.is_tampered {
                self.violated(format!("{} was loaded twice", file.name()));
            }
            self.completed.push(file);
        }
        self.compare(data, "when the load was completed");
    }

    /// Looks at a state that clients see.
    pub fn look_at(&mut self, data: &Data) {
        if self.mode.gathers() {
            self.compare(data, "while a load is unfinished");
        }
    }

    /// Compares the table with its expected rows.
    pub fn compare(&mut self, data: &Data, when: &str) {
        if self.is_tampered || self.violation.is_some() {
            return;
        }
        let mut rows = data.table(TABLE).map(|(_, table)| table.rows.clone());
        rows.iter_mut().for_each(|rows| rows.sort_unstable());
        let expected = self.expected();
        if rows != expected {
            self.violated(format!("{when} the table holds {}, not {}", named(&rows), named(&expected)));
        }
    }
}
