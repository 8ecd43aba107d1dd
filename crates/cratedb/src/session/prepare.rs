//! Decides what to do: start a load, finish an earlier one, nothing, or refuse.

mod append;
mod gather;
mod replacement;

use sawmill_loader::{LoadRecord, Mode, Tally};
use sawmill_source::{Error, Kind, Result};

use crate::connect::sql::Sql;
use crate::records::checkpoint::LoadRow;
use crate::session::insertion::statement_run;
use crate::session::opening::Opening;
use crate::table::catalogue;
use crate::table::names::{CrateTable, quote};

pub(crate) use append::{loaded_with_other_options, not_summed_up, rows_missing};

impl Opening<'_, '_> {
    /// Refuses to go on with other columns than those that the load began with.
    fn refuse_other_columns(&self, row: &LoadRow) -> Result<()> {
        let began = row.filled();
        if began.is_empty() || began == self.plan.filled() {
            return Ok(());
        }
        let what = format!("the load began with the columns {}", began.join(", "));
        Err(Error::new(Kind::Exists, what).at(self.place()).advise(
            "run the command with the options that it had then, or forget the load (sawmill load forget)",
        ))
    }

    fn is_empty(&mut self, table: &CrateTable) -> Result<bool> {
        Ok(self.sql.count(table)? == 0)
    }

    fn refuse_other_options(&self, row: &LoadRow) -> Result<()> {
        match self.shape.differs_from(&row.shape) {
            None => Ok(()),
            Some(differs) => Err(self.unfinished(Some(&differs), None)),
        }
    }

    /// The error for rows of an unfinished load that this one cannot continue.
    fn unfinished(&self, differs: Option<&str>, begun: Option<&LoadRecord>) -> Error {
        let what = match (differs, begun) {
            (Some(differs), _) => format!("an unfinished load of these files has other options: {differs}"),
            (None, Some(begun)) => format!(
                "a load into this table in mode {} with other files, columns or options is not finished: {} is there",
                begun.mode,
                self.table.staging()
            ),
            (None, None) => format!("{} is there, and no record says what it holds", self.table.staging()),
        };
        let forget = self.crate_db.forget_command(&self.table);
        let advice = format!(
            "run the command with the earlier options to finish that load, or drop its rows with: {forget}"
        );
        Error::new(Kind::Exists, what).at(self.place()).advise(advice)
    }

    /// Counts the rows of the table.
    fn count(&mut self) -> Result<u64> {
        let rows = self.sql.count(&self.table)?;
        self.counted = Some(rows);
        Ok(rows)
    }

    fn record(&self, before: Option<Tally>) -> LoadRow {
        let Self { crate_db, source, options, .. } = *self;
        let mut load = LoadRecord::new(&self.id, crate_db.mode, source, options, self.changes.clone());
        (load.facts.filled, load.facts.replaces) = (self.plan.filled(), crate_db.replaces);
        let load = LoadRecord { before, mapping: Some(self.mapping.clone()), ..load };
        let row = LoadRow::new(load, self.table.to_string(), self.shape.clone());
        // Late rows of an earlier statement must not arrive under the tags of this one.
        if self.crate_db.of_statement { LoadRow { runs: statement_run(), ..row } } else { row }
    }

    /// The record of this load.
    fn recorded(&mut self) -> Result<Option<LoadRow>> {
        self.checkpoints.on(&mut self.sql).find(&self.id)
    }

    /// All loads into the table.
    fn loads(&mut self) -> Result<Vec<LoadRow>> {
        self.checkpoints.on(&mut self.sql).of_table(&self.table.to_string())
    }

    fn refuse_changed(&self, row: &LoadRow) -> Result<()> {
        let changed = row.load.files.refuse_changed(self.source.files(), self.crate_db.mode == Mode::Append);
        changed.map_err(|error| error.at(self.place()))
    }

    fn exists(&self, how: &str) -> Error {
        Error::new(Kind::Exists, format!("the table exists already, {how}"))
            .at(self.place())
            .advise(
                "compare its rows first, which may be those of the files (sawmill verify): mode append adds all rows of the files \
                 that have no key and are not on record; mode replace puts another table in its place; or choose another table",
            )
    }

    fn place(&self) -> String {
        format!("table {}, {}", self.table, self.sql.place())
    }
}

/// Renames a table. If the answer gets lost, the catalogue shows whether it was done.
pub(crate) fn rename(from: &CrateTable, to: &CrateTable, sql: &mut Sql<'_>) -> Result<()> {
    let statement = format!("ALTER TABLE {} RENAME TO {}", from.quoted(), quote(&to.name));
    match sql.settled(&statement, &[]) {
        Ok(_) => Ok(()),
        Err(error) => match catalogue::which_exist(sql, [from, to])? {
            [false, true] => Ok(()),
            _ => Err(error),
        },
    }
}

/// Gives a sealed table its earlier name, which an empty table may have that a late request has made.
pub(crate) fn unseal(sealed: &CrateTable, to: &CrateTable, sql: &mut Sql<'_>) -> Result<()> {
    if let [true] = catalogue::which_exist(sql, [to])?
        && sql.count(to)? == 0
    {
        sql.drop_table(to)?;
    }
    rename(sealed, to, sql)
}
