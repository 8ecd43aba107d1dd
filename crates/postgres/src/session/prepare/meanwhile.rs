//! Loads that have begun since an append read the records.

use std::collections::HashSet;

use sawmill_loader::{LoadOptions, LoadRecord, Loads, Mode, refuse_begun};
use sawmill_source::Result;

use super::Preparing;
use crate::records::checkpoint::advisory_key;

impl Preparing<'_, '_> {
    /// Looks at the records once more before an interrupted load goes on: until it commits its first rows, other loads
    /// take it for one that holds nothing; later, they may replace its rows.
    pub(super) fn refuse_to_go_on(&self, record: &LoadRecord, oid: u32) -> Result<()> {
        let Self { postgres, records, link, .. } = *self;
        if record.complete || !(postgres.replaces_files() || postgres.mode == Mode::Append) {
            return Ok(());
        }
        // What to do about changed files was decided when it began.
        let options = LoadOptions { append_changed: true, replace_changed: false, ..self.options.clone() };
        let has_rows = postgres.mode == Mode::Append && !records.holds_nothing(self.id)?;
        link.begin()?;
        self.refuse_begun(&options, oid, has_rows)?;
        link.commit()
    }

    /// Decides once more, in the transaction that begins the load, whether its files are new: other loads may have begun
    /// since the records were read. They wait until this transaction ends, and then find this load.
    pub(super) fn refuse_begun_meanwhile(&self, oid: u32) -> Result<()> {
        self.refuse_begun(self.options, oid, false)
    }

    /// The same. If this load `has_rows`, others have found them, except for those that replace rows of its files.
    fn refuse_begun(&self, options: &LoadOptions, oid: u32, has_rows: bool) -> Result<()> {
        let Self { postgres, source, records, link, .. } = *self;
        if options.again || !source.facts().whole_files || postgres.several.is_some() {
            return Ok(());
        }
        let key = advisory_key(&format!("files of {oid}"));
        link.batch(&format!("SELECT pg_advisory_xact_lock({key})"))?;
        let ours: HashSet<&str> = source.files().iter().map(|file| file.name.as_str()).collect();
        let shares = |load: &LoadRecord| load.files.names.iter().any(|name| ours.contains(name.as_str()));
        let of_table = match has_rows {
            true => Vec::new(),
            false => records.of_table(self.table, oid, self.server, true)?,
        };
        let mut counted = Vec::new();
        for load in of_table.into_iter().filter(|load| load.table_oid == oid && shares(load)) {
            // This load itself counts only if another run has completed it with other content.
            let is_counted = if load.id == self.id { load.complete } else { !self.is_void(&load)? };
            counted.extend(is_counted.then_some(load));
        }
        let mut replacing = Vec::new();
        for load in records.replacing(oid)?.into_iter().filter(|load| load.id != self.id && shares(load)) {
            let runs = !records.wait_to_lock(&load.id)?;
            replacing.extend(runs.then_some(load));
        }
        let mapping = postgres.mapping_of_files(source);
        let (here, otherwise): (Vec<_>, Vec<_>) = counted.iter().partition(|load| load.takes(&mapping));
        let loads = Loads { here, otherwise, elsewhere: Vec::new() };
        let (replacing, replaces) = (replacing.iter().collect::<Vec<_>>(), postgres.replaces_files());
        refuse_begun(source, &loads, &replacing, replaces, &mapping, options)
            .map_err(|error| error.at(self.place()))
    }

    /// Whether a load does not run, so that it cannot go on before the open transaction ends, and has committed nothing, or
    /// only rows that this load replaces.
    fn is_void(&self, load: &LoadRecord) -> Result<bool> {
        Ok(!load.complete
            && self.records.wait_to_lock(&load.id)?
            && (self.postgres.replaces_files() || self.records.holds_nothing(&load.id)?))
    }
}
