//! Whether a table still has the rows that its loads have recorded.

use sawmill_profile::{format_counted, format_grouped};
use sawmill_source::{Error, Kind, Result};

use crate::engine::note::Note;
use crate::history::record::Remembered;

/// The number of a table's rows, and of the rows that its loads have recorded, in one snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Presence {
    /// `None` if this user may not read all rows.
    pub rows: Option<u64>,
    /// Rows of all recorded units.
    pub recorded: u64,
    /// Rows that the table had before the first of these loads; `None` if they were not counted.
    pub before: Option<u64>,
    /// The table's rows are in another file than when the last of these loads began: the table was truncated,
    /// or rewritten by `VACUUM FULL`, `CLUSTER` or `ALTER TABLE`.
    pub rewritten: bool,
    /// The load's complete rows did not allow a key or an index, and the user was asked to correct them.
    pub keys_refused: bool,
}

impl Presence {
    /// The least number of rows that the table must have.
    fn least(&self) -> u64 {
        self.recorded + self.before.unwrap_or(0)
    }

    /// Whether rows are missing.
    pub fn lacks_rows(&self) -> bool {
        self.rows.is_some_and(|rows| rows < self.least())
    }

    /// Whether all rows are missing, or some are and the table was rewritten: it was truncated, or is another one.
    pub fn was_emptied(&self) -> bool {
        self.lacks_rows() && (self.rewritten || self.rows == Some(0))
    }

    /// Whether the table is known to hold other rows than the recorded ones and those that it had before.
    pub fn is_other_than_recorded(&self) -> bool {
        self.rows.is_some() && !self.is_exact()
    }

    /// Whether the table has as many rows as are recorded and were there before.
    fn is_exact(&self) -> bool {
        self.before.is_some() && self.rows == Some(self.least())
    }

    /// Whether all of the table's rows are recorded.
    pub fn is_known_whole(&self) -> bool {
        self.is_exact() && self.before == Some(0)
    }

    /// A note on the row counts, if they are not as expected.
    pub fn finding(&self) -> Option<String> {
        let Some(rows) = self.rows else {
            return Some("the table's rows were not counted: this user may not read them all".to_owned());
        };
        let Self { recorded, before, .. } = *self;
        let earlier = match before {
            None | Some(0) => String::new(),
            Some(before) => format!(", and it had {} before", format_counted(before, "row")),
        };
        let found = format!(
            "the table has {}; according to the records {} were loaded into it{earlier}",
            format_counted(rows, "row"),
            format_grouped(recorded)
        );
        let rewritten = if self.rewritten {
            "; since then it was truncated or rewritten (TRUNCATE, VACUUM FULL, CLUSTER or ALTER TABLE)"
        } else {
            ""
        };
        if self.lacks_rows() {
            return Some(found + rewritten);
        }
        let others = "; whether they are the loaded rows was not checked (--verify compares them)";
        (!self.is_exact()).then(|| found + rewritten + others)
    }

    /// The error for missing rows.
    pub fn error(&self, place: String, advice: impl Into<String>) -> Error {
        Error::new(Kind::Mismatch, self.finding().unwrap_or_default()).at(place).advise(advice)
    }

    /// Checks that the table may have the rows of the files that are already loaded, and adds a note on the row
    /// counts.
    ///
    /// # Errors
    /// The table was emptied; or rows are missing, and this load would add none.
    pub fn check(&self, remembered: &mut Remembered, place: String) -> Result<()> {
        if self.was_emptied() || self.lacks_rows() && !remembered.has_work() {
            return Err(self.error(place, self.advice()));
        }
        let lacks_rows = self.lacks_rows();
        let note = |finding| if lacks_rows { Note::Missing(finding) } else { Note::Remark(finding) };
        remembered.notes.extend(self.finding().map(note));
        Ok(())
    }

    /// What to do about missing rows of an append. To load files again adds all their rows to those that are left.
    pub fn advice(&self) -> &'static str {
        match self.rows {
            Some(0) => {
                "restore the rows; or forget the loads (sawmill load forget) to load all files from the beginning; or, if they \
                 were complete, load these files again with --again"
            }
            _ => {
                "restore the rows, or load everything from the beginning with --mode replace; --again, or an append after \
                 sawmill load forget, adds all rows of the files once more, also those that the table still has"
            }
        }
    }

    /// Refuses `what` (a file, or files), whose rows went into a table that no longer exists. They may be in the one
    /// that now has its name, restored from a dump.
    ///
    /// # Errors
    /// The table has rows that are not recorded.
    pub fn refuse_unknown(&self, what: &str, place: String) -> Result<()> {
        let rows = match self.rows {
            Some(rows) if rows > 0 && !self.is_known_whole() => rows,
            _ => return Ok(()),
        };
        Err(Error::new(
            Kind::Mismatch,
            format!(
                "{what} loaded into a table of this name that no longer exists (dropped, or restored from a dump); the one that \
                 exists now has {}, and whether those of the load are among them is unknown",
                format_counted(rows, "row")
            ),
        )
        .at(place)
        .advise(
            "compare them with sawmill verify; --again, or an append after sawmill load forget, adds all rows of the files, \
             even rows that are already in the table",
        ))
    }
}
