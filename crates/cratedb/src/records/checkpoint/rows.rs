//! Loads and units as the tables of records have them.

use std::collections::HashMap;
use std::time::{Duration, UNIX_EPOCH};

use arrow_schema::TimeUnit;
use sawmill_loader::{LoadFacts, LoadRecord, RecordedFiles, RecordedUnit, Tally};
use sawmill_profile::turns;
use sawmill_source::{Error, Kind, Mapping, Result, UnitKey};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{INSERTED, LoadRow, Records, State};
use crate::records::shape::Shape;
use crate::tags::Tagged;

/// A committed unit.
#[derive(Clone, Debug)]
pub(crate) struct UnitRecord {
    pub unit: UnitKey,
    /// Its rows. The refused ones are the rejected rows that were sent; others cannot be represented.
    pub rows: RecordedUnit,
    /// Rows that an earlier load had inserted, if known.
    pub there_before: Option<Tally>,
    /// The tags of the requests that inserted its rows; empty for loads without tags.
    pub tags: Vec<Tagged>,
}

impl Records<'_> {
    /// All committed units of a load.
    pub(crate) fn units(&mut self, id: &str) -> Result<HashMap<UnitKey, UnitRecord>> {
        self.refresh("units")?;
        let statement = format!("{} WHERE \"load_id\" = ?", self.select_units());
        let rows = self.sql.run(&statement, &[json!(id)])?.all::<UnitRow>()?;
        rows.into_iter().map(UnitRow::read).collect()
    }

    /// A unit of a load, if it is committed.
    pub(crate) fn unit(&mut self, id: &str, key: UnitKey) -> Result<Option<UnitRecord>> {
        // All of the primary key: found without a refresh.
        let statement = format!("{}{WHOLE_KEY}", self.select_units());
        let rows = self.sql.run(&statement, &whole_key(id, key))?.all::<UnitRow>()?;
        rows.into_iter().next().map(|row| Ok(row.read()?.1)).transpose()
    }

    /// Removes the record of a unit that will be sent again.
    pub(crate) fn delete_unit(&mut self, id: &str, key: UnitKey) -> Result<()> {
        let statement = format!("DELETE FROM {}{WHOLE_KEY}", self.table("units"));
        self.sql.run(&statement, &whole_key(id, key)).map(drop)
    }

    /// Removes the records of all units of a load.
    pub(super) fn delete_units(&mut self, id: &str) -> Result<()> {
        self.refresh("units")?;
        let of_load = format!("FROM {} WHERE \"load_id\" = ?", self.table("units"));
        if self.sql.number(&format!("SELECT count(*) {of_load}"), &[json!(id)])? != 0 {
            self.sql.run(&format!("DELETE {of_load}"), &[json!(id)])?;
            self.refresh("units")?;
        }
        Ok(())
    }

    fn select_units(&self) -> String {
        format!("SELECT {COLUMNS} FROM {}", self.table("units"))
    }

    /// Records that all rows of these units are in.
    pub(crate) fn commit(&mut self, id: &str, units: &[UnitRecord]) -> Result<()> {
        let statement = format!(
            "INSERT INTO {} (\"load_id\", {COLUMNS}) VALUES {} ON CONFLICT DO NOTHING",
            self.table("units"),
            vec!["(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"; units.len()].join(", ")
        );
        let text = |tally: &Option<Tally>| tally.as_ref().map(|tally| stored(tally).to_string());
        let values = units.iter().flat_map(|UnitRecord { unit, rows, there_before, tags }| {
            let [load, file, row_group, first_row] = whole_key(id, *unit);
            [
                load,
                file,
                row_group,
                first_row,
                json!(rows.tally.rows),
                json!(rows.rejected),
                json!(rows.tally.content_sum.to_string()),
                json!(rows.tally.non_null),
                json!(text(&rows.refused)),
                json!(text(there_before)),
                json!(stored_tags(tags)),
            ]
        });
        self.sql.run(&statement, &values.collect::<Vec<_>>()).map(drop)
    }
}

/// The columns of a unit's record after its load's ID, in the order of [`UnitRow`].
const COLUMNS: &str = "\"file\", \"row_group\", \"first_row\", \"rows\", \"rejected\", \"content_sum\", \"non_null\", \
    \"refused\", \"there_before\", \"tags\"";

/// The condition for one unit.
const WHOLE_KEY: &str = " WHERE \"load_id\" = ? AND \"file\" = ? AND \"row_group\" = ? AND \"first_row\" = ?";

/// The primary key of a unit's record.
fn whole_key(id: &str, key: UnitKey) -> [Value; 4] {
    [json!(id), json!(key.file), json!(key.row_group), json!(key.first_row)]
}

/// Tags and their rows as they are stored.
fn stored_tags(tags: &[Tagged]) -> Option<String> {
    let pairs: Vec<(i64, u64)> = tags.iter().map(|tagged| (tagged.tag, tagged.rows)).collect();
    (!pairs.is_empty()).then(|| json!(pairs).to_string())
}

fn read_tags(text: Option<String>) -> Result<Vec<Tagged>> {
    let Some(text) = text else { return Ok(Vec::new()) };
    let pairs: Vec<(i64, u64)> = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
    Ok(pairs.into_iter().map(|(tag, rows)| Tagged { tag, rows }).collect())
}

/// A unit's row: file, row group, first row, rows, rejected rows, content sum, non-null values, refused rows, rows
/// found in the table, and tags.
#[derive(Deserialize)]
struct UnitRow(u32, u32, u64, u64, u64, String, Vec<u64>, Option<String>, Option<String>, Option<String>);

impl UnitRow {
    fn read(self) -> Result<(UnitKey, UnitRecord)> {
        let Self(file, row_group, first_row, rows, rejected, sum, non_null, refused, there_before, tags) =
            self;
        let unit = UnitKey { file, row_group, first_row };
        let record = UnitRecord {
            unit,
            rows: RecordedUnit {
                tally: read_tally(rows, &sum, non_null)?,
                rejected,
                refused: read_stored(refused)?,
            },
            there_before: read_stored(there_before)?,
            tags: read_tags(tags)?,
        };
        Ok((unit, record))
    }
}

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

/// A tally as it is stored.
pub(super) fn stored(tally: &Tally) -> Value {
    json!([tally.rows, tally.content_sum.to_string(), tally.non_null])
}

/// The files' stamps; an empty text for a file without one.
pub(super) fn stored_stamps(files: &RecordedFiles) -> Value {
    files.stamps.iter().map(|stamp| stamp.as_deref().unwrap_or_default()).collect()
}

/// This moment, UTC, RFC 3339.
pub(super) fn now() -> String {
    ago(Duration::ZERO)
}

/// The moment that is so long past.
pub(crate) fn ago(duration: Duration) -> String {
    let since_1970 = turns::wall_clock().duration_since(UNIX_EPOCH).unwrap_or_default();
    let since_1970 = since_1970.saturating_sub(duration).as_millis();
    let mut text = Vec::new();
    crate::encode::json::write_stamp(since_1970 as i64, TimeUnit::Millisecond, true, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The text by which moments sort. The fraction of a second has no trailing zeros, so that `.5Z` would sort
/// after `.512Z` with its `Z`, and before it without.
pub(crate) fn by_time(moment: &str) -> &str {
    moment.trim_end_matches('Z')
}

pub(super) fn read_stored(text: Option<String>) -> Result<Option<Tally>> {
    let Some(text) = text else { return Ok(None) };
    let (rows, sum, non_null): (u64, String, Vec<u64>) =
        serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
    read_tally(rows, &sum, non_null).map(Some)
}

pub(super) fn read_tally(rows: u64, sum: &str, non_null: Vec<u64>) -> Result<Tally> {
    let content_sum = sum.parse().map_err(|_| {
        Error::new(Kind::Server, format!("the record holds the content sum {sum:?}"))
            .advise("forget the load and start it again")
    })?;
    Ok(Tally { rows, content_sum, non_null })
}

/// The error for a value that no load has written.
pub(super) fn unreadable(error: &serde_json::Error) -> Error {
    Error::new(Kind::Server, format!("cannot read the record of the load: {error}"))
        .advise("forget the load and start it again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_sort_by_time_whatever_digits_their_fractions_have() {
        let sorted = ["58Z", "59Z", "59.049Z", "59.05Z", "59.051Z", "59.5Z", "59.512Z"]
            .map(|seconds| format!("2026-11-24T18:10:{seconds}"));
        assert!(sorted.is_sorted_by_key(|moment| by_time(moment)));
    }
}
