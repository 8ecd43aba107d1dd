//! Whether to start a new load, resume an earlier one, do nothing, or refuse.

mod found;
mod others;

use sawmill_loader::{
    AddedColumn, ColumnChanges, LoadOptions, LoadRecord, LoadState, Mode, Portion, Presence, RecordedFiles,
    Share, Standing, TableName, Tally, Target, and_more_files, open, refuse_cut_otherwise,
};
use sawmill_pgcopy::Column;
use sawmill_pgwire::{KnownServer, POLICIES};
use sawmill_profile::format_counted;
use sawmill_source::{Error, Kind, Mapping, Result, Source};

use self::found::Found;
use crate::records::checkpoint::Records;
use crate::records::presence::{MAX_COUNTED, Scope};
use crate::table::catalogue::{FoundTable, Link, find};
use crate::table::{blockers, columns, part_tables, replaced};
use crate::target::Postgres;
use crate::types::{enumerations, made_types};
use crate::verify::sums::ReadBack;
use crate::write::refusals::Refusals;
use crate::write::upsert;

/// The decision between new, resumed and complete.
pub(crate) struct Preparing<'p, 'a> {
    pub postgres: &'a Postgres,
    pub source: &'a dyn Source,
    pub options: &'a LoadOptions,
    pub server: &'p KnownServer,
    pub link: Link<'p>,
    pub records: Records<'p>,
    pub table: &'p TableName,
    pub columns: &'p [Column],
    /// The changes made for columns that differ.
    pub changes: &'p ColumnChanges,
    /// The existing table, looked up while holding the load's lock.
    pub found: Option<FoundTable>,
    pub id: &'p str,
    /// Workers fill part tables of their own.
    pub staged: bool,
    /// Notes on the state of table and records.
    pub notes: Vec<String>,
    /// This run has made the table that rows are merged into.
    pub made_table: bool,
}

impl Preparing<'_, '_> {
    /// Decides how to begin. `oid` is the existing table's, in modes that need one.
    pub(crate) fn decide(&mut self, oid: u32) -> Result<(LoadRecord, LoadState)> {
        self.postgres.follow_renamed(self.source, self.server, &self.records, oid, self.id)?;
        let (mode, staging) = (self.postgres.mode, self.table.staging());
        if mode.makes_the_table() {
            self.found = find(self.link, self.table)?;
        }
        let gathered = if mode.gathers() { find(self.link, &staging)? } else { None };
        let record = self.records.find(self.id)?;
        if matches!(mode, Mode::Append | Mode::Truncate) {
            self.refuse_of_another_table(record.as_ref(), oid)?;
        }
        let refusals = Refusals { table: oid, gathered: &staging, columns: self.columns };
        let unguarded = match &gathered {
            Some(gathered) if self.rejects_before_merge() => refusals.are_missing(gathered.oid, self.link)?,
            _ => false,
        };
        let retyped = match (&gathered, &record) {
            (Some(gathered), Some(record)) if mode.makes_the_table() && record.facts.value_refused => {
                !columns::differences(self.columns, &columns::read(self.link, gathered.oid)?).is_empty()
            }
            _ => false,
        };
        let mut found = Found { record, gathered, oid, unguarded, retyped, preparing: self };
        if found.waits() && found.was_emptied()? {
            found.drop_staging(&staging)?;
        }
        let again = found.preparing.options.again && !found.waits();
        let state = open(mode, again, &mut found)?;
        // The sum of the rows before it is over the columns that it would have filled.
        let may_fill_others =
            state == LoadState::Resumed && mode == Mode::Append && found.preparing.postgres.evolves();
        let begins_again = may_fill_others && found.holds_nothing()?;
        let Found { record, gathered, .. } = found;
        match record {
            Some(record) if state != LoadState::New && !begins_again => {
                self.refuse_to_go_on(&record, oid)?;
                Ok((record, state))
            }
            _ if mode.makes_the_table() => self.start(gathered.as_ref(), &staging),
            _ if mode.gathers() => self.start_merge(gathered.as_ref(), &staging, oid),
            earlier => self.start_here(oid, earlier.filter(|load| !load.complete && load.table_oid == oid)),
        }
    }

    /// Refuses to begin a load that is only to be finished.
    fn refuse_to_begin(&self) -> Result<()> {
        if self.options.share != Share::Finish {
            return Ok(());
        }
        let target = self.table.to_string();
        let unfinished = self.records.unfinished(&target)?.pop();
        let (what, advice) = match unfinished {
            None => (
                "no part of this load is on record, so there is nothing to finish".to_owned(),
                "give the files and options of the parts; run the parts first (--part K/N)",
            ),
            Some(record) => (
                format!("the parts on record are not of this load: {}", self.difference(&record)),
                "give the files and options of the parts, or forget them (sawmill load forget)",
            ),
        };
        Err(Error::new(Kind::Mismatch, what).at(self.place()).advise(advice))
    }

    /// How a recorded load into the table differs from this one.
    fn difference(&self, record: &LoadRecord) -> String {
        let (theirs, ours) = (&record.files.names, RecordedFiles::new(self.source.files()).names);
        let without =
            |names: &[String], others: &[String]| names.iter().find(|name| !others.contains(name)).cloned();
        let own = self.mapping();
        let other_rows = record.mapping.is_some() && own.is_some() && record.mapping != own;
        if let Some(file) = without(theirs, &ours) {
            format!("their file {file} is not among the files given")
        } else if let Some(file) = without(&ours, theirs) {
            format!("{file} is not one of their files")
        } else if *theirs != ours {
            "they have the same files in another order".to_owned()
        } else if record.mode != self.postgres.mode.name() {
            format!("they were loaded in mode {}, not {}", record.mode, self.postgres.mode.name())
        } else if other_rows {
            "they have other rows or columns of the files (--where, --columns, --rename)".to_owned()
        } else {
            "they were loaded with other options: of the table (keys, indexes, storage, partitions), of values, or of rows \
             and columns"
                .to_owned()
        }
    }

    /// Creates the staging table and the load's record in one transaction.
    fn start(
        &mut self,
        gathered: Option<&FoundTable>,
        staging: &TableName,
    ) -> Result<(LoadRecord, LoadState)> {
        self.refuse_to_begin()?;
        let link = self.link;
        // If several tables are replaced together, they may refer to each other.
        if let (Mode::Replace, Some(found), None) = (self.postgres.mode, &self.found, &self.postgres.several)
        {
            replaced::refuse_dependents(link, self.table, &[found.oid])?;
        }
        let discarded =
            self.make_room(gathered, staging, self.found.as_ref().map_or(0, |found| found.oid))?;
        if discarded.is_some_and(|load| load.facts.value_refused) {
            self.notes.push("loaded from the beginning: a value had ended the last run, and this one reads the files otherwise".to_owned());
        }
        let (schema, nested) = (self.source.schema(), self.postgres.nested);
        let values = &self.postgres.values;
        let replaced = self.found.as_ref().map(|found| found.oid);
        let types = columns::natural(schema, self.table, nested, values)?.types;
        made_types::check_names(link, &types, replaced)?;
        let new = columns::natural(schema, staging, nested, values)?;
        let mut new = columns::NewTable { named: self.table.clone(), ..new };
        enumerations::find_labels(&mut new, self.source, values, self.options, self.link.control)?;
        let create = self.statements(staging, &new)?
            + &self.postgres.add_loaded_at(staging).map_or_else(String::new, |add| format!(";\n{add}"))
            + &made_types::mark(&new.types);
        link.begin()?;
        self.claim(staging)?;
        // A run whose table was dropped may have left part tables.
        part_tables::drop_of_load(&self.records, self.id)?;
        made_types::drop_left(link, &new.types)?;
        link.batch(&create)?;
        let Some(found) = find(link, staging)? else {
            return Err(
                Error::new(Kind::Server, "the table that was just created is missing").at(self.place())
            );
        };
        let record = self.record(found.oid, None);
        self.records.delete(self.id)?;
        self.write_record(&record)?;
        link.commit_durably()?;
        Ok((record, LoadState::New))
    }

    /// The statements that create the staging table, with its partitions if rows go directly into them.
    fn statements(&self, staging: &TableName, new: &columns::NewTable) -> Result<String> {
        let (schema, kind) = (self.source.schema(), self.postgres.kind_for(self.staged));
        let Some(partitions) = &self.postgres.partitions else {
            return Ok(kind.create(staging, new, schema, None));
        };
        let replaced = self.found.as_ref().map(|found| found.oid);
        partitions.check_names(self.link, self.table, replaced)?;
        let names = partitions.gathering_names(self.table);
        let made = |partition| !self.staged || partitions.is_empty(partition);
        Ok(partitions.create(&kind, staging, &names, made, new, schema))
    }

    /// Whether rows that the table would refuse are rejected while they are gathered.
    fn rejects_before_merge(&self) -> bool {
        let Postgres { mode, rejects, .. } = self.postgres;
        *mode == Mode::Upsert && rejects.is_some() && !self.postgres.has_deletes()
    }

    /// Begins a load into a staging table, which is merged into the existing table in the end.
    fn start_merge(
        &self,
        gathered: Option<&FoundTable>,
        staging: &TableName,
        oid: u32,
    ) -> Result<(LoadRecord, LoadState)> {
        self.refuse_to_begin()?;
        // Its record may be the one that is discarded.
        let own = self.records.find(self.id)?.filter(|own| !own.complete);
        let discarded = self.make_room(gathered, staging, oid)?;
        let made_table = self.made_table
            || [own, discarded].iter().flatten().any(|load| load.table_oid == oid && load.facts.made_table);
        let create = format!(
            "CREATE TABLE {} AS SELECT {} FROM {} WITH NO DATA",
            staging.quoted(),
            self.postgres.gathered(self.columns),
            self.table.quoted()
        );
        self.link.begin()?;
        self.claim(staging)?;
        if self.postgres.replaces_files() {
            self.refuse_begun_meanwhile(oid)?;
        }
        self.link.batch(&create)?;
        if self.rejects_before_merge() {
            let refusals = Refusals { table: oid, gathered: staging, columns: self.columns };
            refusals.take_over(self.link)?;
        }
        let mut record = self.record(oid, None);
        record.facts.made_table = made_table;
        match self.records.find(self.id)? {
            // Its rows are in the table until these replace them.
            Some(earlier) if earlier.complete && self.postgres.replaces_files() => {
                self.records.keep_under_another_id(self.id)?;
            }
            _ => drop(self.records.delete(self.id)?),
        }
        self.write_record(&record)?;
        self.link.commit_durably()?;
        Ok((record, LoadState::New))
    }

    /// Begins a load into the existing table. Mode truncate empties it in the transaction that records the load, so
    /// that this happens once. The columns that an interrupted run has added stay on record.
    fn start_here(&self, oid: u32, interrupted: Option<LoadRecord>) -> Result<(LoadRecord, LoadState)> {
        let truncate = self.postgres.mode == Mode::Truncate;
        self.refuse_to_begin()?;
        self.refuse_policies(oid)?;
        let before = match (truncate, self.options.verify) {
            (true, _) => Some(Tally::empty(self.columns.len())),
            (false, _) if self.records.is_empty(self.table)? => Some(Tally::empty(self.columns.len())),
            (false, false) => None,
            (false, true) => {
                let read = ReadBack::new(self.server, self.table, self.columns, self.options.degree);
                Some(read.led_by(self.link)?.whole)
            }
        };
        let mut record = self.record(oid, before);
        let added = interrupted.into_iter().flat_map(|load| load.facts.columns.added);
        let is_filled = |name: &str| self.columns.iter().any(|column| column.name == name);
        let own = &self.changes.added;
        let is_kept = |was: &AddedColumn| is_filled(&was.name) && own.iter().all(|new| new.name != was.name);
        record.facts.columns.added.extend(added.filter(is_kept));
        self.link.begin()?;
        if truncate {
            let empty = format!("TRUNCATE TABLE {}", self.table.quoted());
            blockers::named(self.link, || self.link.batch(&empty))?;
            self.records.delete_of_table(oid, self.id)?;
            self.records.delete(self.id)?;
        } else {
            self.refuse_begun_meanwhile(oid)?;
            self.keep_earlier(oid)?;
        }
        self.write_record(&record)?;
        self.link.commit_durably()?;
        Ok((record, LoadState::New))
    }

    /// Refuses a table whose policies hold for the user, before the load empties it or records anything: COPY
    /// would fail.
    fn refuse_policies(&self, oid: u32) -> Result<()> {
        let sql = "SELECT pg_catalog.row_security_active($1::oid)";
        match self.link.value::<bool>(sql, &[&oid])? {
            false => Ok(()),
            true => Err(Error::new(Kind::Server, "its row-level security holds for this user")
                .at(self.place())
                .advise(POLICIES)),
        }
    }

    /// Refuses an earlier run with other units before counting their rows. If workers fill partitions, units
    /// are known later.
    fn refuse_cut_otherwise(&self, record: &LoadRecord) -> Result<()> {
        if self.staged {
            return Ok(());
        }
        let done = self.records.units(self.id)?;
        let kept = Portion::around(self.source, &record.facts);
        refuse_cut_otherwise(kept.as_ref().map_or(self.source, |kept| kept), record.unit_rows, &done)
    }

    fn presence(&self, scope: Scope<'_>, table: &TableName) -> Result<Presence> {
        self.records.presence(scope, table)
    }

    /// Whether the table may have fewer rows after a merge than were gathered.
    fn may_have_merged_fewer(&self) -> Result<bool> {
        let matching = self.postgres.matching();
        upsert::may_merge_fewer(self.link, self.table, self.columns, matching)
    }

    /// Refuses to continue if loaded rows are missing. Only when all rows are loaded and did not allow a key may some
    /// have been removed from the staging table, so that it can be created.
    ///
    /// A run of a part does not look: the other parts commit at the same time, and each would count all rows.
    /// The run that finishes the load does.
    fn refuse_lost(&mut self, scope: Scope<'_>, table: &TableName) -> Result<()> {
        if matches!(self.options.share, Share::Part(_)) {
            return Ok(());
        }
        let presence = self.presence(scope, table)?;
        let corrected = matches!(scope, Scope::Load(_))
            && presence.lacks_rows()
            && presence.keys_refused
            && !presence.was_emptied()
            && self.are_all_in(presence.recorded)?;
        let goes_on = corrected || !presence.lacks_rows();
        self.notes.extend(presence.finding().filter(|_| goes_on));
        match (goes_on, scope) {
            (true, _) => Ok(()),
            (false, Scope::Load(_)) => Err(presence.error(
                format!("table {table}, {}", self.link.place()),
                "forget the load (sawmill load forget) and start it from the beginning",
            )),
            (false, Scope::Table(_)) => Err(presence.error(self.place(), presence.advice())),
        }
    }

    /// Whether these rows, with the rejected ones, are all rows of the source.
    fn are_all_in(&self, recorded: u64) -> Result<bool> {
        let rejects = self.records.count_rejects(self.id)?;
        let all = recorded + rejects.values().sum::<u64>();
        Ok(self.source.facts().knows_rows && all == self.source.rows())
    }

    /// The rows of a load into a table that no longer exists may be in the one that now has its name,
    /// restored from a dump.
    fn refuse_of_another_table(&self, record: Option<&LoadRecord>, oid: u32) -> Result<()> {
        let elsewhere = record.is_some_and(|record| record.table_oid != oid);
        if !elsewhere || self.options.again || self.postgres.mode == Mode::Truncate {
            return Ok(());
        }
        self.presence(Scope::Table(oid), self.table)?.refuse_unknown("these files were", self.place())
    }

    /// Keeps the record of the earlier load of these files if its rows are still there.
    fn keep_earlier(&self, oid: u32) -> Result<()> {
        let record = self.records.find(self.id)?;
        let kept = record.is_some_and(|record| record.complete && record.table_oid == oid);
        if self.options.again && self.presence(Scope::Table(oid), self.table)?.was_emptied() {
            self.records.delete_of_table(oid, self.id)?;
        } else if kept {
            return self.records.keep_under_another_id(self.id);
        }
        self.records.delete(self.id).map(drop)
    }

    /// What is taken of the files; `None` if files are not remembered one by one.
    fn mapping(&self) -> Option<Mapping> {
        let by_file = self.source.facts().whole_files
            && self.postgres.several.is_none()
            && self.postgres.mode != Mode::Upsert;
        by_file.then(|| self.postgres.mapping_of_files(self.source))
    }

    fn record(&self, table_oid: u32, before: Option<Tally>) -> LoadRecord {
        let Self { postgres, source, options, .. } = *self;
        let mut record = LoadRecord::new(self.id, postgres.mode, source, options, self.changes.clone());
        (record.facts.merge, record.facts.keeps_newer) = (postgres.merge(), postgres.keeps_newer());
        LoadRecord { table_oid, before, mapping: self.mapping(), ..record }
    }

    fn write_record(&self, record: &LoadRecord) -> Result<()> {
        let database = self.records.database(self.server)?;
        self.records.begin(record, &self.table.to_string(), database.as_deref())
    }

    fn exists(&self, found: &FoundTable) -> Result<Error> {
        let existing = columns::read(self.link, found.oid)?;
        let differences = columns::differences(self.columns, &existing);
        let what = match differences.is_empty() {
            true => "the table already exists, with the same columns".to_owned(),
            false => format!("the table already exists, and differs: {}", differences.join("; ")),
        };
        let loads = self.records.of_table(self.table, found.oid, self.server, true)?;
        let is_maker =
            |load: &&LoadRecord| load.complete && load.table_oid == found.oid && load.made_the_table();
        if let Some(maker) = loads.iter().find(is_maker) {
            let (first, others) = (maker.files.names.first(), maker.files.names.len().saturating_sub(1));
            let files = first.map(String::as_str).unwrap_or_default().to_owned() + &and_more_files(others);
            let advice = "to add files to it that are not on record, use --mode append; to load all files into another table in \
                          its place, --mode replace";
            return Ok(Error::new(Kind::Exists, format!("{what}; a load of {files} made it"))
                .at(self.place())
                .advise(advice));
        }
        let rows = match self.records.count_some(self.table)? {
            Some(0) => {
                return Ok(Error::new(Kind::Exists, what)
                    .at(self.place())
                    .advise("load in mode append to add to it, choose another table, or drop it"));
            }
            Some(MAX_COUNTED) => format!("{MAX_COUNTED} rows or more"),
            Some(rows) => format_counted(rows, "row"),
            None => "rows that this user may not count".to_owned(),
        };
        Ok(Error::new(Kind::Exists, format!("{what}; it has {rows}, which may be those of the files"))
            .at(self.place())
            .advise(
                "compare them first (sawmill verify): mode append would add all rows of files that are not on record beside \
                 them; mode replace puts another table in its place; or choose another table",
            ))
    }

    fn place(&self) -> String {
        format!("table {}, {}", self.table, self.link.place())
    }
}
