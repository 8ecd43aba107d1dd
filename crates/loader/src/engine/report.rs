//! The result of a load.

use sawmill_profile::format_counted;
use serde::Serialize;

use crate::engine::note::Note;
use crate::engine::part::PartReport;
use crate::engine::server_waits::ServerWaits;
use crate::engine::target::LoadState;
use crate::engine::verification::{Tally, Verification};
use crate::history::record::AlreadyLoaded;
use crate::table::schema_change::ColumnChanges;

/// The result of a load.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LoadReport {
    /// The state in which the load found the target.
    #[serde(rename = "standing")]
    pub state: LoadState,
    /// Files that this run loaded or finished.
    pub files_loaded: u64,
    /// Those of them whose rows replaced earlier ones.
    pub files_replaced: u64,
    /// Files that earlier loads had completed.
    pub files_already: u64,
    /// Rows of the source that are in the target now, including rows of earlier runs.
    pub rows: u64,
    /// Rows in the table, counted in this run, rows of other writers included; `None` if this run did not
    /// count.
    pub rows_in_table: Option<u64>,
    /// Rows that this run committed.
    pub rows_loaded: u64,
    /// Rows that the target already had with equal keys and values when this run first sent them, from an earlier
    /// load or this one. Also counts rows that gave way to others with their keys.
    pub rows_there_before: u64,
    /// Rows that the target refused and that went to the rejects file, including rows of earlier runs.
    pub rows_rejected: u64,
    /// Total length of the source's files in bytes.
    pub bytes_in: u64,
    /// Compressed bytes of the rows that this run read, according to the footers.
    pub bytes_read: u64,
    /// Bytes of rows that this run sent, resent units included.
    pub bytes_sent: u64,
    /// Units in the plan.
    pub units: u64,
    /// Units that earlier runs had committed.
    pub units_resumed: u64,
    /// Units that the target had confirmed and then lost in this run; the loader sent them again.
    pub units_lost: u64,
    /// Number of reconnections.
    pub retries: u64,
    /// Wall-clock time.
    pub seconds: f64,
    /// Rows, content sum and non-null values of the source's rows.
    pub content: Tally,
    /// The comparison with the target, if requested.
    pub verified: Option<Verification>,
    /// The comparison was one of keys: rows of the table, or newer ones, went before rows of the source.
    pub verified_by_key: bool,
    /// How the server spent the connections' time, if that could be sampled.
    pub server_waits: Option<ServerWaits>,
    /// The target's records of all parts, if this run loaded one of several.
    pub part: Option<PartReport>,
    /// This run put rows in place that others had loaded in parts.
    pub finished: bool,
    /// The changes made for columns by which the files and the table differ.
    pub columns: ColumnChanges,
    /// Further remarks for the user.
    pub notes: Vec<Note>,
}

impl LoadReport {
    /// The report of a run that found these files in the target and has not loaded anything yet.
    pub(crate) fn of_already_loaded(files: &[AlreadyLoaded], notes: Vec<Note>) -> Self {
        let mut content = Tally::default();
        files.iter().for_each(|file| content.add(&file.tally));
        let units = files.iter().map(|file| file.units).sum();
        Self {
            state: LoadState::Complete,
            files_already: files.len() as u64,
            rows: content.rows,
            rows_rejected: files.iter().map(|file| file.rejected).sum(),
            units,
            units_resumed: units,
            content,
            notes,
            ..Self::default()
        }
    }

    /// Whether it is about no file.
    fn is_empty(&self) -> bool {
        self.files_loaded + self.files_already == 0 && self.part.is_none()
    }

    /// Adds the report on other files of the same source. The sum is verified if all of it is.
    pub(crate) fn add(&mut self, other: Self) {
        let (is_first, is_last) = (self.is_empty(), other.is_empty());
        self.state = match (self.state, other.state) {
            (LoadState::Complete, other) => other,
            (own, LoadState::Complete) => own,
            (LoadState::New, LoadState::New) => LoadState::New,
            _ => LoadState::Resumed,
        };
        macro_rules! add {
            ($($count:ident),+) => { $(self.$count += other.$count;)+ };
        }
        add!(
            files_loaded,
            files_replaced,
            files_already,
            rows,
            rows_loaded,
            rows_there_before,
            rows_rejected
        );
        add!(bytes_read, bytes_sent, units, units_resumed, units_lost, retries);
        self.rows_in_table = other.rows_in_table.or(self.rows_in_table);
        self.content.add(&other.content);
        self.verified = match (self.verified.take(), other.verified) {
            (Some(mut verified), Some(other)) => {
                verified.add(other);
                Some(verified)
            }
            (None, other) if is_first => other,
            (verified, None) if is_last => verified,
            _ => None,
        };
        self.server_waits =
            ServerWaits::together([&self.server_waits, &other.server_waits].into_iter().flatten());
        self.part = match (self.part.take(), other.part) {
            (Some(mut part), Some(other)) => {
                part.add(&other);
                Some(part)
            }
            (part, other) => part.or(other),
        };
        self.finished |= other.finished;
        self.columns.add(other.columns);
        self.notes.extend(other.notes);
    }

    /// Adds the results of a later load of the same source in the same run, which found and resent units that
    /// the target had lost.
    pub fn sent_again(&mut self, again: Self) {
        let Self { rows, content, verified, rows_rejected, mut notes, .. } = again;
        let lost = again.units.saturating_sub(again.units_resumed);
        if lost > 0 {
            notes.push(sent_again(lost, again.rows_loaded));
        }
        self.units_lost += lost;
        self.notes = notes;
        (self.rows, self.content, self.verified, self.rows_rejected) =
            (rows, content, verified, rows_rejected);
    }
}

/// The remark about units that a target has lost.
pub(crate) fn sent_again(units: u64, rows: u64) -> Note {
    Note::from(format!(
        "{} with {} had to be sent again: the server had confirmed their commit, and lost them with a connection",
        format_counted(units, "unit"),
        format_counted(rows, "row")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_file(verified: bool) -> LoadReport {
        let file = AlreadyLoaded { file: 0, tally: Tally::empty(0), rejected: 0, units: 1 };
        let verification = Verification::new(Vec::new(), Tally::empty(0), Tally::empty(0));
        LoadReport {
            verified: verified.then_some(verification),
            ..LoadReport::of_already_loaded(&[file], Vec::new())
        }
    }

    #[test]
    fn a_sum_of_reports_is_verified_only_if_each_of_them_is() {
        let none = || LoadReport::of_already_loaded(&[], Vec::new());
        let sum = |reports: Vec<LoadReport>| {
            let mut sum = none();
            reports.into_iter().for_each(|report| sum.add(report));
            sum.verified.is_some()
        };
        assert!(sum(vec![of_file(true), of_file(true), none()]));
        assert!(!sum(vec![of_file(true), of_file(false)]));
        assert!(!sum(vec![of_file(false), of_file(true)]));
        assert!(!sum(vec![of_file(true), of_file(false), of_file(true)]));
        assert!(!sum(Vec::new()));
    }
}
