//! Other loads of the table: those that gather rows for it, and those that have begun since the records were read.

use std::collections::HashSet;

use sawmill_loader::{LoadOptions, LoadRecord, Loads, Mode, Share, TableName, Target, refuse_begun};
use sawmill_source::{Error, Kind, Result};

use super::Preparing;
use crate::records::checkpoint::advisory_key;
use crate::table::catalogue::{FoundTable, find};
use crate::table::part_tables;
use crate::target::Postgres;
use crate::types::made_types;

impl Preparing<'_, '_> {
    /// Keeps other loads from creating the staging table until the open transaction ends. A load that ended just
    /// now may have made the table itself.
    pub(super) fn claim(&self, staging: &TableName) -> Result<()> {
        let link = self.link;
        let key = advisory_key(&format!("new table {}", staging.quoted()));
        link.query("SELECT pg_advisory_xact_lock($1)", &[&key])?;
        let refusal = match find(link, staging)? {
            Some(_) => self.unfinished(staging)?,
            // Looked for after the staging table, which becomes this one in a single transaction.
            None if self.postgres.mode == Mode::Create => match find(link, self.table)? {
                Some(made) => self.exists(&made)?,
                None => return Ok(()),
            },
            None => return Ok(()),
        };
        link.batch("ROLLBACK")?;
        Err(refusal)
    }

    /// Discards the leftovers of a load that failed before its first unit, and refuses any other load that
    /// gathers rows for the table. `existing` is the table's OID, or 0. Returns the record of the discarded load.
    pub(super) fn make_room(
        &self,
        gathered: Option<&FoundTable>,
        staging: &TableName,
        existing: u32,
    ) -> Result<Option<LoadRecord>> {
        let Some(found) = gathered else { return Ok(None) };
        self.link.begin()?;
        let discarded = self.discard_empty(found, staging, existing)?;
        self.link.commit()?;
        if discarded.is_some() { Ok(discarded) } else { Err(self.unfinished(staging)?) }
    }

    /// Discards the staging table of a load that failed before its first unit, for example because of a value
    /// that the same load accepts with another option; or of rows that this load gathers again, or that were to replace
    /// those of a file. Returns its record; `None` if another load has units, or is still running.
    fn discard_empty(
        &self,
        gathered: &FoundTable,
        staging: &TableName,
        existing: u32,
    ) -> Result<Option<LoadRecord>> {
        let (loads, units) = (self.records.table("loads"), self.records.all_units());
        // The record of an upsert has the table that its rows are merged into.
        let of_table = format!(
            "SELECT load_id FROM {loads} WHERE completed IS NULL \
             AND (table_oid = $1 OR table_oid = $2 AND mode = 'upsert')"
        );
        let ids: Vec<String> =
            self.records.link.list(&of_table, &[&i64::from(gathered.oid), &i64::from(existing)])?;
        let [id] = ids.as_slice() else { return Ok(None) };
        let empty = format!("SELECT NOT EXISTS (SELECT FROM {units} u WHERE load_id = $1)");
        // The lock keeps the load from starting before this transaction ends, so no unit can follow.
        let ended = self.records.wait_to_lock(id)?;
        if !ended
            || !(self.gathers_again(id)?
                || self.replaces_rows(id)?
                || self.records.link.value::<bool>(&empty, &[id])?)
        {
            return Ok(None);
        }
        let Some(record) = self.records.find(id)? else { return Ok(None) };
        made_types::drop_table(self.link, staging, gathered.oid)?;
        part_tables::drop_of_load(&self.records, id)?;
        self.records.delete(id)?;
        Ok(Some(record))
    }

    /// Whether this load gathers all rows of an unfinished one, which are not in their place yet: that has some of these
    /// files, of which some may have other content now, and the same options or a value that has ended its last run. In
    /// mode create it has fewer files, or such a value.
    fn gathers_again(&self, id: &str) -> Result<bool> {
        let Self { postgres, source, table, .. } = self;
        let alone = self.options.share == Share::Whole && postgres.several.is_none();
        let Some(record) = self.records.find(id)?.filter(|_| alone) else { return Ok(false) };
        let mode = postgres.mode.name();
        // A value that this load may take has ended its last run.
        let is_refused =
            record.facts.value_refused && record.mode == mode && record.facts.merge == postgres.merge();
        let ours: HashSet<&str> = source.files().iter().map(|file| file.name.as_str()).collect();
        if postgres.mode == Mode::Create && !is_refused && record.files.names.len() == ours.len() {
            return Ok(false);
        }
        let names = || record.files.names.iter().map(String::as_str);
        let is_alike = |staged| postgres.id_of_names(names(), *source, table, mode, staged) == id;
        Ok(names().all(|name| ours.contains(name)) && (is_refused || [false, true].into_iter().any(is_alike)))
    }

    /// Whether an unfinished load gathers rows that replace those of a file. If its file is still another one than the
    /// table's, the next run gathers them again.
    fn replaces_rows(&self, id: &str) -> Result<bool> {
        let record = self.records.find(id)?;
        Ok(record.is_some_and(|record| {
            record.mode == Mode::Upsert.name() && record.facts.merge.as_deref() == Some(Mode::Append.name())
        }))
    }

    /// Whether another load into the table runs: it holds its lock.
    fn runs(&self) -> Result<bool> {
        for load in self.records.unfinished(&self.table.to_string())? {
            if load.id != self.id && !self.records.try_lock(&load.id)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Another load gathers rows for the table.
    fn unfinished(&self, staging: &TableName) -> Result<Error> {
        if self.runs()? {
            let what = "another load into this table is running";
            let advice = "wait until it ends, or stop it; then run the same command again";
            return Ok(Error::new(Kind::Busy, what).at(self.place()).advise(advice));
        }
        let schema = match self.postgres.checkpoint_schema.as_str() {
            Postgres::CHECKPOINT_SCHEMA => String::new(),
            schema => format!(" --checkpoint-schema {schema}"),
        };
        let what = format!("another load into this table is unfinished: {staging} exists");
        Ok(Error::new(Kind::Exists, what).at(self.place()).advise(format!(
            "finish it with the files and options that it began with, or remove what it left: sawmill load forget --to ... \
             --table {}{schema}",
            self.table
        )))
    }
}

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
        let loads = Loads::new(&counted, &mapping, |_| true);
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
