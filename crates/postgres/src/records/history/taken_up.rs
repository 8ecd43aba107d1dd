//! Interrupted appends go on by the options of now, if these leave the committed rows as they are.

use std::collections::{BTreeMap, HashSet};

use sawmill_loader::{LoadFacts, LoadRecord, Mode, Portion, RecordedFiles, Share, held_units};
use sawmill_profile::format_counted;
use sawmill_source::{Control, Mapping, Result, Source, Unit, UnitKey};

use crate::records::history::TableHistory;

impl TableHistory<'_> {
    /// Lets interrupted loads go on whose files are read by other options now, or were corrected after a value had ended
    /// the load, while each committed row is the same. Returns whether there were some.
    ///
    /// # Errors
    /// No connection; a file that cannot be read.
    pub(super) fn take_up(
        &self,
        loads: &[LoadRecord],
        mapping: &Mapping,
        control: &Control<'_>,
    ) -> Result<bool> {
        let facts = self.source.facts();
        if self.options.share != Share::Whole || !self.options.order.is_empty() || !facts.whole_files {
            return Ok(false);
        }
        let link = self.records.link;
        let mut any = false;
        for load in loads {
            let is_append = load.mode == Mode::Append.name() && load.table_oid == self.oid;
            let is_alike = is_append && !load.mixes_files() && load.takes(mapping);
            if load.complete || !is_alike {
                continue;
            }
            let Some(portion) = self.portion_of(load) else { continue };
            link.begin()?;
            let taken = self.take_up_one(load, &portion, mapping, control);
            match taken {
                Ok(true) => link.commit_durably()?,
                _ => link.batch("ROLLBACK")?,
            }
            any |= taken?;
        }
        Ok(any)
    }

    /// The files of a load, if the source has all of them.
    fn portion_of(&self, load: &LoadRecord) -> Option<Portion<'_>> {
        let files = self.source.files();
        let place = |name: &String| files.iter().position(|file| file.name == *name).map(|at| at as u32);
        Some(Portion::new(self.source, load.files.names.iter().map(place).collect::<Option<_>>()?))
    }

    /// The committed units, if the plan of the files as they are now has not all of them: it has to keep them as they are.
    fn kept(
        load: &LoadRecord,
        portion: &Portion<'_>,
        held: &BTreeMap<UnitKey, Unit>,
    ) -> Vec<(u32, u32, u64, u64)> {
        let planned = portion.plan(load.unit_rows).into_iter().flatten();
        let planned: HashSet<(UnitKey, u64)> = planned.map(|unit| (unit.key, unit.rows)).collect();
        let is_planned = held.values().all(|unit| planned.contains(&(unit.key, unit.rows)));
        let held = held.values().filter(|_| !is_planned);
        held.map(|Unit { key, rows, .. }| (key.file, key.row_group, key.first_row, *rows)).collect()
    }

    /// The same of one load, in the open transaction.
    fn take_up_one(
        &self,
        load: &LoadRecord,
        portion: &Portion<'_>,
        mapping: &Mapping,
        control: &Control<'_>,
    ) -> Result<bool> {
        let (records, id) = (&self.records, self.postgres.id_of(portion, self.table, false));
        let is_changed = !load.files.changed(portion.files()).is_empty();
        let is_replaced = is_changed && self.options.replace_changed && self.postgres.lineage.file.is_some();
        // Only a value that was refused asks for a correction.
        let is_refused = is_changed && !load.facts.value_refused;
        if id == load.id && !is_changed || is_refused || is_replaced || !records.wait_to_lock(&load.id)? {
            return Ok(false);
        }
        let filled = records.columns(&load.id)?;
        if filled.as_ref() != Some(&self.filled()?.now(self)?.1) {
            return Ok(false);
        }
        let Some(held) = held_units(self, load, portion, self.options, control)? else { return Ok(false) };
        if id != load.id {
            match records.find(&id)? {
                Some(same) if same.complete => records.keep_under_another_id(&id)?,
                Some(_) => return Ok(false),
                None => {}
            }
            records.move_to(&load.id, &id)?;
        }
        let (files, command) = (RecordedFiles::new(portion.files()), self.options.command.clone());
        let facts = LoadFacts {
            command,
            value_refused: false,
            kept_units: Self::kept(load, portion, &held),
            ..load.facts.clone()
        }
        .leaving_out(self.options, portion.files());
        records.move_units(&id, &held)?;
        records.set(&id, "mapping", &mapping.to_text())?;
        records.set(&id, "fingerprints", &files.fingerprints)?;
        records.set(&id, "stamps", &files.stamps)?;
        records.set(&id, "facts", &facts.to_text())?;
        let rows = records.units(&id)?.values().map(|unit| unit.rows).sum();
        control.notice(&format!(
            "goes on with {}: its {} in the table are the same as it is read now",
            load.files.names.join(", "),
            format_counted(rows, "row")
        ));
        Ok(true)
    }
}
