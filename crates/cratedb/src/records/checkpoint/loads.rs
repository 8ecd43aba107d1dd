//! Loads as they are recorded, read.

use sawmill_loader::{LoadFacts, LoadRecord};
use sawmill_source::Result;
use serde::Deserialize;
use serde_json::{Value, json};

use super::stored::{by_time, now, read_shape, read_stored, recorded_files};
use super::{LoadRow, Records, State};
use crate::records::shape::Shape;

/// The columns of a load's row, in the order of [`StoredLoad`].
const COLUMNS: &str = "\"load_id\", \"target\", \"mode\", \"state\", \"unit_rows\", \"files\", \
    \"fingerprints\", \"stamps\", \"mapping\", \"rows\", \"before\", \"shape\", \"runs\", \"begun\", \
    \"completed\", \"audited\", \"facts\"";

#[derive(Deserialize)]
struct StoredLoad(
    String,
    String,
    String,
    String,
    u64,
    Vec<String>,
    Vec<String>,
    Vec<String>,
    String,
    u64,
    Option<String>,
    String,
    u64,
    String,
    Option<String>,
    Option<u64>,
    Option<String>,
);

impl Records<'_> {
    /// All loads, in the order in which they began.
    pub(crate) fn all(&mut self) -> Result<Vec<LoadRow>> {
        self.refresh("loads")?;
        self.loads("", &[])
    }

    /// The loads into a table, in the order in which they began.
    pub(crate) fn of_table(&mut self, target: &str) -> Result<Vec<LoadRow>> {
        self.refresh("loads")?;
        self.loads(" WHERE \"target\" = ?", &[json!(target)])
    }

    /// A load's row. The server looks up a whole key without a refresh.
    pub(crate) fn find(&mut self, id: &str) -> Result<Option<LoadRow>> {
        Ok(self.loads(" WHERE \"load_id\" = ?", &[json!(id)])?.pop())
    }

    fn loads(&mut self, condition: &str, arguments: &[Value]) -> Result<Vec<LoadRow>> {
        let statement = format!("SELECT {COLUMNS} FROM {}{condition}", self.table("loads"));
        let stored = self.run(&statement, arguments)?.all::<StoredLoad>()?;
        let mut loads = stored.into_iter().map(StoredLoad::read).collect::<Result<Vec<_>>>()?;
        loads.sort_by(|a, b| (by_time(&a.begun), &a.load.id).cmp(&(by_time(&b.begun), &b.load.id)));
        Ok(loads)
    }
}

impl LoadRow {
    /// The row of a load that begins now.
    pub(crate) fn new(load: LoadRecord, target: String, shape: Shape) -> Self {
        let (state, begun) = (State::Loading, now());
        Self { load, target, state, rows: 0, shape, runs: 1, begun, completed: None, audited: None }
    }
}

impl StoredLoad {
    fn read(self) -> Result<LoadRow> {
        let Self(id, target, mode, state, unit_rows, names, prints, stamps, mapping, rows, before, ..) = self;
        let (shape, runs, begun, completed, audited, facts) =
            (self.11, self.12, self.13, self.14, self.15, self.16);
        let state = State::new(&state);
        let load = LoadRecord {
            id,
            mode,
            table_oid: 0,
            unit_rows: unit_rows.max(1),
            files: recorded_files(names, prints, stamps),
            complete: state == State::Complete,
            before: read_stored(before)?,
            mapping,
            facts: LoadFacts::from_text(facts.as_deref()),
        };
        let shape = read_shape(&shape)?;
        Ok(LoadRow { load, target, state, rows, shape, runs, begun, completed, audited })
    }
}
