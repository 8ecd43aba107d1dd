//! The records of loads in the cluster: schema `sawmill` with the tables `loads` and `units`.
//!
//! CrateDB has no transactions: a unit's record is written when the server has acknowledged all of the
//! unit's rows. A crash between the two has the unit sent again, which its key makes harmless. (Names of
//! schemas must not begin with an underscore in older versions.)

mod loads;
mod stored;
mod tables;
mod units;

use sawmill_loader::{EarlierLoad, LoadFacts, RecordedFiles, Tally};
use sawmill_source::{Control, Error, Kind, Result};
use serde_json::{Value, json};

use crate::connect::client::Client;
use crate::records::shape::Shape;
use crate::table::names::quote;
pub(crate) use stored::{ago, by_time};
use stored::{now, stored, stored_stamps};
pub(crate) use units::UnitRecord;

/// The checkpoint tables.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoints {
    schema: String,
    retries: u32,
}

/// The progress of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Loading,
    /// All rows are in; the table is being put in its place.
    Placing,
    Complete,
}

impl State {
    fn new(name: &str) -> Self {
        match name {
            "complete" => Self::Complete,
            "placing" => Self::Placing,
            _ => Self::Loading,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Placing => "placing",
            Self::Complete => "complete",
        }
    }
}

/// A load's row.
#[derive(Clone, Debug)]
pub(crate) struct LoadRecord {
    pub id: String,
    pub state: State,
    pub unit_rows: u64,
    pub files: RecordedFiles,
    /// Rows of the table as they were counted: before the load as long as it is under way, at its end when it
    /// is complete.
    pub rows: u64,
    /// The table's earlier content, if rows are appended and will be verified.
    pub before: Option<Tally>,
    /// The options that decide how the load stores rows and creates its table.
    pub shape: Shape,
    /// Runs that have begun, this one included: tags begin with their number.
    pub runs: u64,
    /// How the load was run.
    pub facts: LoadFacts,
}

impl LoadRecord {
    /// Rows that the table had before the load; 0 if they gather in a separate table.
    pub(crate) fn rows_before(&self) -> u64 {
        if self.state == State::Loading { self.rows } else { 0 }
    }
}

/// A load as [`crate_status`](crate::crate_status) shows it.
#[derive(Clone, Debug)]
pub(crate) struct RecordedLoad {
    pub id: String,
    pub target: String,
    pub mode: String,
    pub state: State,
    pub files: Vec<String>,
    pub fingerprints: Vec<String>,
    pub facts: LoadFacts,
    /// Moments by the clock of the loader, UTC, RFC 3339.
    pub begun: String,
    pub completed: Option<String>,
    /// Requests whose rows were counted when the load ended; `None` for loads without tags.
    pub audited: Option<u64>,
}

/// An earlier load into the same table.
pub(crate) struct LoadIntoTable {
    pub load: EarlierLoad,
    /// The table's row count when the load was complete.
    pub rows: u64,
    /// When the load was complete; `None` if it is not.
    pub completed: Option<String>,
    /// As of [`LoadRecord::shape`].
    pub shape: Shape,
    /// The columns of the table that it fills; empty if that is not recorded.
    pub filled: Vec<String>,
}

fn record_is_gone(client: &Client) -> Error {
    Error::new(Kind::Changed, "the record of the load is gone")
        .at(client.place())
        .advise("another command forgot the load (sawmill load forget) while it ran: load again")
}

impl Checkpoints {
    pub(crate) fn new(schema: &str, retries: u32) -> Self {
        Self { schema: schema.to_owned(), retries }
    }

    /// The same tables, without retries.
    pub(crate) fn at_once(&self) -> Self {
        Self { schema: self.schema.clone(), retries: 0 }
    }

    pub(crate) fn table(&self, name: &str) -> String {
        format!("{}.{}", quote(&self.schema), quote(name))
    }

    pub(crate) fn run(
        &self,
        client: &mut Client,
        statement: &str,
        arguments: &[Value],
        control: &Control<'_>,
    ) -> Result<crate::connect::client::Answer> {
        client.sql(statement, arguments, self.retries, control)
    }

    /// Writes a load's row and removes what an earlier load of the same name has left.
    pub(crate) fn begin(
        &self,
        client: &mut Client,
        record: &LoadRecord,
        [target, mode, mapping]: [&str; 3],
        control: &Control<'_>,
    ) -> Result<()> {
        self.delete(client, "load_id", &record.id, control)?;
        let statement = format!(
            "INSERT INTO {} (\"load_id\", \"target\", \"mode\", \"state\", \"unit_rows\", \"files\", \"fingerprints\", \"rows\", \"before\", \"begun\", \"stamps\", \"mapping\", \"shape\", \"runs\", \"facts\") \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            self.table("loads")
        );
        let arguments = [
            json!(record.id),
            json!(target),
            json!(mode),
            json!(record.state.name()),
            json!(record.unit_rows),
            json!(record.files.names),
            json!(record.files.fingerprints),
            json!(record.rows),
            json!(record.before.as_ref().map(|tally| stored(tally).to_string())),
            json!(now()),
            stored_stamps(&record.files),
            json!(mapping),
            json!(json!(record.shape).to_string()),
            json!(record.runs),
            json!(record.facts.to_text()),
        ];
        self.run(client, &statement, &arguments, control)?;
        Ok(())
    }

    /// Records the files' current stamps of the file system.
    pub(crate) fn set_stamps(
        &self,
        client: &mut Client,
        id: &str,
        files: &RecordedFiles,
        control: &Control<'_>,
    ) -> Result<()> {
        let statement = format!("UPDATE {} SET \"stamps\" = ? WHERE \"load_id\" = ?", self.table("loads"));
        self.run(client, &statement, &[stored_stamps(files), json!(id)], control)?;
        Ok(())
    }

    /// Records that another run of a load begins, before it sends anything.
    pub(crate) fn set_runs(
        &self,
        client: &mut Client,
        id: &str,
        runs: u64,
        control: &Control<'_>,
    ) -> Result<()> {
        let statement = format!("UPDATE {} SET \"runs\" = ? WHERE \"load_id\" = ?", self.table("loads"));
        match self.run(client, &statement, &[json!(runs), json!(id)], control)?.count()? {
            1 => Ok(()),
            _ => Err(record_is_gone(client)),
        }
    }

    /// Records the progress of a load, the number of rows counted in the table, and how many requests an audit has found
    /// whole.
    pub(crate) fn set_state(
        &self,
        client: &mut Client,
        id: &str,
        state: State,
        (rows, audited): (u64, Option<u64>),
        (total, facts): (&Tally, &LoadFacts),
        control: &Control<'_>,
    ) -> Result<()> {
        let statement = format!(
            "UPDATE {} SET \"state\" = ?, \"rows\" = ?, \"content_sum\" = ?, \"completed\" = ?, \"audited\" = ?, \
             \"facts\" = ? WHERE \"load_id\" = ?",
            self.table("loads")
        );
        let completed = (state == State::Complete).then(now);
        let arguments = [
            json!(state.name()),
            json!(rows),
            json!(total.content_sum.to_string()),
            json!(completed),
            json!(audited),
            json!(facts.to_text()),
            json!(id),
        ];
        match self.run(client, &statement, &arguments, control)?.count()? {
            1 => Ok(()),
            _ => Err(record_is_gone(client)),
        }
    }

    /// Removes loads with their units: one load, or all loads into a table. Returns the number of loads.
    pub(crate) fn delete(
        &self,
        client: &mut Client,
        column: &str,
        value: &str,
        control: &Control<'_>,
    ) -> Result<u64> {
        let (loads, units) = (self.table("loads"), self.table("units"));
        self.run(client, &format!("REFRESH TABLE {loads}"), &[], control)?;
        self.run(client, &format!("REFRESH TABLE {units}"), &[], control)?;
        let statement = format!("SELECT \"load_id\" FROM {loads} WHERE {} = ?", quote(column));
        let found = self.run(client, &statement, &[json!(value)], control)?.all::<(String,)>()?;
        let mut ids: Vec<String> = found.into_iter().map(|(id,)| id).collect();
        let forgotten = ids.len() as u64;
        if column == "load_id" && ids.is_empty() {
            let left = format!("SELECT count(*) FROM {units} WHERE \"load_id\" = ?");
            let left = self.run(client, &left, &[json!(value)], control)?.all::<(u64,)>()?;
            if left.first().is_some_and(|(count,)| *count == 0) {
                return Ok(0);
            }
            ids.push(value.to_owned());
        }
        for id in ids {
            for table in [&units, &loads] {
                self.run(
                    client,
                    &format!("DELETE FROM {table} WHERE \"load_id\" = ?"),
                    &[json!(id)],
                    control,
                )?;
            }
        }
        for table in [&units, &loads] {
            self.run(client, &format!("REFRESH TABLE {table}"), &[], control)?;
        }
        Ok(forgotten)
    }

    /// Removes the records of all loads into a table except one. The rows of the others are gone with the table
    /// that this load has replaced.
    pub(crate) fn delete_others(
        &self,
        client: &mut Client,
        target: &str,
        id: &str,
        control: &Control<'_>,
    ) -> Result<()> {
        for other in self.of_table(client, target, control)? {
            if other.load.id != id {
                self.delete(client, "load_id", &other.load.id, control)?;
            }
        }
        Ok(())
    }
}
