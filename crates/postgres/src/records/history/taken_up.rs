//! Interrupted appends go on by the options of now, if these leave the committed rows as they are.

use std::collections::BTreeSet;

use sawmill_loader::{
    LoadFacts, LoadRecord, Mode, Note, Portion, RecordedFiles, Share, still_holds, takes_the_same,
};
use sawmill_profile::format_counted;
use sawmill_source::{Control, Result, Source};

use crate::records::history::TableHistory;

impl TableHistory<'_> {
    /// Lets interrupted loads go on whose files are read by other options now, or were corrected after a value had ended
    /// the load, while each committed row is the same. Returns whether there were some.
    ///
    /// # Errors
    /// No connection; a file that cannot be read.
    pub(super) fn take_up(&self, loads: &[LoadRecord], mapping: &str, control: &Control<'_>) -> Result<bool> {
        let facts = self.source.facts();
        if self.options.share != Share::Whole || !self.options.order.is_empty() || !facts.whole_files {
            return Ok(false);
        }
        let link = self.records.link;
        let mut any = false;
        for load in loads {
            let is_append = load.mode == Mode::Append.name() && load.table_oid == self.oid;
            let is_alike = is_append && !load.mixes_files() && takes_the_same(&load.mapping, mapping);
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

    /// A remark on files of the source that are on record, and were read by other options for text.
    pub(super) fn read_otherwise(&self, loads: &[LoadRecord], mapping: &str) -> Option<Note> {
        let read_so = |load: &&LoadRecord| load.mapping == mapping;
        let here = || loads.iter().filter(|load| load.table_oid == self.oid);
        let of = |load: &LoadRecord| load.files.names.clone();
        let now: BTreeSet<String> = here().filter(read_so).flat_map(of).collect();
        let then: BTreeSet<String> = here()
            .filter(|load| !read_so(load) && takes_the_same(&load.mapping, mapping))
            .flat_map(of)
            .collect();
        let files =
            self.source.files().iter().filter(|file| then.contains(&file.name) && !now.contains(&file.name));
        let count = files.count() as u64;
        (count > 0).then(|| {
            let files = format_counted(count, "file");
            Note::from(format!(
                "{files} on record, read by other options for text; --again adds the rows as read now"
            ))
        })
    }

    /// The files of a load, if the source has all of them.
    fn portion_of(&self, load: &LoadRecord) -> Option<Portion<'_>> {
        let files = self.source.files();
        let place = |name: &String| files.iter().position(|file| file.name == *name).map(|at| at as u32);
        Some(Portion::new(self.source, load.files.names.iter().map(place).collect::<Option<_>>()?))
    }

    /// The same of one load, in the open transaction.
    fn take_up_one(
        &self,
        load: &LoadRecord,
        portion: &Portion<'_>,
        mapping: &str,
        control: &Control<'_>,
    ) -> Result<bool> {
        let (records, id) = (&self.records, self.postgres.id_of(portion, self.table, false));
        let is_changed = !load.files.changed(portion.files()).is_empty();
        let is_replaced = is_changed && self.options.replace_changed && self.postgres.lineage.file.is_some();
        // Only a value that was refused asks for a correction.
        let is_refused = is_changed && !load.facts.value_refused;
        if id == load.id && !is_changed || is_refused || is_replaced || !records.try_lock(&load.id)? {
            return Ok(false);
        }
        let filled = records.columns(&load.id)?;
        if filled.as_ref() != Some(&self.filled()?.now(self)?.1)
            || !still_holds(self, load, portion, self.options, control)?
        {
            return Ok(false);
        }
        if id != load.id {
            match records.find(&id)? {
                Some(same) if same.complete => records.keep_under_another_id(&id)?,
                Some(_) => return Ok(false),
                None => {}
            }
            records.move_to(&load.id, &id)?;
        }
        let (files, command) = (RecordedFiles::new(portion.files()), self.options.command.clone());
        let facts = LoadFacts { command, value_refused: false, ..load.facts.clone() }
            .leaving_out(self.options, portion.files());
        records.set(&id, "mapping", &mapping)?;
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
