//! The units of loads that are in the table, with their sums.

use std::collections::HashMap;

use sawmill_loader::Tally;
use sawmill_source::{Control, Result, UnitKey};
use serde::Deserialize;
use serde_json::json;

use super::Checkpoints;
use super::stored::{read_stored, read_tally, stored, unreadable};
use crate::connect::client::Client;
use crate::tags::Tagged;

/// A committed unit.
#[derive(Clone, Debug)]
pub(crate) struct UnitRecord {
    pub unit: UnitKey,
    /// The rows of the unit that the table has.
    pub tally: Tally,
    pub rejected: u64,
    /// Rejected rows that were sent; the others cannot be represented. `None` if no row was rejected.
    pub refused: Option<Tally>,
    /// Rows that an earlier load had inserted, if known.
    pub there_before: Option<Tally>,
    /// The tags of the requests that inserted its rows; empty for loads without tags.
    pub tags: Vec<Tagged>,
}

impl Checkpoints {
    /// All committed units of a load.
    pub(crate) fn units(
        &self,
        client: &mut Client,
        id: &str,
        control: &Control<'_>,
    ) -> Result<HashMap<UnitKey, UnitRecord>> {
        let table = self.table("units");
        self.run(client, &format!("REFRESH TABLE {table}"), &[], control)?;
        let statement = format!("{} WHERE \"load_id\" = ?", self.select_units());
        let rows = self.run(client, &statement, &[json!(id)], control)?.all::<UnitRow>()?;
        rows.into_iter().map(UnitRow::read).collect()
    }

    /// A unit of a load, if it is committed.
    pub(crate) fn unit(
        &self,
        client: &mut Client,
        id: &str,
        key: UnitKey,
        control: &Control<'_>,
    ) -> Result<Option<UnitRecord>> {
        // All of the primary key: found without a refresh.
        let statement = format!(
            "{} WHERE \"load_id\" = ? AND \"file\" = ? AND \"row_group\" = ? AND \"first_row\" = ?",
            self.select_units()
        );
        let arguments = [json!(id), json!(key.file), json!(key.row_group), json!(key.first_row)];
        let rows = self.run(client, &statement, &arguments, control)?.all::<UnitRow>()?;
        rows.into_iter().next().map(|row| Ok(row.read()?.1)).transpose()
    }

    /// Removes the record of a unit that will be sent again.
    pub(crate) fn delete_unit(
        &self,
        client: &mut Client,
        id: &str,
        key: UnitKey,
        control: &Control<'_>,
    ) -> Result<()> {
        let statement = format!(
            "DELETE FROM {} WHERE \"load_id\" = ? AND \"file\" = ? AND \"row_group\" = ? AND \"first_row\" = ?",
            self.table("units")
        );
        let arguments = [json!(id), json!(key.file), json!(key.row_group), json!(key.first_row)];
        self.run(client, &statement, &arguments, control)?;
        Ok(())
    }

    fn select_units(&self) -> String {
        format!(
            "SELECT \"file\", \"row_group\", \"first_row\", \"rows\", \"rejected\", \"content_sum\", \"non_null\", \
             \"refused\", \"there_before\", \"tags\" FROM {}",
            self.table("units")
        )
    }

    /// Records that all rows of these units are in.
    pub(crate) fn commit(
        &self,
        client: &mut Client,
        id: &str,
        units: &[UnitRecord],
        control: &Control<'_>,
    ) -> Result<()> {
        let statement = format!(
            "INSERT INTO {} (\"load_id\", \"file\", \"row_group\", \"first_row\", \"rows\", \"rejected\", \"content_sum\", \"non_null\", \
             \"refused\", \"there_before\", \"tags\") VALUES {} ON CONFLICT DO NOTHING",
            self.table("units"),
            vec!["(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"; units.len()].join(", ")
        );
        let text = |tally: &Option<Tally>| tally.as_ref().map(|tally| stored(tally).to_string());
        let values =
            units.iter().flat_map(|UnitRecord { unit, tally, rejected, refused, there_before, tags }| {
                [
                    json!(id),
                    json!(unit.file),
                    json!(unit.row_group),
                    json!(unit.first_row),
                    json!(tally.rows),
                    json!(rejected),
                    json!(tally.content_sum.to_string()),
                    json!(tally.non_null),
                    json!(text(refused)),
                    json!(text(there_before)),
                    json!(stored_tags(tags)),
                ]
            });
        self.run(client, &statement, &values.collect::<Vec<_>>(), control)?;
        Ok(())
    }
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
            tally: read_tally(rows, &sum, non_null)?,
            rejected,
            refused: read_stored(refused)?,
            there_before: read_stored(there_before)?,
            tags: read_tags(tags)?,
        };
        Ok((unit, record))
    }
}
