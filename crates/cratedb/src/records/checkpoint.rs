//! The records of loads in the cluster: schema `sawmill` with the tables `loads` and `units`.
//!
//! CrateDB has no transactions: a unit's record is written when the server has acknowledged all of the
//! unit's rows. A crash between the two has the unit sent again, which its key makes harmless. (Names of
//! schemas must not begin with an underscore in older versions.)

mod replaced;
mod rows;
mod tables;

use sawmill_loader::{LoadFacts, LoadRecord, RecordedFiles, Tally};
use sawmill_source::{Error, Kind, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::connect::sql::Sql;
use crate::records::lease::lease_name;
use crate::records::shape::Shape;
use crate::table::names::quote;
pub(crate) use rows::{UnitRecord, ago, by_time};
use rows::{now, stored, stored_stamps};

/// The tables of records.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoints {
    schema: String,
}

/// The records, as one client reads and writes them.
pub(crate) struct Records<'c> {
    schema: &'c str,
    pub(super) sql: Sql<'c>,
}

/// The progress of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// All rows are in; the table is being put in its place.
    Placing,
    Complete,
    #[serde(other)]
    Loading,
}

/// A load's row.
#[derive(Clone, Debug)]
pub(crate) struct LoadRow {
    pub load: LoadRecord,
    /// The table, with its schema.
    pub target: String,
    pub state: State,
    /// Rows of the table as they were counted: before the load as long as it is under way, at its end when it
    /// is complete.
    pub rows: u64,
    /// The options that decide how the load stores rows and creates its table.
    pub shape: Shape,
    /// Runs that have begun, this one included: tags begin with their number.
    pub runs: u64,
    /// Moments by the clock of the loader, UTC, RFC 3339; `completed` is `None` until then.
    pub begun: String,
    pub completed: Option<String>,
    /// Requests whose rows were counted when the load ended; `None` for loads without tags.
    pub audited: Option<u64>,
}

impl LoadRow {
    /// Rows that the table had before the load; 0 if they gather in a separate table.
    pub(crate) fn rows_before(&self) -> u64 {
        if self.state == State::Loading { self.rows } else { 0 }
    }

    /// The lease that a run of the load holds.
    pub(crate) fn lease_name(&self) -> String {
        lease_name(&self.target, &self.load.mode, &self.load.id)
    }

    /// The columns of the table that the load fills; empty if that is not recorded.
    pub(crate) fn filled(&self) -> &[String] {
        &self.load.facts.filled
    }
}

/// Inserts what is not there.
const ONCE: &str = " ON CONFLICT DO NOTHING";
/// Units whose records are copied in one statement.
const UNITS_AT_ONCE: usize = 200;

/// The columns of a load's row when it begins, its ID first.
const INSERTED: &str = "\"load_id\", \"target\", \"mode\", \"state\", \"unit_rows\", \"files\", \"fingerprints\", \
    \"rows\", \"before\", \"begun\", \"stamps\", \"mapping\", \"shape\", \"runs\", \"facts\", \"completed\"";

impl Checkpoints {
    pub(crate) fn new(schema: &str) -> Self {
        Self { schema: schema.to_owned() }
    }

    /// The records, for a client.
    pub(crate) fn on<'c>(&'c self, sql: &'c mut Sql<'_>) -> Records<'c> {
        Records { schema: &self.schema, sql: sql.again() }
    }
}

impl Records<'_> {
    /// The quoted name of a table of records.
    pub(super) fn table(&self, name: &str) -> String {
        format!("{}.{}", quote(self.schema), quote(name))
    }

    /// Makes all rows of a table of records visible.
    pub(super) fn refresh(&mut self, table: &str) -> Result<()> {
        let refresh = format!("REFRESH TABLE {}", self.table(table));
        self.sql.run(&refresh, &[]).map(drop)
    }

    /// As [`refresh`](Self::refresh); whether the server refuses it, as it does without the table.
    pub(super) fn is_refused_refresh(&mut self, table: &str) -> Result<bool> {
        let refresh = format!("REFRESH TABLE {}", self.table(table));
        Ok(self.sql.unless_refused(&refresh, &[])?.is_err())
    }

    /// Changes the row of one load.
    ///
    /// # Errors
    /// The row is gone.
    fn update(&mut self, id: &str, set: &str, mut values: Vec<Value>) -> Result<()> {
        let statement = format!("UPDATE {} SET {set} WHERE \"load_id\" = ?", self.table("loads"));
        values.push(json!(id));
        match self.sql.run(&statement, &values)?.count()? {
            1 => Ok(()),
            _ => Err(Error::new(Kind::Changed, "the record of the load is gone")
                .at(self.sql.place())
                .advise("another command forgot the load (sawmill load forget) while it ran: load again")),
        }
    }

    /// Writes a load's row and removes what an earlier load of the same name has left; `is_known` says whether it has left
    /// its own row.
    pub(crate) fn begin(&mut self, row: &LoadRow, is_known: bool) -> Result<()> {
        if is_known {
            self.delete(&row.load.id)?;
        } else {
            self.delete_units(&row.load.id)?;
        }
        if self.insert(row, ONCE)? == 0
            && self.find(&row.load.id)?.is_none_or(|found| found.begun != row.begun)
        {
            // The row of a killed run has come late.
            self.delete(&row.load.id)?;
            self.insert(row, ONCE)?;
        }
        Ok(())
    }

    /// Copies the record of a complete load to another ID. Its row comes last: units without one count for nothing.
    pub(crate) fn copy(&mut self, row: LoadRow, other: String) -> Result<()> {
        let units: Vec<UnitRecord> = self.units(&row.load.id)?.into_values().collect();
        units.chunks(UNITS_AT_ONCE).try_for_each(|some| self.commit(&other, some))?;
        let load = LoadRecord { id: other, ..row.load };
        self.insert(&LoadRow { load, ..row }, ONCE).map(drop)
    }

    /// Inserts a load's row; `on_conflict` says what happens to one with its ID. Returns the number of rows inserted.
    fn insert(&mut self, row: &LoadRow, on_conflict: &str) -> Result<i64> {
        let load = &row.load;
        let arguments = [
            json!(load.id),
            json!(row.target),
            json!(load.mode),
            json!(row.state),
            json!(load.unit_rows),
            json!(load.files.names),
            json!(load.files.fingerprints),
            json!(row.rows),
            json!(load.before.as_ref().map(|tally| stored(tally).to_string())),
            json!(row.begun),
            stored_stamps(&load.files),
            json!(load.mapping_text()),
            json!(json!(row.shape).to_string()),
            json!(row.runs),
            json!(load.facts.to_text()),
            json!(row.completed),
        ];
        let (table, marks) = (self.table("loads"), ["?"; 16].join(", "));
        let statement = format!("INSERT INTO {table} ({INSERTED}) VALUES ({marks}){on_conflict}");
        self.sql.run(&statement, &arguments)?.count()
    }

    /// Records the files' current stamps of the file system.
    pub(crate) fn set_stamps(&mut self, id: &str, files: &RecordedFiles) -> Result<()> {
        let statement = format!("UPDATE {} SET \"stamps\" = ? WHERE \"load_id\" = ?", self.table("loads"));
        self.sql.run(&statement, &[stored_stamps(files), json!(id)]).map(drop)
    }

    /// Records that another run of a load begins, before it sends anything.
    pub(crate) fn set_runs(&mut self, id: &str, runs: u64) -> Result<()> {
        self.update(id, "\"runs\" = ?", vec![json!(runs)])
    }

    /// Records the progress of a load, the number of rows counted in the table, and how many requests an audit has found
    /// whole.
    pub(crate) fn set_state(
        &mut self,
        id: &str,
        state: State,
        (rows, audited): (u64, Option<u64>),
        (total, facts): (&Tally, &LoadFacts),
    ) -> Result<()> {
        let set = "\"state\" = ?, \"rows\" = ?, \"content_sum\" = ?, \"completed\" = ?, \"audited\" = ?, \"facts\" = ?";
        let values = vec![
            json!(state),
            json!(rows),
            json!(total.content_sum.to_string()),
            json!((state == State::Complete).then(now)),
            json!(audited),
            json!(facts.to_text()),
        ];
        self.update(id, set, values)
    }

    /// Removes a load and its units; an interrupted run may have left units without a load. Nothing is sent
    /// where nothing is there: a request that runs on after its connection would remove the new load of this name.
    pub(crate) fn delete(&mut self, id: &str) -> Result<()> {
        self.delete_units(id)?;
        let of_load = format!("FROM {} WHERE \"load_id\" = ?", self.table("loads"));
        // All of the primary key: found without a refresh.
        if !self.sql.run(&format!("SELECT \"load_id\" {of_load}"), &[json!(id)])?.rows()?.is_empty() {
            self.sql.settled(&format!("DELETE {of_load}"), &[json!(id)])?;
        }
        Ok(())
    }

    /// Removes the records of all loads into a table except one. The rows of the others are gone with the table
    /// that this load has replaced.
    pub(crate) fn delete_others(&mut self, target: &str, id: &str) -> Result<()> {
        for other in self.of_table(target)? {
            if other.load.id != id {
                self.delete(&other.load.id)?;
            }
        }
        Ok(())
    }
}
