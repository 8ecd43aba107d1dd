//! Compares the table's rows with the sent ones.

use sawmill_loader::{Located, Mode, Sums, Tally, Verification, quote, retry_lost};
use sawmill_source::{Control, Error, Kind, Result};

use super::PostgresSession;
use crate::rejected::bad_records::BadRecords;
use crate::table::catalogue::Link;
use crate::verify::locate::Locating;
use crate::verify::sums::{ReadBack, SourceSums};
use crate::write::replace_files::ReplacedFiles;
use crate::write::upsert::OnConflict;

impl PostgresSession<'_> {
    /// Reads the table back and compares it with the sum of the loaded rows.
    pub(super) fn compare(&self, expected: &Tally, control: &Control<'_>) -> Result<Verification> {
        self.assemble(control)?;
        let sums = self.read_back(false, control)?;
        let others = match self.rows_of_others(control) {
            // Not summed up before the load, but all on record.
            Err(_) if self.is_what_all_loads_recorded(&sums.whole, control)? => sums.whole.minus(expected),
            others => others?,
        };
        let columns = self.columns.iter().map(|column| column.name.clone()).collect();
        let target = sums.whole.minus(&others);
        let rows_of_others = match &self.postgres.on_conflict {
            OnConflict::ReplaceFiles(column) => self.rows_of_other_files(column, control)?,
            _ => others.rows,
        };
        let mut verification =
            Verification { rows_of_others, ..Verification::new(columns, expected.clone(), target) };
        if verification.matches() {
            return Ok(verification);
        }
        if self.is_what_all_loads_recorded(&sums.whole, control)? {
            let rows_of_others = sums.whole.rows.saturating_sub(expected.rows);
            let target = expected.clone();
            return Ok(Verification { rows_of_others, target, ..verification });
        }
        let refused = self.with_connection(control, |link| self.refused(link))?;
        if self.options.locate {
            let rows = verification.target.rows;
            verification.located = Some(self.locate(refused.as_ref(), rows, others.rows, control)?);
        }
        // If the table holds other rows as well, the columns' own sums cannot be separated.
        if others.rows == 0 {
            let source = self.sums_of_columns(refused.as_ref(), control)?;
            let table = self.read_back(true, control)?;
            verification.differing = source.differing(&table, self.columns.iter().map(|column| &column.name));
        }
        let place = format!("table {}, {}", self.table, self.postgres.server);
        verification.into_result(&place).map_err(|error| match self.postgres.mode {
            Mode::Append => error.advise(
                "another client or load wrote to the table, or a trigger changed rows: run the same command again when no other \
                 load runs; sawmill verify --locate shows where they differ",
            ),
            _ => error,
        })
    }

    /// Whether the table holds exactly the rows that this load and all others have recorded. The sum of the rows before
    /// this load lacks those that another one committed while it was read.
    fn is_what_all_loads_recorded(&self, whole: &Tally, control: &Control<'_>) -> Result<bool> {
        if self.postgres.mode != Mode::Append || self.record.mapping.is_none() {
            return Ok(false);
        }
        self.with_connection(control, |link| {
            let columns = self.plan.planned.recorded(&self.columns);
            let all = self.plan.checkpoints.on(link).sum_of_table(&self.record, &columns)?;
            Ok(all.as_ref() == Some(whole))
        })
    }

    /// The sums of the table's rows, and of each column if requested.
    fn read_back(&self, each_column: bool, control: &Control<'_>) -> Result<Sums> {
        let read = ReadBack::new(&self.server, &self.written, &self.columns, self.options.degree);
        let read = ReadBack { each_column, ..read };
        match self.server.allows_one_connection() {
            true => self.with_connection(control, |link| read.led_by(link)),
            false => retry_lost(self.options.retries, control, || read.run(control)),
        }
    }

    /// The sum of the table's rows that earlier and later loads added.
    fn rows_of_others(&self, control: &Control<'_>) -> Result<Tally> {
        let since = if self.written == self.table {
            self.with_connection(control, |link| self.plan.checkpoints.on(link).since(&self.record))?
        } else {
            None
        };
        let mut others = Tally::empty(self.columns.len());
        since.iter().for_each(|since| others.add(since));
        match (&self.record.before, self.postgres.mode.gathers()) {
            (Some(before), _) => others.add(before),
            (None, true) => {}
            (None, false) => {
                let what =
                    "cannot be verified: the rows that the table held before the load were not summed up";
                return Err(Error::new(Kind::Mismatch, what)
                    .at(format!("table {}", self.table))
                    .advise("use --verify from the first run of an append on"));
            }
        }
        Ok(others)
    }

    /// The number of the table's rows that a replacement leaves: they are not of its files.
    fn rows_of_other_files(&self, column: &str, control: &Control<'_>) -> Result<u64> {
        let names: Vec<String> = self.source.files().iter().map(|file| file.name.clone()).collect();
        let sql = format!(
            "SELECT count(*) FROM {} WHERE ({}::text = ANY ($1)) IS NOT TRUE",
            self.table.quoted(),
            quote(column)
        );
        let count = |link: Link<'_>| link.value::<i64>(&sql, &[&names]);
        Ok(self.with_connection(control, count)? as u64)
    }

    /// Locates missing rows. The table must have `rows` rows of this load, and `others` rows of other loads.
    fn locate(
        &self,
        refused: Option<&BadRecords>,
        rows: u64,
        others: u64,
        control: &Control<'_>,
    ) -> Result<Located> {
        let locating = self.locating(refused);
        let rows = rows + others;
        let mut located = match self.server.allows_one_connection() {
            true => self.with_connection(control, |link| locating.on(link, rows))?,
            false => locating.run(rows, control)?,
        };
        located.rows_of_none = located.rows_of_none.saturating_sub(others);
        Ok(located)
    }

    fn locating<'l>(&'l self, refused: Option<&'l BadRecords>) -> Locating<'l> {
        Locating {
            source: self.around_kept.as_ref().map_or(self.source, |kept| kept),
            server: &self.server,
            table: &self.written,
            columns: &self.columns,
            options: self.options,
            unit_rows: self.record.unit_rows,
            rejected: None,
            refused,
            records: self.postgres.several.as_ref().map(|several| &several.records),
        }
    }

    /// The error of a merge that the server or a row to delete refuses. It says where a row is that has no
    /// key, or in mode history the key of an earlier row.
    pub(super) fn refused_in_merge(&self, error: Error, link: Link<'_>) -> Error {
        let error = self.postgres.refused_in_merge(error);
        let (matching, deletes) = (self.postgres.matching(), self.postgres.has_deletes());
        if error.kind() != Kind::Value || !(deletes || matching.on_conflict.is_history()) {
            return error;
        }
        let clause =
            if deletes { matching.first_without_key() } else { matching.first_unclear(&self.written) };
        let row = link.batch("ROLLBACK");
        let row = row.and_then(|()| self.locating(None).place_of(link, &clause));
        match row.ok().flatten() {
            Some(row) => error.at(self.plan.place(row.0, row.1)).of_rows(row, row),
            None => error,
        }
    }

    /// The error of a replacement that the server refuses. If the reason is a key that another row has, it names both
    /// rows.
    pub(super) fn refused_in_replacement(
        &self,
        error: Error,
        files: &ReplacedFiles<'_>,
        link: Link<'_>,
    ) -> Error {
        let error = self.postgres.refused_in_merge(error);
        // unique_violation, whatever the server's language
        if !error.what().ends_with("[23505]") {
            return error;
        }
        let same = link.batch("ROLLBACK").and_then(|()| files.same_key(link));
        let Ok(Some((clause, what))) = same else { return error };
        let place = self.locating(None).place_of(link, &clause).ok().flatten();
        let named = Error::new(error.kind(), format!("{what}: {}", error.what())).advise(error.advice());
        match place {
            Some(row) => named.at(self.plan.place(row.0, row.1)).of_rows(row, row),
            None => named.at(format!("table {}, {}", self.table, error.place())),
        }
    }

    /// The sums of the source's columns, without the refused records.
    fn sums_of_columns(&self, refused: Option<&BadRecords>, control: &Control<'_>) -> Result<Sums> {
        let sums = SourceSums {
            source: self.source,
            columns: &self.columns,
            options: self.options,
            unit_rows: self.record.unit_rows,
            each_column: true,
            by_value: false,
            leave_out: refused.is_some(),
            refused,
        };
        sums.run(control).map(|(sums, _)| sums)
    }
}
