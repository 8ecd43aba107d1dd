//! Loads that have begun since an append read the records.

use sawmill_loader::{LoadOptions, LoadRecord, Loads, Mode, refuse_begun};
use sawmill_source::Result;

use super::Preparing;
use crate::records::checkpoint::advisory_key;

impl Preparing<'_, '_> {
    /// Looks at the records once more before an interrupted load commits its first rows: until then, other loads take it
    /// for one that holds nothing.
    pub(super) fn refuse_before_the_first_unit(&self, record: &LoadRecord, oid: u32) -> Result<()> {
        let Self { postgres, records, link, .. } = *self;
        let appends = postgres.mode == Mode::Append && !record.complete && records.holds_nothing(self.id)?;
        if record.complete || !(postgres.replaces_files() || appends) {
            return Ok(());
        }
        // What to do about changed files was decided when it began.
        let options = LoadOptions { append_changed: true, replace_changed: false, ..self.options.clone() };
        link.begin()?;
        self.refuse_begun(&options, oid)?;
        link.commit()
    }

    /// Decides once more, in the transaction that begins the load, whether its files are new: other loads may have begun
    /// since the records were read. They wait until this transaction ends, and then find this load.
    pub(super) fn refuse_begun_meanwhile(&self, oid: u32) -> Result<()> {
        self.refuse_begun(self.options, oid)
    }

    fn refuse_begun(&self, options: &LoadOptions, oid: u32) -> Result<()> {
        let Self { postgres, source, records, link, .. } = *self;
        if options.again || !source.facts().whole_files || postgres.several.is_some() {
            return Ok(());
        }
        let key = advisory_key(&format!("files of {oid}"));
        link.batch(&format!("SELECT pg_advisory_xact_lock({key})"))?;
        let (mut of_table, mut replacing) = (Vec::new(), Vec::new());
        let loads = records.of_table(self.table, oid, self.server, true)?;
        for load in loads.into_iter().filter(|load| load.table_oid == oid) {
            if load.id == self.id && !load.complete || load.id != self.id && self.is_void(&load)? {
                continue;
            }
            of_table.push(load);
        }
        for load in records.replacing(oid)? {
            if load.id != self.id && !records.try_lock(&load.id)? {
                replacing.push(load);
            }
        }
        let mapping = postgres.mapping_of_files(source);
        let (here, otherwise) = of_table.iter().partition(|load| load.mapping == mapping);
        let loads = Loads { here, otherwise, elsewhere: Vec::new() };
        let (replacing, replaces) = (replacing.iter().collect::<Vec<_>>(), postgres.replaces_files());
        refuse_begun(source, &loads, &replacing, replaces, &mapping, options)
            .map_err(|error| error.at(self.place()))
    }

    /// Whether a load has committed nothing, and does not run: it cannot begin before the open transaction ends.
    fn is_void(&self, load: &LoadRecord) -> Result<bool> {
        Ok(!load.complete && self.records.try_lock(&load.id)? && self.records.holds_nothing(&load.id)?)
    }
}
