//! Source rows with equal values under one primary key, where a table keeps only one.
//!
//! If the key of a row that is sent for the first time into a gathering table exists, the row is one too many.
//! After a lost answer, or in a resumed load, an existing row with the same values may be the row itself, and
//! counts as that. Equal rows among them show up at the end, when the table has fewer rows than were acknowledged.
//! Then the load reads the source to find them, and sends their units once more.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use sawmill_loader::Tally;
use sawmill_source::{Control, Error, Kind, Result, UnitKey};

use super::CrateSession;
use crate::connect::client::Client;
use crate::encode::encoder::EncodePlan;
use crate::table::columns::Key;
use crate::verify::equal_rows::{Equal, Place, equal_rows};

impl CrateSession<'_> {
    /// The units of equal rows if more than one of the rows counted as sent. Deletes their records; the writers
    /// then reject all but one of the rows.
    pub(super) fn with_equal_rows(&self, total: &Tally, control: &Control<'_>) -> Result<Vec<UnitKey>> {
        let writers = &self.writers;
        let gathers = writers.gathers && self.written != self.table;
        let by_own_key = matches!(self.encode.plan.key, Key::Own(_));
        if !(gathers && by_own_key && writers.taken_as_sent.load(Relaxed)) {
            return Ok(Vec::new());
        }
        let mut client = Client::new(&self.cluster);
        let sql = &mut client.on(control);
        let rows = sql.count(&self.written)?;
        if rows >= total.rows {
            return Ok(Vec::new());
        }
        let (mut units, mut too_many) = (BTreeSet::new(), None);
        {
            let mut equal = writers.equal.lock().unwrap_or_else(PoisonError::into_inner);
            for Equal { rows, key } in self.equal_rows(control)? {
                let places = || rows.iter().map(|(place, _)| *place);
                let kept = places().find(|place| !writers.is_rejected(place)).or(places().next());
                let Some(kept) = kept else { continue };
                let others = places().filter(|place| *place != kept);
                let unknown: Vec<Place> = others.filter(|place| !equal.contains(place)).collect();
                if let Some(first) = unknown.iter().find(|place| !writers.is_rejected(place)) {
                    too_many.get_or_insert((*first, kept, key));
                    equal.extend(unknown);
                    units.extend(rows.iter().map(|(_, unit)| *unit));
                }
            }
        }
        if writers.rejects.is_none() {
            return match too_many {
                None => Ok(Vec::new()),
                Some((place, kept, key)) => Err(self.equal_row(place, kept, &key, total.rows - rows)),
            };
        }
        self.forget_units(&units, sql)?;
        Ok(units.into_iter().collect())
    }

    /// How many rows of the source are equal to an earlier one.
    pub(super) fn equal_to_others(&self, control: &Control<'_>) -> Result<u64> {
        Ok(self.equal_rows(control)?.iter().map(|equal| equal.rows.len() as u64 - 1).sum())
    }

    fn equal_rows(&self, control: &Control<'_>) -> Result<Vec<Equal>> {
        let encode = Arc::new(EncodePlan { columns: false, ..EncodePlan::clone(&self.encode) });
        let Key::Own(names) = &self.encode.plan.key else { return Ok(Vec::new()) };
        let (source, options, unit_rows) = (self.source, self.options, self.record.load.unit_rows);
        equal_rows(source, &encode, (options, unit_rows), names, control)
    }

    /// The error of a row that is equal to one that is kept; `count` rows are like that.
    fn equal_row(&self, place: Place, kept: Place, key: &str, count: u64) -> Error {
        let shown = |(file, row_group, row): Place| {
            format!("{}, row group {row_group}, row {row}", self.source.name_of(file))
        };
        let more = match count {
            0 | 1 => String::new(),
            2 => "; 1 more row is equal to another one".to_owned(),
            count => format!("; {} more rows are equal to other ones", count - 1),
        };
        let what = format!(
            "another row with this primary key and the same values is in the table: {key}, of {}{more}",
            shown(kept)
        );
        Error::new(Kind::Value, what).at(shown(place)).advise(
            "all other rows are loaded: run the same command with --rejects FILE, which writes such rows to a file and \
             finishes the load",
        )
    }
}
