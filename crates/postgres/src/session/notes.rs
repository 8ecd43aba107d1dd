//! Notes on a load, beside its figures.

use std::sync::PoisonError;

use sawmill_loader::{LoadState, Mode, Note, Session, Share};
use sawmill_profile::format_counted;

use super::PostgresSession;
use crate::write::upsert::OnConflict;

impl PostgresSession<'_> {
    /// All notes, in the order in which they are shown.
    pub(super) fn all_notes(&self) -> Vec<Note> {
        let found = self.found_notes.iter().cloned().chain(self.server.changes());
        let mut notes: Vec<Note> = found.map(Note::from).collect();
        if self.postgres.partitions.is_some() && self.state != LoadState::Complete {
            notes.push(Note::Route(self.route.to_string()));
        }
        if !self.not_filled.is_empty() && self.state != LoadState::Complete {
            let lacking = self.not_filled.join(", ");
            notes.push(format!("columns of the table that the files lack: {lacking}").into());
        }
        notes.extend(self.column_changes().lines().into_iter().map(Note::from));
        let at_the_end = self.at_the_end.lock().unwrap_or_else(PoisonError::into_inner);
        notes.extend(at_the_end.iter().cloned().map(Note::from));
        if self.overlaid && self.options.verify {
            notes.push(Note::Unverified(
                "not verified: since this load began, another load has brought other rows or columns of its files into the \
                 table, or merged rows into it (sawmill verify compares whole tables)"
                    .to_owned(),
            ));
        } else if self.retyped && self.options.verify {
            notes.push(Note::Unverified(
                "not verified: the table's columns have changed since this load (sawmill verify compares whole tables)"
                    .to_owned(),
            ));
        } else if self.state == LoadState::Complete
            && self.postgres.mode == Mode::Upsert
            && !matches!(self.postgres.on_conflict, OnConflict::ReplaceFiles(_))
        {
            let mode = self.postgres.merge().unwrap_or_else(|| self.postgres.mode.name().to_owned());
            let note = format!(
                "not verified: an earlier run merged these rows, and mode {mode} verifies only while it merges; --again \
                 merges them again"
            );
            notes.push(Note::Unverified(note));
        }
        match (self.rejected(), &self.postgres.rejects) {
            (0, _) => {}
            (rows, to) => {
                let where_to = match to {
                    _ if matches!(self.options.share, Share::Part(_)) => {
                        "so far; the run that finishes the load writes them to the file of --rejects"
                            .to_owned()
                    }
                    Some(to) if to.path.exists() => format!("and went to {}", to.path.display()),
                    _ => "in earlier runs; the same command with --rejects FILE writes them to a file"
                        .to_owned(),
                };
                let rows = format_counted(rows, "row");
                notes.push(Note::Rejected(format!("{rows} could not be loaded {where_to}")));
            }
        }
        notes
    }
}
