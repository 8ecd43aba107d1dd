//! Loads as they are recorded, read.

use sawmill_loader::{LoadFacts, LoadRecord, RecordedFiles};
use sawmill_source::{Mapping, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::stored::{by_time, now, read_stored, unreadable};
use super::{INSERTED, LoadRow, Records, State};
use crate::records::shape::Shape;

/// A load's row: the columns of [`INSERTED`], and how many requests were audited.
#[derive(Deserialize)]
struct StoredLoad {
    id: String,
    target: String,
    mode: String,
    state: State,
    unit_rows: u64,
    names: Vec<String>,
    fingerprints: Vec<String>,
    rows: u64,
    before: Option<String>,
    begun: String,
    stamps: Vec<String>,
    mapping: String,
    shape: String,
    runs: u64,
    facts: Option<String>,
    completed: Option<String>,
    audited: Option<u64>,
}

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
        let statement = format!("SELECT {INSERTED}, \"audited\" FROM {}{condition}", self.table("loads"));
        let stored = self.sql.run(&statement, arguments)?.all::<StoredLoad>()?;
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
        let Self { target, state, rows, runs, begun, completed, audited, .. } = self;
        let stamps = self.stamps.into_iter().map(|stamp| (!stamp.is_empty()).then_some(stamp)).collect();
        let load = LoadRecord {
            id: self.id,
            mode: self.mode,
            table_oid: 0,
            unit_rows: self.unit_rows.max(1),
            files: RecordedFiles { names: self.names, fingerprints: self.fingerprints, stamps },
            complete: state == State::Complete,
            before: read_stored(self.before)?,
            mapping: Mapping::from_text(&self.mapping),
            facts: LoadFacts::from_text(self.facts.as_deref()),
        };
        let shape = serde_json::from_str(&self.shape).map_err(|error| unreadable(&error))?;
        Ok(LoadRow { load, target, state, rows, shape, runs, begun, completed, audited })
    }
}
