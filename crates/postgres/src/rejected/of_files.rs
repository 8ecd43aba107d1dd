//! The rejected rows of files that earlier loads have loaded, for a file of rejected rows that is missing.

use std::collections::{BTreeMap, BTreeSet};

use sawmill_loader::Found;
use sawmill_source::{Result, Source, Unit, UnitKey};

use crate::records::checkpoint::Records;
use crate::rejected::bad_records::{gone, row_groups};
use crate::rejected::rejects::Reject;

/// A load that contains files of a source.
pub(crate) struct LoadOfFiles {
    id: String,
    /// The positions of the files in the load, and in the source.
    files: BTreeMap<u32, u32>,
}

impl LoadOfFiles {
    /// The loads that contain these files. Of files in order together, the places of rows are not known.
    pub(crate) fn containing(found: &[Found<'_>]) -> Vec<Self> {
        let mut loads: BTreeMap<&str, BTreeMap<u32, u32>> = BTreeMap::new();
        for Found { file, load, place } in found.iter().filter(|found| !found.load.mixes_files()) {
            loads.entry(&load.id).or_default().insert(*place, *file);
        }
        loads.into_iter().map(|(id, files)| Self { id: id.to_owned(), files }).collect()
    }

    /// The rejected rows of the files by the load's units, as the source numbers its files.
    ///
    /// # Errors
    /// A lost connection; units that the source lacks.
    pub(crate) fn rejects(
        &self,
        source: &dyn Source,
        records: &Records<'_>,
    ) -> Result<Vec<(Unit, Vec<Reject>)>> {
        let groups = row_groups(source);
        let units: BTreeSet<UnitKey> = records.units(&self.id)?.into_keys().collect();
        let mut rejects = Vec::new();
        for key in records.rejecting_units(&self.id)? {
            let Some(file) = self.files.get(&key.file) else { continue };
            let group = groups.get(&(*file, key.row_group)).ok_or_else(|| gone(key.row_group))?;
            let after = UnitKey { first_row: key.first_row + 1, ..key };
            let next = units
                .range(after..)
                .next()
                .filter(|next| (next.file, next.row_group) == (key.file, key.row_group));
            let end = next.map_or(group.key.first_row + group.rows, |next| next.first_row);
            let rows = end.saturating_sub(key.first_row);
            let unit = Unit { key: UnitKey { file: *file, ..key }, rows, bytes: 0 };
            rejects.push((unit, records.rejects(&self.id, key)?));
        }
        Ok(rejects)
    }
}
