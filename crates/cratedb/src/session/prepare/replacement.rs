//! A file whose rows take the place of those that it had: they are deleted, then the new ones are loaded.
//!
//! CrateDB has no transactions. So all that a later run has to know is on record before the first row goes:
//!
//! 1. The load's record, not complete. A command finds it before it looks at any other record, and either begins the
//!    replacement again or refuses to load.
//! 2. The records of earlier loads say that the file's rows are not theirs any more.
//! 3. The rows go that have the file's name, whatever run, content or program brought them.
//! 4. The new rows come.
//! 5. The rows with the file's name are counted, and the record is complete.
//!
//! A run that finds 1 without 5 begins again with 1. Requests of an earlier run that still work are waited for before
//! rows go (3); rows that arrive later are more than were acknowledged (5).

use sawmill_loader::{LoadRecord, LoadState, Mode, Tally, refuse_to_replace};
use sawmill_profile::{format_counted, format_grouped};
use sawmill_source::{Error, Kind, Result, Source};
use serde_json::json;

use crate::connect::sql::Sql;
use crate::records::checkpoint::LoadRow;
use crate::records::void;
use crate::session::CrateSession;
use crate::session::opening::Opening;
use crate::table::names::{CrateTable, quote};
use crate::tags::jobs;
use crate::target::CrateDb;

/// Deletions in a row after which rows of the file are still there.
const ROUNDS: usize = 10;

/// The rows of a table that have the name of a file.
struct FileRows<'a> {
    table: &'a CrateTable,
    column: &'a str,
    name: &'a str,
}

impl<'a> FileRows<'a> {
    /// The rows of the source's only file.
    fn new(crate_db: &'a CrateDb, source: &'a dyn Source, table: &'a CrateTable) -> Option<Self> {
        match (crate_db.file_column.as_deref(), source.files()) {
            (Some(column), [file]) => Some(Self { table, column, name: &file.name }),
            _ => None,
        }
    }

    /// Counts them, after a refresh.
    fn count(&self, sql: &mut Sql<'_>) -> Result<u64> {
        sql.refresh(self.table)?;
        let (table, column) = (self.table.quoted(), quote(self.column));
        sql.number(&format!("SELECT count(*) FROM {table} WHERE {column} = ?"), &[json!(self.name)])
    }

    /// Deletes them. Returns when none is there and no statement runs that could bring one, or could delete later ones.
    /// `in_doubt` says that an earlier run may have left such statements.
    fn delete(&self, mut in_doubt: bool, sql: &mut Sql<'_>) -> Result<()> {
        let delete = format!("DELETE FROM {} WHERE {} = ?", self.table.quoted(), quote(self.column));
        for _ in 0..ROUNDS {
            jobs::outlast(sql, self.table, in_doubt)?;
            if self.count(sql)? == 0 {
                return Ok(());
            }
            let tries = sql.client.retried;
            sql.run(&delete, &[json!(self.name)])?;
            // A deletion whose answer got lost may run on.
            in_doubt |= sql.client.retried > tries;
        }
        Err(Error::new(Kind::Busy, format!("rows of {} keep arriving", self.name))
            .at(format!("table {}, {}", self.table, sql.place()))
            .advise(
                "find out who writes them; then run the same command again, which begins with these rows",
            ))
    }
}

impl Opening<'_, '_> {
    pub(crate) fn replace_rows(&mut self) -> Result<(LoadRow, LoadState)> {
        let (mut record, table) = (self.record(None), self.table.clone());
        let Some(rows) = FileRows::new(self.crate_db, self.source, &table) else {
            return Err(Error::new(Kind::Config, "only the rows of one file are replaced at once"));
        };
        if !self.plan.columns.iter().any(|column| column.name == rows.column) {
            let what = format!("the table has no column {:?} with the files of its rows", rows.column);
            return Err(Error::new(Kind::Schema, what)
                .at(self.place())
                .advise("name its column with --file-column, or append with --changed append"));
        }
        self.replaced = rows.count(&mut self.sql)?;
        let is_interrupted = self.recorded()?.is_some_and(|record| !record.load.complete);
        let in_doubt = is_interrupted || !self.unfinished_of_files()?.is_empty();
        self.refuse_beside()?;
        let others = self.others_of_files()?;
        let mut otherwise: Vec<&LoadRecord> = Vec::new();
        for row in others.iter().filter(|row| row.load.mapping.is_some() && !row.load.takes(&self.mapping)) {
            if row.load.mode != Mode::Upsert.name()
                && !void::holds_nothing(row, true, (&self.table, &self.checkpoints), &mut self.sql)?
            {
                otherwise.push(&row.load);
            }
        }
        refuse_to_replace(self.source, &[0], &otherwise).map_err(|error| error.at(self.place()))?;
        self.records().begin_replacement(&record)?;
        // A load that has begun meanwhile sees this one, or is seen now.
        self.refuse_beside()?;
        self.records().mark_replaced(&record)?;
        rows.delete(in_doubt, &mut self.sql)?;
        if self.options.verify {
            record.load.before = self.sum_up_before()?;
        }
        record.rows = self.count()?;
        self.records().set_before(&record)?;
        Ok((record, LoadState::New))
    }
}

impl CrateSession<'_> {
    /// The table has exactly the rows of the file that were acknowledged.
    pub(in crate::session) fn check_replaced(&self, total: &Tally, sql: &mut Sql<'_>) -> Result<()> {
        let Some(rows) = FileRows::new(self.crate_db, self.source, &self.table) else { return Ok(()) };
        let found = rows.count(sql)?;
        // Equal rows of the file under one primary key are one row of the table.
        let least = total.rows.saturating_sub(self.writers.before.rows());
        if (least..=total.rows).contains(&found) {
            return Ok(());
        }
        let acknowledged = format_counted(total.rows, "row");
        let what = format!(
            "{acknowledged} of {} were acknowledged, the table has {}",
            rows.name,
            format_grouped(found)
        );
        Err(self
            .error(Kind::Mismatch, what)
            .advise("run the same command again: it begins with the rows of this file"))
    }

    /// What a replacement has done.
    pub(in crate::session) fn note_of_replaced(&self, loaded: u64) -> Option<String> {
        let file = self.source.files().first().filter(|_| self.crate_db.replaces)?;
        let (replaced, name) = (format_grouped(self.replaced), &file.name);
        Some(format!("{} of {name} replaced {replaced} rows that it had", format_counted(loaded, "row")))
    }
}
