//! How a load begins: columns are matched, the table is found or created, and the records say which units are
//! in.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use arrow_schema::Schema;
use sawmill_loader::{
    ColumnChanges, LoadOptions, LoadRecord, LoadState, Mode, Portion, Share, TableName, Tally,
};
use sawmill_pgcopy::{Buffers, Column};
use sawmill_pgwire::{Connection, KnownServer, refuse_pooler};
use sawmill_profile::turns;
use sawmill_source::{Control, Error, Kind, Result, Source, UnitKey};

use super::PostgresSession;
use crate::encode::canonical_row::CanonicalRow;
use crate::partition::missing::Lacking;
use crate::partition::rows::PartitionedRows;
use crate::partition::survey::Partitions;
use crate::records::checkpoint::{Checkpoints, Records};
use crate::records::parts::lock_of_writers;
use crate::rejected::file;
use crate::rejected::rejects::RejectCounter;
use crate::session::prepare::Preparing;
use crate::table::catalogue::{FoundTable, Link, current_schema, find};
use crate::table::columns::{self, NewTable, TableColumn, names_of};
use crate::table::planned_columns::{FORGET, PlannedColumns};
use crate::table::{evolution, part_tables};
use crate::target::Postgres;
use crate::types::sent_as_text::copy_into;
use crate::write::history;
use crate::write::plan::{PartPlan, WriterPlan};
use crate::write::upsert::{self, OnConflict};

impl<'a> PostgresSession<'a> {
    pub(crate) fn prepare(
        postgres: &'a Postgres,
        source: &'a dyn Source,
        options: &'a LoadOptions,
        rehearse: bool,
        control: &Control<'_>,
    ) -> Result<Self> {
        let started = turns::now();
        let new_table = postgres.check_without_server(source)?;
        let mut route = postgres.choose(options.degree)?;
        let checkpoints = Checkpoints::new(&postgres.checkpoint_schema)?;
        let (connection, server) = postgres.connect(rehearse, control)?;
        let needed = if options.degree > 1 { options.degree + 1 } else { 1 };
        server
            .refuse_more_than_one(needed, "load with --connections 1, or allow the role more connections")?;
        let link = Link::new(&connection, control);
        let opening = Opening { postgres, source, options, link };
        let (table, found, made_table) = opening.find_or_create_table()?;
        let matched = match postgres.evolves() {
            true => None,
            false => Some(opening.match_columns(new_table, found.as_ref(), &table)?),
        };
        let checkpoints = checkpoints.of_unlogged(opening.is_unlogged(found.as_ref()));
        let id_of = |staged: bool| postgres.id_of(source, &table, staged);
        let records = checkpoints.on(link);
        records.create()?;
        route.keep_to_earlier(postgres, &records, &id_of)?;
        let (staged, id) = (route.staged, id_of(route.staged));
        records.lock_to_begin(&id, options.share)?;
        let Matched { columns, not_filled, changes, hints } = match matched {
            Some(matched) => matched,
            None => opening.match_evolving(found.as_ref(), &table, &records, &id)?,
        };
        // The change of the table is committed.
        let named = |error: Error| changes.named_in(error);
        let created = opening.create_partitions(found.as_ref(), &table, records, &id).map_err(named)?;
        let mut preparing = Preparing {
            postgres,
            source,
            options,
            server: &server,
            link,
            records,
            table: &table,
            columns: &columns,
            changes: &changes,
            found: None,
            id: &id,
            staged,
            notes: created,
            made_table,
        };
        let (record, state) = preparing.decide(found.as_ref().map_or(0, |found| found.oid)).map_err(named)?;
        let found_notes = preparing.notes;
        let written = opening.written_table(&table, state)?;
        let (planned, columns) = opening.planned_columns(columns, &record, state, &written)?;
        let retyped = opening.keep_columns(&planned, &columns, &records, &record, state, staged)?;
        records.begun(&id, options.share, state == LoadState::Complete)?;
        let earlier = opening.earlier(&records, &record, state, &table)?;
        if postgres.rejects.is_some() {
            records.create_rejects()?;
        }
        let plan = opening.writer_plan(checkpoints, &record, &written, planned, &columns, staged);
        let filled = postgres.partitions.as_ref().filter(|_| staged && state != LoadState::Complete);
        let part_plan = |partitions| {
            opening.part_plan(partitions, &plan, &table, record.table_oid, &columns, options.share)
        };
        let parts = filled.map(part_plan).transpose()?.map(Arc::new);
        let session = Self {
            postgres,
            source,
            options,
            by_partition: opening.rows_by_partition(staged),
            around_kept: Portion::around(source, &record.facts),
            route,
            parts,
            rejects: opening.reject_counter(earlier.rejected),
            control_connection: Mutex::new(connection),
            server,
            table,
            written,
            columns,
            plan: Arc::new(plan),
            buffers: Buffers::new(options.batch_bytes),
            record,
            started,
            state,
            done: earlier.done,
            rejected_before: AtomicU64::new(earlier.rejected),
            not_filled,
            hints: Arc::new(hints),
            changes,
            at_the_end: Mutex::default(),
            there_before: AtomicU64::new(0),
            keys_refused: AtomicBool::new(false),
            found_notes,
            overlaid: earlier.overlaid,
            retyped,
        };
        if !rehearse {
            session.write_missing_rejects(control)?;
        }
        Ok(session)
    }
}

impl Postgres {
    /// Rejects unsupported sources and options before connecting. Returns the table that a new one would be.
    fn check_without_server(&self, source: &dyn Source) -> Result<Option<NewTable>> {
        if self.table.schema().is_some_and(|schema| schema.starts_with("pg_temp")) {
            let what = "a temporary table is seen by one connection only, and ends with it";
            return Err(Error::new(Kind::Config, what)
                .at(format!("table {}", self.table))
                .advise("load into a table of another schema, or without the log (--unlogged)"));
        }
        if self.mode.makes_the_table() {
            let new = columns::natural(source.schema(), &self.table, self.nested, &self.values)?;
            self.kind.check(&new.columns, &self.table)?;
            self.check_partitions(source)?;
            return Ok(Some(new));
        }
        if !self.kind.is_plain() {
            let (what, advice) = match self.on_conflict.is_history() {
                true => (
                    "a table of versions gets its own index, and no other keys, indexes or storage",
                    "leave these options out, and add what you need when the load has made the table",
                ),
                false => (
                    "keys, indexes and storage can be chosen only for a new table",
                    "leave these options out, or load in mode create or replace",
                ),
            };
            let place = format!("table {}, mode {}", self.table, self.name_of_mode());
            return Err(Error::new(Kind::Config, what).at(place).advise(advice));
        }
        self.check_partitions(source)?;
        Ok(None)
    }

    /// Connects to the server, which must be the one that the other tables of this load go to.
    fn connect(&self, rehearse: bool, control: &Control<'_>) -> Result<(Connection, KnownServer)> {
        let mut connection = Connection::open(&self.server, control)?;
        refuse_pooler(&connection, &self.server, control)?;
        if rehearse {
            connection.rehearse(control)?;
        }
        let server = KnownServer::new(&self.server, &connection, control)?;
        if let Some(several) = &self.several {
            several.server.check(&connection, control)?;
        }
        Ok((connection, server))
    }
}

/// A load that begins.
pub(super) struct Opening<'p, 'a> {
    pub(super) postgres: &'a Postgres,
    pub(super) source: &'a dyn Source,
    pub(super) options: &'a LoadOptions,
    pub(super) link: Link<'p>,
}

/// How the source's columns fit the table.
pub(super) struct Matched {
    pub columns: Arc<Vec<Column>>,
    /// Columns of the table that the source lacks, and their default values.
    pub not_filled: Vec<String>,
    /// The changes made for columns that differ.
    pub changes: ColumnChanges,
    /// For each column that is narrower in the table, the option that would let all values in.
    pub hints: BTreeMap<String, String>,
}

/// The results of the load's earlier runs.
struct Earlier {
    done: HashMap<UnitKey, Tally>,
    /// Rows that they have rejected.
    rejected: u64,
    /// Other loads have added rows to the table whose sums over these columns are unknown.
    overlaid: bool,
}

impl<'a> Opening<'_, 'a> {
    /// As [`find_table`](Self::find_table); mode history creates a missing table. Also returns whether it did.
    fn find_or_create_table(&self) -> Result<(TableName, Option<FoundTable>, bool)> {
        let (table, found) = self.find_table()?;
        if found.is_some() || !self.postgres.on_conflict.is_history() {
            return Ok((table, found, false));
        }
        history::create_table(self.postgres, self.source, &table, self.link)?;
        let (table, found) = self.find_table()?;
        Ok((table, found, true))
    }

    /// The table with its schema, and its state on the server.
    fn find_table(&self) -> Result<(TableName, Option<FoundTable>)> {
        let Self { postgres, link, .. } = *self;
        let found = find(link, &postgres.table)?;
        let schema = match (&found, postgres.table.schema()) {
            (Some(found), _) => found.schema.clone(),
            (None, Some(schema)) => schema.to_owned(),
            (None, None) => current_schema(link)?,
        };
        let table = postgres.table.within(&schema);
        if let Some(rejects) = &postgres.rejects {
            file::check(&rejects.path, postgres.rejects_of(self.source, &table))?;
        }
        if let Some(found) = &found {
            found.check_table(&table, link.place())?;
        }
        Ok((table, found))
    }

    /// Whether the table that rows are written to is unlogged.
    fn is_unlogged(&self, found: Option<&FoundTable>) -> bool {
        match (self.postgres.mode.makes_the_table(), found) {
            (false, Some(found)) if !self.postgres.mode.gathers() => found.unlogged,
            _ => self.postgres.kind.unlogged,
        }
    }

    /// Creates the partitions that an existing table lacks, unless the load is complete or only to be finished. Returns
    /// a line for each.
    fn create_partitions(
        &self,
        found: Option<&FoundTable>,
        table: &TableName,
        records: Records<'_>,
        id: &str,
    ) -> Result<Vec<String>> {
        let Self { postgres, source, options, .. } = *self;
        let Some(found) = found.filter(|found| found.kind == "p") else { return Ok(Vec::new()) };
        if postgres.mode.makes_the_table() || options.share == Share::Finish {
            return Ok(Vec::new());
        }
        if !options.again && records.find(id)?.is_some_and(|record| record.complete) {
            return Ok(Vec::new());
        }
        Lacking { postgres, source, records, table, oid: found.oid }.create()
    }

    /// The source in the order of the table's partitions, if workers fill these.
    fn rows_by_partition(&self, staged: bool) -> Option<PartitionedRows<'a>> {
        let partitions = self.postgres.partitions.as_ref().filter(|_| staged)?;
        PartitionedRows::new(self.source, partitions)
    }

    /// Matches the columns of the source with the table's.
    pub(super) fn match_columns(
        &self,
        new_table: Option<NewTable>,
        found: Option<&FoundTable>,
        table: &TableName,
    ) -> Result<Matched> {
        let Self { postgres, link, source, .. } = *self;
        let matched = match (new_table, found) {
            (Some(new), _) => Matched {
                columns: new.columns,
                not_filled: Vec::new(),
                hints: BTreeMap::new(),
                changes: ColumnChanges::absent(
                    source.schema().fields().iter().map(|field| field.name()),
                    source,
                ),
            },
            (None, Some(found)) => {
                let mut existing = columns::read(link, found.oid)?;
                postgres.check_loaded_at(&mut existing, table)?;
                let schema = postgres.renamed(source.schema(), &existing, table)?;
                Matched {
                    columns: postgres
                        .matched(&names_of(&schema), &schema, &existing, table)
                        .map_err(|error| self.with_a_way_out(error, &schema, &existing, table))?,
                    not_filled: columns::not_filled(&schema, &existing, postgres.merged_time()),
                    changes: ColumnChanges::default(),
                    hints: self.refuse_narrower(&schema, &existing, table)?,
                }
            }
            (None, None) => {
                let what = match postgres.mode {
                    Mode::Truncate => {
                        "the table does not exist: mode truncate empties an existing table".to_owned()
                    }
                    Mode::Upsert => {
                        let mode = postgres.name_of_mode();
                        format!("the table does not exist: mode {mode} merges into an existing table")
                    }
                    _ => "the table does not exist, so no rows can be appended".to_owned(),
                };
                return Err(Error::new(Kind::Schema, what)
                    .at(format!("table {table}, {}", link.place()))
                    .advise("create it, or load in mode create, which creates it"));
            }
        };
        postgres.refuse_own_loaded_at(&matched.columns, table)?;
        if let Some(found) = found {
            self.check_merge(&matched.columns, found.oid, table)?;
        }
        Ok(matched)
    }

    /// Checks that the table can find the rows of the keys in mode upsert.
    pub(super) fn check_merge(&self, columns: &[Column], oid: u32, table: &TableName) -> Result<()> {
        let Self { postgres, link, .. } = *self;
        match &postgres.on_conflict {
            _ if postgres.mode != Mode::Upsert || postgres.replaces_files() => Ok(()),
            OnConflict::History(_) => {
                history::check(postgres.matching(), columns, &columns::read(link, oid)?, table)
            }
            _ => upsert::check_key(link, postgres.matching(), columns, oid, table),
        }
    }

    /// Refuses files whose statistics show values that exceed narrower columns of the table. Returns a hint for
    /// each narrower column.
    fn refuse_narrower(
        &self,
        schema: &Schema,
        existing: &[TableColumn],
        table: &TableName,
    ) -> Result<BTreeMap<String, String>> {
        let Self { postgres, source, .. } = *self;
        if !matches!(postgres.mode, Mode::Append | Mode::Upsert) || postgres.by_position {
            return Ok(BTreeMap::new());
        }
        if postgres.rejects.is_none() {
            evolution::refuse_larger(source, schema, existing, table)?;
        }
        Ok(evolution::hints(source, schema, existing))
    }

    /// Reads from the records what earlier runs have done.
    fn earlier(
        &self,
        records: &Records<'_>,
        record: &LoadRecord,
        state: LoadState,
        table: &TableName,
    ) -> Result<Earlier> {
        let Self { postgres, link, source, .. } = *self;
        if state == LoadState::New {
            return Ok(Earlier { done: HashMap::new(), rejected: 0, overlaid: false });
        }
        let overlaid = postgres.mode != Mode::Upsert && records.since(record)?.is_none();
        let done = records.units(&record.id)?;
        let emptied = state == LoadState::Complete && done.is_empty() && source.rows() > 0;
        if emptied && records.unlogged {
            let what =
                "the load was complete, but the server has crashed since and emptied the unlogged table";
            return Err(Error::new(Kind::Changed, what)
                .at(format!("table {table}, {}", link.place()))
                .advise("forget the load, drop the table if the load made it, and load again"));
        }
        // A killed run may still commit a unit after `done` was read. Its rejected rows are counted when this
        // run meets it.
        let rejects = records.count_rejects(&record.id)?;
        let rejected = rejects.iter().filter(|(unit, _)| done.contains_key(unit)).map(|(_, rows)| rows).sum();
        Ok(Earlier { done, rejected, overlaid })
    }

    /// Counts rejected rows, if rows may be rejected.
    fn reject_counter(&self, rejected_before: u64) -> Option<Arc<RejectCounter>> {
        let options = self.postgres.rejects.as_ref()?;
        Some(Arc::new(RejectCounter::new(options, rejected_before)))
    }

    /// The table that rows are written to: the staging table until it takes its final place.
    fn written_table(&self, table: &TableName, state: LoadState) -> Result<TableName> {
        let Self { postgres, link, .. } = *self;
        let staged = match (postgres.mode.gathers(), state) {
            (true, LoadState::New | LoadState::Resumed) => true,
            // One of several tables that wait for each other may be complete but not in its place yet.
            _ if postgres.several.is_some() => find(link, &table.staging())?.is_some(),
            _ => false,
        };
        Ok(if staged { table.staging() } else { table.clone() })
    }

    /// The columns as the table that rows are written to has them, with the OIDs of types that were created with it.
    fn planned_columns(
        &self,
        columns: Arc<Vec<Column>>,
        record: &LoadRecord,
        state: LoadState,
        written: &TableName,
    ) -> Result<(PlannedColumns, Arc<Vec<Column>>)> {
        let Self { postgres, link, source, .. } = *self;
        // The record of an upsert has the table that its rows are merged into.
        let oid = match find(link, written)?.filter(|_| postgres.mode == Mode::Upsert) {
            Some(gathered) => gathered.oid,
            None => record.table_oid,
        };
        if state == LoadState::Complete && !postgres.makes_types() && !self.looks_at_columns() {
            return Ok((PlannedColumns::none(written, oid), columns));
        }
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let planned = PlannedColumns::read(link, written, oid, names.iter().map(String::as_str))?;
        let existing = columns::read(link, oid)?;
        let schema = postgres.renamed(source.schema(), &existing, written)?;
        Ok((planned, columns::matched_of(&names, &schema, &existing, written, &postgres.values)?))
    }

    /// Whether the columns of a load that is complete are compared with those that it began with: without, sums over
    /// other columns would be taken for other content.
    fn looks_at_columns(&self) -> bool {
        // The rows of an upsert were gathered in other columns.
        self.postgres.mode != Mode::Upsert && (self.options.verify || self.postgres.evolves())
    }

    /// Whether a load was recorded with other columns or types.
    fn has_other_columns(
        &self,
        planned: &PlannedColumns,
        columns: &[Column],
        records: &Records<'_>,
        record: &LoadRecord,
    ) -> Result<bool> {
        let recorded = records.columns(&record.id)?;
        Ok(recorded.is_some_and(|recorded| recorded != planned.recorded(columns)))
    }

    /// Records the columns of a new load. A resumed load must not put a column's values into another one.
    /// Returns whether a column had another type.
    fn keep_columns(
        &self,
        planned: &PlannedColumns,
        columns: &[Column],
        records: &Records<'_>,
        record: &LoadRecord,
        state: LoadState,
        staged: bool,
    ) -> Result<bool> {
        match state {
            LoadState::New => {
                records.set(&record.id, "columns", &planned.recorded(columns))?;
                return Ok(false);
            }
            LoadState::Complete => {
                return Ok(
                    self.looks_at_columns() && self.has_other_columns(planned, columns, records, record)?
                );
            }
            // Nothing is bound to the columns from before.
            LoadState::Resumed
                if (self.postgres.evolves() || !staged && !self.postgres.mode.makes_the_table())
                    && records.holds_nothing(&record.id)? =>
            {
                records.set(&record.id, "columns", &planned.recorded(columns))?;
                return Ok(false);
            }
            LoadState::Resumed => {}
        }
        let recorded = records.columns(&record.id)?.unwrap_or_default();
        let Some(difference) = planned.since(&recorded) else { return Ok(false) };
        // Part tables that are filled have the types from before.
        let moved = difference.moved || staged;
        if !moved && !self.options.verify {
            return Ok(true);
        }
        let advice = if moved {
            FORGET
        } else {
            "the sums of rows that are in belong to the old type: load without --verify, and compare the table with the \
             files afterwards (sawmill verify)"
        };
        Err(Error::new(Kind::Changed, format!("{} when the load began", difference.what))
            .at(format!("table {}, {}", planned.table, self.link.place()))
            .advise(advice))
    }

    fn writer_plan(
        &self,
        checkpoints: Checkpoints,
        record: &LoadRecord,
        written: &TableName,
        planned: PlannedColumns,
        columns: &[Column],
        staged: bool,
    ) -> WriterPlan {
        let (copy, before_copy) = copy_into(written, columns);
        WriterPlan {
            server: self.postgres.server.clone(),
            load_id: record.id.clone(),
            lock: lock_of_writers(&record.id, self.options.share),
            checkpoints,
            copy,
            before_copy,
            rows_planned: self.source.facts().knows_rows,
            rows_of_files: self.source.facts().counts_all_rows,
            by_partition: staged,
            planned,
            columns: columns.len(),
            canonical: CanonicalRow::new(columns, false),
            unit_rows: record.unit_rows,
            files: self.source.files().iter().map(|file| file.name.clone()).collect(),
        }
    }

    /// How part tables of `table` are created. Those that a crash of the server has emptied are dropped
    /// first.
    fn part_plan(
        &self,
        partitions: &Arc<Partitions>,
        plan: &WriterPlan,
        table: &TableName,
        parent_oid: u32,
        columns: &Arc<Vec<Column>>,
        share: Share,
    ) -> Result<PartPlan> {
        let Self { postgres, link, source, .. } = *self;
        let records = plan.checkpoints.on(link);
        if records.unlogged {
            part_tables::drop_emptied(&records, table)?;
        }
        let made = part_tables::of_load(&records, &plan.load_id)?;
        // Partitions that no worker fills have the first numbers.
        let first = partitions.count() as u32 + 1;
        let (kind, schema) = (postgres.kind.of_parts(), Arc::clone(source.schema()));
        let (columns, named) = (Arc::clone(columns), table.clone());
        Ok(PartPlan {
            parent: table.clone(),
            parent_oid,
            columns: columns::list(&columns),
            create: Box::new(move |part| {
                // The types were created with the table that the parts will belong to.
                let (columns, named) = (Arc::clone(&columns), named.clone());
                let new = NewTable { columns, types: Vec::new(), named };
                kind.create(part, &new, &schema, None)
            }),
            partitions: Arc::clone(partitions),
            numbers: part_tables::Numbers::from(part_tables::next_number(&made).max(first), share),
        })
    }
}
