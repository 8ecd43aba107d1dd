//! Loads as they are recorded, read.

use sawmill_loader::{EarlierLoad, LoadFacts};
use sawmill_source::{Control, Result};
use serde::Deserialize;
use serde_json::json;

use super::stored::{by_time, read_shape, read_stored, recorded_files};
use super::{Checkpoints, LoadIntoTable, LoadRecord, RecordedLoad, State};
use crate::connect::client::Client;

impl Checkpoints {
    /// All loads, the latest first.
    pub(crate) fn all(&self, client: &mut Client, control: &Control<'_>) -> Result<Vec<RecordedLoad>> {
        #[derive(Deserialize)]
        struct Row(
            String,
            String,
            String,
            String,
            Vec<String>,
            String,
            Option<String>,
            Option<u64>,
            Vec<String>,
            Option<String>,
        );
        let table = self.table("loads");
        self.run(client, &format!("REFRESH TABLE {table}"), &[], control)?;
        let statement = format!(
            "SELECT \"load_id\", \"target\", \"mode\", \"state\", \"files\", \"begun\", \"completed\", \"audited\", \
             \"fingerprints\", \"facts\" FROM {table}"
        );
        let rows = self.run(client, &statement, &[], control)?.all::<Row>()?;
        let loads = rows.into_iter().map(
            |Row(id, target, mode, state, files, begun, completed, audited, fingerprints, facts)| {
                RecordedLoad {
                    id,
                    target,
                    mode,
                    state: State::new(&state),
                    files,
                    fingerprints,
                    facts: LoadFacts::from_text(facts.as_deref()),
                    begun,
                    completed,
                    audited,
                }
            },
        );
        let mut loads: Vec<RecordedLoad> = loads.collect();
        loads.sort_by(|a, b| (by_time(&b.begun), &a.id).cmp(&(by_time(&a.begun), &b.id)));
        Ok(loads)
    }

    /// The loads into a table, in the order in which they began.
    pub(crate) fn of_table(
        &self,
        client: &mut Client,
        target: &str,
        control: &Control<'_>,
    ) -> Result<Vec<LoadIntoTable>> {
        let table = self.table("loads");
        self.run(client, &format!("REFRESH TABLE {table}"), &[], control)?;
        let statement = format!(
            "SELECT \"load_id\", \"mode\", \"state\", \"unit_rows\", \"files\", \"fingerprints\", \"stamps\", \"mapping\", \
             \"rows\", \"begun\", \"completed\", \"shape\", \"facts\" FROM {table} WHERE \"target\" = ?"
        );
        let mut rows = self.run(client, &statement, &[json!(target)], control)?.all::<RowOfTable>()?;
        // In the order in which they began.
        rows.sort_by(|a, b| (by_time(&a.9), &a.0).cmp(&(by_time(&b.9), &b.0)));
        rows.into_iter().map(RowOfTable::read).collect()
    }

    /// A load's row.
    pub(crate) fn find(
        &self,
        client: &mut Client,
        id: &str,
        control: &Control<'_>,
    ) -> Result<Option<LoadRecord>> {
        #[derive(Deserialize)]
        struct Row(
            String,
            u64,
            Vec<String>,
            Vec<String>,
            Vec<String>,
            u64,
            Option<String>,
            String,
            u64,
            Option<String>,
        );
        let statement = format!(
            "SELECT \"state\", \"unit_rows\", \"files\", \"fingerprints\", \"stamps\", \"rows\", \"before\", \"shape\", \"runs\", \"facts\" FROM {} \
             WHERE \"load_id\" = ?",
            self.table("loads")
        );
        let answer = self.run(client, &statement, &[json!(id)], control)?;
        let Some(Row(state, unit_rows, names, fingerprints, stamps, rows, before, shape, runs, facts)) =
            answer.all::<Row>()?.into_iter().next()
        else {
            return Ok(None);
        };
        Ok(Some(LoadRecord {
            id: id.to_owned(),
            state: State::new(&state),
            unit_rows: unit_rows.max(1),
            files: recorded_files(names, fingerprints, stamps),
            rows,
            before: read_stored(before)?,
            shape: read_shape(&shape)?,
            runs,
            facts: LoadFacts::from_text(facts.as_deref()),
        }))
    }
}

/// A row of a load into a table: id, mode, state, rows of a unit, files, fingerprints, stamps, mapping, rows,
/// begun, completed, shape, facts.
#[derive(Deserialize)]
struct RowOfTable(
    String,
    String,
    String,
    u64,
    Vec<String>,
    Vec<String>,
    Vec<String>,
    String,
    u64,
    String,
    Option<String>,
    String,
    Option<String>,
);

impl RowOfTable {
    fn read(self) -> Result<LoadIntoTable> {
        let Self(
            id,
            mode,
            state,
            unit_rows,
            names,
            prints,
            stamps,
            mapping,
            rows,
            _,
            completed,
            shape,
            facts,
        ) = self;
        let facts = LoadFacts::from_text(facts.as_deref());
        Ok(LoadIntoTable {
            rows,
            completed,
            shape: read_shape(&shape)?,
            filled: facts.filled,
            load: EarlierLoad {
                id,
                mode,
                table: None,
                unit_rows: unit_rows.max(1),
                files: recorded_files(names, prints, stamps),
                complete: State::new(&state) == State::Complete,
                mapping,
            },
        })
    }
}
