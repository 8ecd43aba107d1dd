//! What a load finds: its record, its tables, and their rows.

use sawmill_loader::{LoadRecord, Mode, OnRecord, Share, Standing, TableName};
use sawmill_source::{Error, Kind, Result};

use super::Preparing;
use crate::records::presence::Scope;
use crate::table::catalogue::FoundTable;
use crate::types::made_types;

/// The load's record and tables.
pub(super) struct Found<'f, 'p, 'a> {
    pub preparing: &'f mut Preparing<'p, 'a>,
    pub record: Option<LoadRecord>,
    /// The staging table.
    pub gathered: Option<FoundTable>,
    /// The existing table's OID, in modes that need one.
    pub oid: u32,
    /// Rows are to be rejected, and those that were gathered have not been looked at.
    pub unguarded: bool,
    /// A value ended the last run, and the table would have other columns now.
    pub retyped: bool,
}

impl Found<'_, '_, '_> {
    fn mode(&self) -> Mode {
        self.preparing.postgres.mode
    }

    /// The names of files that have other content than those on record.
    fn changed(&self) -> Vec<String> {
        let source = self.preparing.source;
        self.record.as_ref().map_or_else(Vec::new, |record| record.files.changed(source.files()))
    }

    /// Whether a table is the one that the record names.
    fn is_recorded(&self, table: Option<&FoundTable>) -> bool {
        let recorded = self.record.as_ref().map(|record| record.table_oid);
        table.is_some_and(|table| recorded == Some(table.oid))
    }

    /// Whether this is one of several tables, and waits for the others, complete in its staging table.
    pub(super) fn waits(&self) -> bool {
        self.preparing.postgres.several.is_some()
            && (self.preparing.found.is_none() || self.mode() == Mode::Replace)
            && self.record.as_ref().is_some_and(|record| record.complete)
            && self.is_recorded(self.gathered.as_ref())
            && self.changed().is_empty()
    }

    /// Whether a crash of the server has emptied the unlogged table of a complete load.
    pub(super) fn was_emptied(&self) -> Result<bool> {
        let Preparing { records, source, id, .. } = &self.preparing;
        Ok(records.unlogged && source.rows() > 0 && records.units(id)?.is_empty())
    }

    pub(super) fn drop_staging(&mut self, staging: &TableName) -> Result<()> {
        let Some(gathered) = self.gathered.take() else { return Ok(()) };
        let link = self.preparing.link;
        link.begin()?;
        made_types::drop_table(link, staging, gathered.oid)?;
        link.commit()
    }

    /// Whether the table has as many rows as the source, without the rejected ones.
    fn holds_the_rows(&self) -> Result<bool> {
        let Preparing { records, source, table, id, .. } = &self.preparing;
        let count: i64 = records.link.value(&format!("SELECT count(*) FROM {}", table.quoted()), &[])?;
        let rejected: u64 = records.count_rejects(id)?.values().sum();
        Ok(count as u64 + rejected == source.rows())
    }
}

impl Standing for Found<'_, '_, '_> {
    fn on_record(&self) -> Option<OnRecord> {
        let record = self.record.as_ref()?;
        let changed = !self.changed().is_empty();
        let is_there = match (self.mode(), record.complete) {
            (Mode::Create | Mode::Replace, true) => {
                self.is_recorded(self.preparing.found.as_ref()) || self.waits()
            }
            (Mode::Create | Mode::Replace, false) => self.is_recorded(self.gathered.as_ref()),
            (Mode::Upsert, false) => record.table_oid == self.oid && self.gathered.is_some(),
            (Mode::Upsert, true) | (Mode::Append | Mode::Truncate, _) => record.table_oid == self.oid,
        };
        is_there.then_some(match record.complete {
            true => OnRecord::Complete { changed },
            false => OnRecord::Interrupted { changed: changed || self.unguarded || self.retyped },
        })
    }

    fn taken(&mut self) -> Result<Option<Error>> {
        self.preparing.found.as_ref().map(|found| self.preparing.exists(found)).transpose()
    }

    fn lost(&mut self) -> Result<Option<Error>> {
        let (waits, mode) = (self.waits(), self.mode());
        if mode == Mode::Truncate {
            // The table must hold only these rows.
            let changed = || Error::new(Kind::Changed, "the table holds other rows than the load's");
            return Ok((!self.holds_the_rows()?).then(changed));
        }
        let Preparing { table, id, .. } = *self.preparing;
        let (scope, advice) = match mode {
            _ if waits => {
                self.preparing.refuse_lost(Scope::Load(id), &table.staging())?;
                return Ok(None);
            }
            Mode::Append | Mode::Truncate => {
                self.preparing.refuse_lost(Scope::Table(self.oid), table)?;
                return Ok(None);
            }
            // Rows that delete others are not in the table, and later loads may have deleted the others.
            Mode::Upsert if self.preparing.postgres.has_deletes() => return Ok(None),
            Mode::Upsert => (Scope::Load(id), "merge the rows again with --again"),
            Mode::Create | Mode::Replace => (
                Scope::Table(self.preparing.found.as_ref().map_or(0, |found| found.oid)),
                "restore the rows, or drop the table to load it from the beginning, or load in mode replace",
            ),
        };
        let presence = self.preparing.presence(scope, table)?;
        let lost = match mode == Mode::Upsert && self.preparing.may_have_merged_fewer()? {
            true => presence.recorded > 0 && presence.rows == Some(0),
            false => presence.lacks_rows(),
        };
        if lost {
            return Ok(Some(presence.error(self.preparing.place(), advice)));
        }
        // Of merged rows only a lower bound is known.
        self.preparing.notes.extend(presence.finding().filter(|_| mode != Mode::Upsert));
        Ok(None)
    }

    fn other_content(&self) -> Error {
        let what =
            format!("the table exists, and was loaded from other content of {}", self.changed().join(", "));
        Error::new(Kind::Exists, what).at(self.preparing.place()).advise(
            "to add the new rows beside the old ones, load with --changed append; to load everything from the \
             beginning, use --mode replace",
        )
    }

    fn has_other_rows(&mut self) -> Result<bool> {
        let presence = self.preparing.presence(Scope::Table(self.oid), self.preparing.table)?;
        Ok(presence.is_other_than_recorded())
    }

    /// This run holds the load's lock alone, so no unit can follow.
    fn holds_nothing(&mut self) -> Result<bool> {
        let Preparing { options, postgres, records, id, .. } = &self.preparing;
        let alone = options.share == Share::Whole && postgres.several.is_none();
        // Rows that wait for their merge or for their table's place are not in the table yet, and mode truncate removes its
        // own.
        let is_refused = || self.record.as_ref().is_some_and(|record| record.facts.value_refused);
        let begins_again = match postgres.mode {
            Mode::Replace | Mode::Truncate | Mode::Upsert => true,
            Mode::Create => is_refused(),
            Mode::Append => false,
        };
        Ok(alone && (begins_again || records.holds_nothing(id)?))
    }

    fn check_resumed(&mut self) -> Result<()> {
        let Some(record) = &self.record else { return Ok(()) };
        let changed = record.files.refuse_changed(self.preparing.source.files(), self.mode() == Mode::Append);
        changed.map_err(|error| error.at(self.preparing.place()))?;
        self.preparing.refuse_cut_otherwise(record)?;
        let Preparing { table, id, .. } = *self.preparing;
        match self.mode().gathers() {
            true => self.preparing.refuse_lost(Scope::Load(id), &table.staging()),
            false => self.preparing.refuse_lost(Scope::Table(self.oid), table),
        }
    }
}
