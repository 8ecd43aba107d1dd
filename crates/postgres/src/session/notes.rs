//! What there is to say of a load beside its figures.

use std::sync::PoisonError;

use sawmill_loader::{Session, Standing};

use super::PostgresSession;

impl PostgresSession<'_> {
    /// All of it, in the order in which it is shown.
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
                "not verified: since this load began, another one has brought other rows or columns of its files into the table, or \
                 merged rows into it (sawmill verify compares whole tables)"
                    .to_owned(),
            );
        } else if !self.can_verify() {
            notes.push(
                "an earlier run merged these rows; an upsert is compared only while it merges; --again merges once more"
                    .to_owned(),
            );
        }
        match (self.rejected(), &self.postgres.rejects) {
            (0, _) => {}
            (rows, Some(to)) if self.postgres.part_of.is_some() || to.path.exists() => {
                notes.push(format!(
                    "{rows} rows could not be loaded and were put aside in {}",
                    to.path.display()
                ));
            }
            (rows, _) => notes.push(format!(
                "{rows} rows could not be loaded, in earlier runs; the same command with --rejects FILE writes them to a file"
            )),
        }
        notes
    }
}
