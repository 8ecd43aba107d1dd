//! Notes on a load, beside its figures.

use std::sync::PoisonError;

use sawmill_loader::{Session, Standing};

use super::PostgresSession;

impl PostgresSession<'_> {
    /// All notes, in the order in which they are shown.
    pub(super) fn all_notes(&self) -> Vec<String> {
        let mut notes = self.found_notes.clone();
        notes.extend(self.server.changes());
        if self.postgres.partitions.is_some() && self.standing != Standing::Complete {
            notes.push(self.route.to_string());
        }
        if !self.not_filled.is_empty() && self.standing != Standing::Complete {
            notes.push(format!("columns of the table that the files lack: {}", self.not_filled.join(", ")));
        }
        notes.extend(self.at_the_end.lock().unwrap_or_else(PoisonError::into_inner).clone());
        if self.overlaid && self.options.verify {
            notes.push(
                "not verified: since this load began, another load has brought other rows or columns of its files into the \
                 table, or merged rows into it (sawmill verify compares whole tables)"
                    .to_owned(),
            );
        } else if !self.can_verify() {
            notes.push(
                "not verified: an earlier run merged these rows, and an upsert is verified only while it merges; --again \
                 merges them again"
                    .to_owned(),
            );
        }
        match (self.rejected(), &self.postgres.rejects) {
            (0, _) => {}
            (rows, Some(to)) if self.postgres.several.is_some() || to.path.exists() => {
                notes.push(format!(
                    "{rows} rows could not be loaded and were written to {}",
                    to.path.display()
                ));
            }
            (rows, _) => notes.push(format!(
                "{rows} rows could not be loaded in earlier runs; the same command with --rejects FILE writes them to a file"
            )),
        }
        notes
    }
}
