//! The units of loads that are in the table, with their sums.

use std::collections::HashMap;

use sawmill_loader::{RecordedUnit, Tally};
use sawmill_source::{Result, UnitKey};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Records;
use super::stored::{read_stored, read_tally, stored, unreadable};
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
