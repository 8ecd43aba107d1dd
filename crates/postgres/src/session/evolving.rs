//! How a load begins that may change its table: columns that the files have and the table lacks, and types that are
//! wider in the files.
//!
//! The change is a transaction before the load's record. It compares table and files while it holds a lock.
//! So after a killed load, or a concurrent one, nothing is left to change. A resumed load keeps the columns
//! that it began with.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::Schema;
use sawmill_loader::{ColumnChanges, Mode, TableName, with_ways_out};
use sawmill_source::{Error, Kind, Result, columns_of_files};

use super::opening::{Matched, Opening};
use crate::records::checkpoint::{Records, advisory_key};
use crate::table::blockers;
use crate::table::catalogue::FoundTable;
use crate::table::columns::{self, TableColumn};
use crate::table::evolution::{Evolution, loaded};
use crate::table::planned_columns::RecordedColumn;

impl Opening<'_, '_> {
    /// Matches the columns of the source with the table's, after changing the table if needed.
    pub(super) fn match_evolving(
        &self,
        found: Option<&FoundTable>,
        table: &TableName,
        records: &Records<'_>,
        id: &str,
    ) -> Result<Matched> {
        let Some(found) = found else { return self.match_columns(None, None, table) };
        let files = columns_of_files(self.source);
        match self.begun_with(found.oid, records, id)? {
            Some(names) => {
                let changes = left_out_before(&names, &files);
                self.match_loaded(found.oid, names, changes, table)
            }
            None => self.evolve(found.oid, &files, table, records, id),
        }
    }

    /// Matches the columns of the source with these names with those that the table has now.
    fn match_loaded(
        &self,
        oid: u32,
        names: Vec<String>,
        changes: ColumnChanges,
        table: &TableName,
    ) -> Result<Matched> {
        let Self { postgres, source, link, .. } = *self;
        let schema = source.schema();
        let mut existing = columns::read(link, oid)?;
        postgres.check_loaded_at(&mut existing, table)?;
        let columns = postgres.matched(&names, schema, &existing, table)?;
        self.check_merge(&columns, oid, table)?;
        postgres.refuse_own_loaded_at(&columns, table)?;
        let is_null = |name: &String| changes.null.iter().any(|column| column.name == *name);
        let filled: Vec<_> = existing.into_iter().filter(|column| !is_null(&column.name)).collect();
        let fields = names.iter().filter_map(|name| schema.field_with_name(name).ok().cloned());
        let fields = Schema::new(fields.collect::<Vec<_>>());
        let not_filled = columns::not_filled(&fields, &filled, postgres.merged_time());
        Ok(Matched { columns, not_filled, changes, hints: BTreeMap::new() })
    }

    /// The error for columns that do not fit, with the change of the table that would let them.
    pub(super) fn with_a_way_out(
        &self,
        error: Error,
        schema: &Schema,
        existing: &[TableColumn],
        table: &TableName,
    ) -> Error {
        let Self { postgres, source, .. } = *self;
        let may_evolve = matches!(postgres.mode, Mode::Append | Mode::Upsert) && !postgres.by_position;
        if error.kind() != Kind::Schema || !may_evolve {
            return error;
        }
        with_ways_out(error, &Evolution::ways_out((postgres, source, table), schema, existing))
    }

    /// The columns of the load's record, if rows of it are in the table.
    fn begun_with(&self, oid: u32, records: &Records<'_>, id: &str) -> Result<Option<Vec<String>>> {
        let Self { source, options, .. } = *self;
        let record = records.find(id)?.filter(|record| record.table_oid == oid);
        let Some(record) = record else { return Ok(None) };
        let changed = !record.files.changed(source.files()).is_empty();
        let goes_on = match record.complete {
            true => !options.again && !changed,
            false => !(changed && self.postgres.replaces_files() || records.holds_nothing(id)?),
        };
        let recorded = records.columns(id)?.filter(|_| goes_on);
        let name = |line: &String| RecordedColumn::read(line).map(|column| column.name.to_owned());
        Ok(recorded.map(|lines| lines.iter().filter_map(name).collect()))
    }

    /// Changes the table as the files need it, unless columns do not fit then either. Matches them.
    fn evolve(
        &self,
        oid: u32,
        files: &Schema,
        table: &TableName,
        records: &Records<'_>,
        id: &str,
    ) -> Result<Matched> {
        let Self { postgres, source, link, .. } = *self;
        let place = |error: Error| error.at(format!("table {table}, {}", link.place()));
        let plan = || -> Result<(Evolution<'_>, Option<String>)> {
            let existing = columns::read(link, oid)?;
            let evolution = Evolution::new((postgres, source, table), files, &existing)?;
            let statement = evolution.statement().map_err(place)?;
            Ok((evolution, statement))
        };
        let matched = |Evolution { changes, .. }: Evolution<'_>| {
            self.match_loaded(oid, loaded(source.schema(), files, &changes), changes, table)
        };
        let (evolution, None) = plan()? else {
            link.begin()?;
            let key = advisory_key(&format!("columns of {oid}"));
            link.batch(&format!("SELECT pg_advisory_xact_lock({key})"))?;
            let (evolution, statement) = plan()?;
            if let Some(statement) = statement {
                if let Some(widened) = evolution.changes.widened.first() {
                    refuse_beside_others(records, oid, &widened.name, id).map_err(place)?;
                }
                let alter = || link.batch(&statement);
                blockers::named(link, alter).map_err(|error| match error.kind() {
                    Kind::Server => place(error),
                    _ => error,
                })?;
            }
            let matched = matched(evolution)?;
            link.commit_durably()?;
            return Ok(matched);
        };
        matched(evolution)
    }
}

/// Refuses to change a type for which another load is encoding rows.
fn refuse_beside_others(records: &Records<'_>, oid: u32, column: &str, id: &str) -> Result<()> {
    let sql = format!(
        "SELECT load_id FROM {} WHERE table_oid = $1 AND completed IS NULL AND load_id <> $2",
        records.table("loads")
    );
    for other in records.link.list::<String>(&sql, &[&i64::from(oid), &id])? {
        if !records.wait_to_lock(&other)? {
            let what =
                format!("another load into the table is running, which widening column {column:?} would end");
            return Err(Error::new(Kind::Busy, what)
                .advise("wait until it ends, or stop it; then run the same command again"));
        }
    }
    Ok(())
}

/// The columns of the files that a load has left out from its beginning.
fn left_out_before(names: &[String], files: &Arc<Schema>) -> ColumnChanges {
    let left_out = files.fields().iter().map(|field| field.name()).filter(|name| !names.contains(name));
    ColumnChanges { left_out: left_out.cloned().collect(), ..ColumnChanges::default() }
}
