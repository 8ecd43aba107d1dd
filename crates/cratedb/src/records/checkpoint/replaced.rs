//! The records of a file whose rows take the place of those that it had.

use sawmill_loader::REPLACED;
use sawmill_source::Result;
use serde_json::json;

use super::rows::{now, stored, stored_stamps};
use super::{INSERTED, LoadRow, Records, State};

impl Records<'_> {
    /// Writes the row of a replacement, whether it begins or begins again. One statement does it, so that a run that is
    /// killed leaves a record. If the statement comes once more when the load is complete, the next command begins it again.
    pub(crate) fn begin_replacement(&mut self, row: &LoadRow) -> Result<()> {
        self.delete_units(&row.load.id)?;
        let names = INSERTED.split(", ").skip(1);
        let set: Vec<String> = names.map(|name| format!("{name} = excluded.{name}")).collect();
        self.insert(row, &format!(" ON CONFLICT (\"load_id\") DO UPDATE SET {}", set.join(", "))).map(drop)
    }

    /// Notes in all other loads into the table that the rows of this load's only file are not theirs any more.
    pub(crate) fn mark_replaced(&mut self, own: &LoadRow) -> Result<()> {
        let Some(name) = own.load.files.names.first() else { return Ok(()) };
        for LoadRow { load, .. } in self.of_table(&own.target)? {
            let Some(place) = load.files.names.iter().position(|other| other == name) else { continue };
            if load.id == own.load.id {
                continue;
            }
            self.refresh("units")?;
            let units = format!("DELETE FROM {} WHERE \"load_id\" = ? AND \"file\" = ?", self.table("units"));
            // Units of files in order together have the number of the first, and rows of all: none of them is known any more.
            let file = if load.mixes_files() { 0 } else { place };
            self.sql.run(&units, &[json!(load.id), json!(file)])?;
            let mut files = load.files;
            if let Some(print) = files.fingerprints.get_mut(place).filter(|print| !print.ends_with(REPLACED))
            {
                *print += REPLACED;
            }
            files.stamps.get_mut(place).into_iter().for_each(|stamp| *stamp = None);
            let mut set = "\"fingerprints\" = ?, \"stamps\" = ?".to_owned();
            let mut values = vec![json!(files.fingerprints), stored_stamps(&files)];
            if !load.complete && files.fingerprints.iter().all(|print| print.ends_with(REPLACED)) {
                // It has nothing left to do.
                set += ", \"state\" = ?, \"rows\" = ?, \"completed\" = ?";
                values.extend([json!(State::Complete), json!(0), json!(now())]);
            }
            self.update(&load.id, &set, values)?;
        }
        Ok(())
    }

    /// Records what the table held before the load's own rows.
    pub(crate) fn set_before(&mut self, row: &LoadRow) -> Result<()> {
        let before = row.load.before.as_ref().map(|tally| stored(tally).to_string());
        let set = "\"rows\" = ?, \"before\" = ?";
        self.update(&row.load.id, set, vec![json!(row.rows), json!(before)])
    }
}
