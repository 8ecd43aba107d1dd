//! A load into a PostgreSQL table: found or made, written, checked, put in its place.

mod put_aside;
mod source_now;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::catalogue::{current_schema, find};
use super::checkpoint::{Checkpoints, LoadRecord};
use super::columns::NewTable;
use super::connection::Connection;
use super::copy_binary::{Column, CopyEncoder, RejectingEncoder};
use super::locate::Locating;
use super::part_writer::{PartPlan, PartWriter};
use super::partitioned_rows::PartitionedRows;
use super::prepare::Preparing;
use super::read_back::ReadBack;
use super::reject_part_writer::RejectingPartWriter;
use super::reject_writer::RejectingWriter;
use super::rejects::Rejecting;
use super::rejects_file;
use super::replaced::{self, Replaced};
use super::server_identity::ServerIdentity;
use super::source_sums::SourceSums;
use super::table_name::{TableName, quote};
use super::way::Way;
use super::write_ahead::WriteAhead;
use super::writer::{CopyWriter, WriterPlan};
use super::{
    Mode, Postgres, activity, blockers, columns, durable, made_types, new_table, partition_tables, parts,
    pooler, upsert,
};
use crate::buffers::Buffers;
use crate::content_sum::Tally;
use crate::control::Control;
use crate::error::{Error, Kind, Result};
use crate::identity::recheck::Encoders;
use crate::load::{LoadOptions, again};
use crate::server_waits::ServerWaits;
use crate::source::{Source, UnitKey};
use crate::target::{Arrived, BatchEncoder, Session, Standing, UnitWriter};
use crate::verify::Verification;

/// An open load.
pub(crate) struct PostgresSession<'a> {
    postgres: &'a Postgres,
    source: &'a dyn Source,
    options: &'a LoadOptions,
    way: Way,
    /// The source in the order of the table's partitions, where workers fill these.
    by_partition: Option<PartitionedRows<'a>>,
    /// Holds the lock of the load; also does everything that is not copying.
    control_connection: Mutex<Connection>,
    /// The server that the load began with.
    identity: ServerIdentity,
    /// Where the rows will be seen.
    table: TableName,
    /// Where they are written.
    written: TableName,
    columns: Arc<Vec<Column>>,
    plan: Arc<WriterPlan>,
    /// How parts are made, where workers have tables of their own.
    parts: Option<Arc<PartPlan>>,
    buffers: Arc<Buffers>,
    record: LoadRecord,
    standing: Standing,
    done: HashMap<UnitKey, Tally>,
    /// Rows put aside by earlier runs, where this one may put none aside.
    rejected_before: AtomicU64,
    rejecting: Option<Arc<Rejecting>>,
    /// Columns of the table that the source lacks, and what they get.
    not_filled: Vec<String>,
    /// What was said of the table that was replaced.
    not_kept: Mutex<Option<String>>,
    /// What there is to say about how the table was found.
    found_notes: Vec<String>,
    /// Since the load began others have brought rows into the table whose sums over these columns are not known.
    overlaid: bool,
}

impl<'a> PostgresSession<'a> {
    pub(crate) fn prepare(
        postgres: &'a Postgres,
        source: &'a dyn Source,
        options: &'a LoadOptions,
        rehearse: bool,
        control: &Control<'_>,
    ) -> Result<Self> {
        // What the source cannot give is told without a server.
        let natural = match postgres.mode.makes_the_table() {
            true => {
                let (nested, values) = (postgres.nested, &postgres.values);
                let new = columns::natural(source.schema(), &postgres.table, nested, values)?;
                postgres.kind.check(&new.columns, &postgres.table)?;
                postgres.check_partitions(source)?;
                Some(new)
            }
            false if !postgres.kind.is_plain() => {
                return Err(Error::new(
                    Kind::Config,
                    "keys, indexes and storage are chosen for a new table alone",
                )
                .at(format!("table {}, mode {}", postgres.table, postgres.mode.name()))
                .advise("leave these options out, or load in mode create or replace"));
            }
            false => {
                postgres.check_partitions(source)?;
                None
            }
        };
        let mut way = postgres.choose(options.degree)?;
        if let Some(rejects) = &postgres.rejects {
            rejects_file::check(&rejects.path)?;
        }
        let checkpoints = Checkpoints::new(&postgres.checkpoint_schema)?;
        let mut connection = Connection::open(&postgres.server, control)?;
        pooler::refuse(&connection, &postgres.server, control)?;
        if rehearse {
            connection.rehearse(control)?;
        }
        let identity = ServerIdentity::of(&connection, control)?;
        let found = find(&connection, &postgres.table, control)?;
        let schema = match (&found, postgres.table.schema()) {
            (Some(found), _) => found.schema.clone(),
            (None, Some(schema)) => schema.to_owned(),
            (None, None) => current_schema(&connection, control)?,
        };
        let table = postgres.table.within(&schema);
        if let Some(found) = found.as_ref().filter(|_| postgres.mode != Mode::Create) {
            found.check_table(&table, connection.place())?;
        }
        let mut not_filled = Vec::new();
        let columns = match (natural, &found) {
            (Some(natural), _) => natural.columns,
            (None, Some(found)) => {
                let existing = columns::read(&connection, found.oid, control)?;
                let schema = match postgres.by_position {
                    false => Arc::clone(source.schema()),
                    true => columns::by_position(source.schema(), &existing, &table)?,
                };
                not_filled = columns::not_filled(&schema, &existing);
                columns::matched(&schema, &existing, &table, &postgres.values)?
            }
            (None, None) => {
                return Err(Error::new(Kind::Schema, "there is no such table to append to")
                    .at(format!("table {table}, {}", connection.place()))
                    .advise("create it, or load in mode create, which creates it"));
            }
        };
        if let (Mode::Upsert, Some(found)) = (postgres.mode, &found) {
            upsert::check_key(&connection, &postgres.key, &columns, found.oid, &table, control)?;
        }
        let unlogged = match (postgres.mode.makes_the_table(), &found) {
            (false, Some(found)) if !postgres.mode.gathers() => found.unlogged,
            _ => postgres.kind.unlogged,
        };
        let checkpoints = checkpoints.of_unlogged(unlogged);
        let id_of = |staged: bool| postgres.id_of(source, &table, staged);
        checkpoints.create(&connection, control)?;
        way.keep_to_earlier(postgres, &connection, &checkpoints, &id_of, control)?;
        let (staged, id) = (way.staged, id_of(way.staged));
        checkpoints.lock(&connection, &id, control)?;
        let mut preparing = Preparing {
            postgres,
            source,
            options,
            control,
            connection: &connection,
            checkpoints: &checkpoints,
            table: &table,
            columns: &columns,
            found: None,
            id: &id,
            staged,
            notes: Vec::new(),
        };
        let oid = found.as_ref().map_or(0, |found| found.oid);
        let (record, standing) = match postgres.mode {
            Mode::Create | Mode::Replace => preparing.create()?,
            Mode::Append | Mode::Truncate => preparing.append(oid)?,
            Mode::Upsert => preparing.upsert(oid)?,
        };
        let found_notes = preparing.notes;
        let overlaid = standing != Standing::New
            && postgres.mode != Mode::Upsert
            && checkpoints.since(&connection, &record, control)?.is_none();
        let done = match standing {
            Standing::New => HashMap::new(),
            _ => checkpoints.units(&connection, &id, control)?,
        };
        if unlogged && standing == Standing::Complete && done.is_empty() && source.rows() > 0 {
            return Err(Error::new(
                Kind::Changed,
                "the load was complete, but the server has crashed since and emptied the unlogged table",
            )
            .at(format!("table {table}, {}", connection.place()))
            .advise("forget the load, drop the table if the load made it, and load again"));
        }
        let rejected_before = match standing {
            Standing::New => 0,
            _ => {
                // A run that was killed may commit a unit after `done` was read: its rows count when they are met.
                let rejects = checkpoints.count_rejects(&connection, &id, control)?;
                rejects.iter().filter(|(unit, _)| done.contains_key(unit)).map(|(_, rows)| rows).sum()
            }
        };
        if postgres.rejects.is_some() {
            checkpoints.create_rejects(&connection, control)?;
        }
        let of_lists = postgres.part_of.as_ref().map_or("", |several| several.lists.as_str());
        let rejecting =
            postgres.rejects.as_ref().map(|options| Rejecting::new(options, rejected_before, of_lists));
        let written = match (postgres.mode.gathers(), standing) {
            (true, Standing::New | Standing::Resumed) => table.staging(),
            // One of several tables that wait for each other may be complete but not in its place yet.
            _ if postgres.part_of.is_some() => match find(&connection, &table.staging(), control)? {
                Some(_) => table.staging(),
                None => table.clone(),
            },
            _ => table.clone(),
        };
        // The numbers of types that were made with the table are the server's to say.
        let columns = match postgres.makes_types() {
            true => {
                let existing = columns::read(&connection, record.table_oid, control)?;
                columns::matched(source.schema(), &existing, &written, &postgres.values)?
            }
            false => columns,
        };
        let plan = WriterPlan {
            load_id: id,
            checkpoints,
            copy: format!(
                "COPY {} ({}) FROM STDIN (FORMAT binary)",
                written.quoted(),
                columns::list(&columns)
            ),
            rows_planned: source.knows_rows(),
            rows_of_files: source.counts_all_rows(),
            by_partition: staged && postgres.partitions.is_some(),
            columns: columns.len(),
            unit_rows: record.unit_rows,
            files: source.files().iter().map(|file| file.name.clone()).collect(),
        };
        let parts = match staged && standing != Standing::Complete {
            false => None,
            true => {
                let made = parts::of_load(&connection, &plan.checkpoints, &plan.load_id, control)?;
                let (kind, columns) = (postgres.kind.of_parts(), Arc::clone(&columns));
                let schema = Arc::clone(source.schema());
                Some(Arc::new(PartPlan {
                    load_id: plan.load_id.clone(),
                    checkpoints: plan.checkpoints.clone(),
                    parent: table.clone(),
                    columns: columns::list(&columns),
                    create: Box::new(move |part| {
                        // The types were made with the table that they will belong to.
                        let new = NewTable { columns: Arc::clone(&columns), types: Vec::new() };
                        kind.create(part, &new, &schema, None)
                    }),
                    part_rows: postgres.part_rows,
                    partitions: postgres.partitions.clone(),
                    parent_oid: record.table_oid,
                    // Partitions that no worker fills have the first numbers.
                    next: AtomicU32::new(parts::next_number(&made).max(
                        postgres.partitions.as_ref().map_or(1, |partitions| partitions.count() as u32 + 1),
                    )),
                }))
            }
        };
        Ok(Self {
            postgres,
            source,
            options,
            by_partition: match staged {
                true => postgres.partitions.as_ref().and_then(|known| PartitionedRows::new(source, known)),
                false => None,
            },
            way,
            parts,
            control_connection: Mutex::new(connection),
            identity,
            table,
            written,
            columns,
            plan: Arc::new(plan),
            buffers: Buffers::new(options.batch_bytes),
            record,
            standing,
            done,
            rejected_before: AtomicU64::new(rejected_before),
            rejecting: rejecting.map(Arc::new),
            not_filled,
            not_kept: Mutex::new(None),
            found_notes,
            overlaid,
        })
    }

    /// Where the rows will be seen.
    pub(super) fn table(&self) -> &TableName {
        &self.table
    }

    /// Which way rows go, and why.
    pub(super) fn way(&self) -> &Way {
        &self.way
    }

    /// The statement that rows go through.
    pub(super) fn copy(&self) -> &str {
        &self.plan.copy
    }

    /// Runs `work` on the connection that holds the load's lock; a lost one is opened and locked again.
    fn with_connection<T>(
        &self,
        control: &Control<'_>,
        work: impl Fn(&Connection) -> Result<T>,
    ) -> Result<T> {
        let mut connection = self.control_connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut attempt = 0;
        loop {
            match work(&connection) {
                Err(error) if error.kind() == Kind::Connection && attempt < self.options.retries => {
                    control.sleep(crate::load::backoff(attempt))?;
                    attempt += 1;
                    match self.reconnected(control) {
                        Ok(opened) => *connection = opened,
                        Err(error) if error.kind() == Kind::Connection => {}
                        Err(error) => return Err(error),
                    }
                }
                Err(error) => {
                    if !connection.is_rehearsing() {
                        // What it had begun is not to hold up what follows.
                        let _ = connection.batch(control, "ROLLBACK");
                    }
                    return Err(error);
                }
                done => return done,
            }
        }
    }
}

impl PostgresSession<'_> {
    /// Another connection to the same data, with the load's lock.
    fn reconnected(&self, control: &Control<'_>) -> Result<Connection> {
        let opened = Connection::open(&self.postgres.server, control)?;
        self.identity.check(&opened, control)?;
        self.plan.checkpoints.lock(&opened, &self.plan.load_id, control)?;
        Ok(opened)
    }

    /// Makes the committed parts children or partitions of the table that gathers; those that are stay so.
    fn assemble(&self, control: &Control<'_>) -> Result<()> {
        let Some(plan) = &self.parts else { return Ok(()) };
        let (checkpoints, id) = (&plan.checkpoints, &plan.load_id);
        self.with_connection(control, |connection| {
            connection.begin(control)?;
            match &plan.partitions {
                None => {
                    let parts = parts::of_load(connection, checkpoints, id, control)?;
                    parts::inherit(connection, &parts, &self.written, control)?;
                }
                Some(partitions) => {
                    let filled = partition_tables::filled(connection, checkpoints, id, partitions, control)?;
                    partition_tables::attach(connection, &filled, partitions, &self.written, control)?;
                }
            }
            connection.commit(control)
        })
    }

    /// Gives the tables that this one consists of their names after its own; returns those that get keys and
    /// indexes of their own.
    fn rename_parts(&self, connection: &Connection, control: &Control<'_>) -> Result<Vec<TableName>> {
        let (checkpoints, id) = (&self.plan.checkpoints, &self.plan.load_id);
        let Some(partitions) = &self.postgres.partitions else {
            if self.parts.is_none() {
                return Ok(Vec::new());
            }
            let parts = parts::of_load(connection, checkpoints, id, control)?;
            return parts::rename(connection, &parts, &self.table, control);
        };
        let mut now: HashMap<u32, TableName> = (0..).zip(partitions.gathering_names(&self.table)).collect();
        if self.way.staged {
            now.retain(|partition, _| partitions.is_empty(*partition));
            let filled = partition_tables::filled(connection, checkpoints, id, partitions, control)?;
            now.extend(filled.into_iter().map(|(name, partition, _)| (partition, name)));
        }
        for name in partition_tables::rename(connection, &now, partitions, &self.table, control)? {
            new_table::rename_key(connection, &name, control)?;
        }
        // Keys and indexes of the table are those of its partitions, too.
        Ok(Vec::new())
    }

    /// The table that gathered the rows gets its name, and what keys and indexes were to wait for them.
    fn put_in_place(&self, connection: &Connection, control: &Control<'_>) -> Result<()> {
        if find(connection, &self.table, control)?.is_some() {
            return Err(Error::new(Kind::Exists, "somebody has made a table of this name while the load ran")
                .at(format!("table {}, {}", self.table, connection.place()))
                .advise("all rows are in: drop or rename that table and run the same command again, or forget the load"));
        }
        let (schema, nested) = (self.source.schema(), self.postgres.nested);
        let values = &self.postgres.values;
        let from = columns::natural(schema, &self.written, nested, values)?.types;
        let to = columns::natural(schema, &self.table, nested, values)?.types;
        made_types::rename(connection, &from, &to, control)?;
        let rename = format!("ALTER TABLE {} RENAME TO {}", self.written.quoted(), quote(self.table.name()));
        connection.batch(control, &rename)?;
        new_table::rename_key(connection, &self.table, control)?;
        let mut made = vec![self.table.clone()];
        made.extend(self.rename_parts(connection, control)?);
        let kind = self.postgres.kind_for(self.way.staged);
        for statement in made.iter().flat_map(|table| kind.complete(table)) {
            connection.batch(control, &statement).map_err(|error| {
                Error::new(error.kind(), error.what())
                    .at(format!("{statement}, {}", error.place()))
                    .advise("all rows are in: correct what is named and run the same command again, or forget the load")
            })?;
        }
        Ok(())
    }
}

impl Session for PostgresSession<'_> {
    fn standing(&self) -> Standing {
        self.standing
    }

    fn unit_rows(&self) -> u64 {
        self.record.unit_rows
    }

    fn source(&self) -> Option<&dyn Source> {
        self.by_partition.as_ref().map(|rows| rows as &dyn Source)
    }

    fn done(&self) -> &HashMap<UnitKey, Tally> {
        &self.done
    }

    fn recorded(&self, control: &Control<'_>) -> Result<Option<HashMap<UnitKey, Tally>>> {
        let (checkpoints, id) = (&self.plan.checkpoints, &self.plan.load_id);
        // The one that holds the lock may be lost, and whether it can be had again does not matter here.
        let connection = Connection::open(&self.postgres.server, control)?;
        self.identity.check(&connection, control)?;
        let units = checkpoints.units(&connection, id, control)?;
        if units.is_empty() && checkpoints.find(&connection, id, control)?.is_none() {
            let what = "the server has lost the record of this load, and with it what was loaded";
            return Err(Error::new(Kind::Changed, what)
                .at(connection.place())
                .advise("run the same command again: it begins afresh"));
        }
        Ok(Some(units))
    }

    fn lost(&self, units: &[Arrived]) {
        if !self.source().unwrap_or(self.source).knows_rows() {
            return;
        }
        let rejected = units.iter().map(|lost| lost.unit.rows.saturating_sub(lost.tally.rows)).sum();
        match &self.rejecting {
            Some(rejecting) => rejecting.forget(rejected),
            None => {
                self.rejected_before.fetch_sub(rejected, Relaxed);
            }
        }
    }

    fn untrusted(&self) -> BTreeSet<u32> {
        match self.standing {
            Standing::New => BTreeSet::new(),
            _ => self.record.files.untrusted(self.source.files()),
        }
    }

    fn trust(&self, files: &BTreeSet<u32>, control: &Control<'_>) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let (checkpoints, id) = (&self.plan.checkpoints, &self.plan.load_id);
        let now = self.record.files.with_stamps_of(self.source.files());
        self.with_connection(control, |connection| checkpoints.set_stamps(connection, id, &now, control))
    }

    fn summing_encoders<'e>(
        &'e self,
        source: &dyn Source,
        control: &Control<'_>,
    ) -> Result<Option<Box<Encoders<'e>>>> {
        self.encoders_of_loaded(source, control)
    }

    fn starts_anew(&self) -> bool {
        matches!(self.postgres.mode, Mode::Replace | Mode::Truncate | Mode::Upsert)
    }

    fn columns(&self) -> usize {
        self.columns.len()
    }

    fn encoder(&self) -> Result<Box<dyn BatchEncoder>> {
        let encoder = CopyEncoder::new(Arc::clone(&self.columns), Arc::clone(&self.buffers));
        Ok(match self.rejecting {
            None => Box::new(encoder),
            Some(_) => {
                let encoder = RejectingEncoder::new(encoder);
                Box::new(match &self.postgres.part_of {
                    None => encoder,
                    Some(several) => encoder.of_records(&several.records),
                })
            }
        })
    }

    fn writer(&self, control: &Control<'_>) -> Result<Box<dyn UnitWriter>> {
        let connection = Connection::open(&self.postgres.server, control)?;
        self.identity.check(&connection, control)?;
        let plan = Arc::clone(&self.plan);
        Ok(match (self.parts.clone(), self.rejecting.clone()) {
            (None, None) => Box::new(CopyWriter::new(plan, connection, control)?),
            (None, Some(rejecting)) => Box::new(RejectingWriter::new(plan, rejecting, connection, control)?),
            (Some(parts), None) => Box::new(PartWriter::new(parts, connection, control)?),
            (Some(parts), Some(rejecting)) => {
                Box::new(RejectingPartWriter::new(parts, plan, rejecting, connection, control)?)
            }
        })
    }

    fn watch(&self, done: &AtomicBool, control: &Control<'_>) -> Option<ServerWaits> {
        // Without the last quote, for what gathers out of sight and for private tables: their names go on.
        let copy = format!("COPY {}", self.table.quoted().trim_end_matches('"'));
        let logged = !self.plan.checkpoints.of_unlogged_table();
        let write_ahead = logged.then(|| WriteAhead::on(&self.control_connection));
        activity::watch(&self.postgres.server, &copy, write_ahead, done, control)
    }

    fn verify(&self, expected: &Tally, control: &Control<'_>) -> Result<Verification> {
        self.assemble(control)?;
        let read = ReadBack {
            server: &self.postgres.server,
            table: &self.written,
            columns: &self.columns,
            degree: self.options.degree,
            each_column: false,
            by_value: false,
        };
        let retries = self.options.retries;
        let mut target = again(retries, control, || read.run(control))?.whole;
        // Later loads may have added theirs.
        let since = match self.written == self.table {
            true => self.with_connection(control, |connection| {
                self.plan.checkpoints.since(connection, &self.record, control)
            })?,
            false => None,
        };
        let since = since.unwrap_or_default();
        target = target.minus(&since);
        match (&self.record.before, self.postgres.mode.gathers()) {
            (Some(before), _) => target = target.minus(before),
            (None, true) => {}
            (None, false) => {
                return Err(Error::new(
                    Kind::Mismatch,
                    "cannot be verified: what the table held before the load was not summed up",
                )
                .at(format!("table {}", self.table))
                .advise("ask for verification from the first run of an append on"));
            }
        }
        let columns = self.columns.iter().map(|column| column.name.clone()).collect();
        let mut verification = Verification {
            columns,
            source: expected.clone(),
            target,
            put_aside: 0,
            not_compared: Vec::new(),
            differing: Vec::new(),
            located: None,
        };
        if verification.matches() {
            return Ok(verification);
        }
        let refused = self.with_connection(control, |connection| self.refused(connection, control))?;
        let before = since.rows + self.record.before.as_ref().map_or(0, |before| before.rows);
        if self.options.locate {
            let locating = Locating {
                source: self.source,
                server: &self.postgres.server,
                table: &self.written,
                columns: &self.columns,
                options: self.options,
                unit_rows: self.record.unit_rows,
                put_aside: None,
                refused: refused.as_ref(),
                records: self.postgres.part_of.as_ref().map(|several| &several.records),
            };
            let mut located = locating.run(verification.target.rows + before, control)?;
            located.rows_of_none = located.rows_of_none.saturating_sub(before);
            verification.located = Some(located);
        }
        // Of a table that holds other rows, too, nobody knows which they are.
        if before == 0 {
            let (source, _) = SourceSums {
                source: self.source,
                columns: &self.columns,
                options: self.options,
                unit_rows: self.record.unit_rows,
                each_column: true,
                by_value: false,
                leave_out: refused.is_some(),
                refused: refused.as_ref(),
            }
            .run(control)?;
            let read = ReadBack { each_column: true, ..read };
            let target = again(retries, control, || read.run(control))?;
            verification.differing = source.differing(&target, &self.columns);
        }
        verification.into_result(&format!("table {}, {}", self.table, self.postgres.server))
    }

    fn can_verify(&self) -> bool {
        // What was merged stands among rows that were there before.
        !(self.overlaid || self.postgres.mode == Mode::Upsert && self.standing == Standing::Complete)
    }

    fn rejected(&self) -> u64 {
        match &self.rejecting {
            Some(rejecting) => rejecting.count(),
            None => self.rejected_before.load(Relaxed),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.found_notes.clone();
        notes.extend(self.identity.changes());
        if self.postgres.partitions.is_some() && self.standing != Standing::Complete {
            notes.push(self.way.to_string());
        }
        if !self.not_filled.is_empty() && self.standing != Standing::Complete {
            notes.push(format!("columns of the table that the files lack: {}", self.not_filled.join(", ")));
        }
        notes.extend(self.not_kept.lock().unwrap_or_else(PoisonError::into_inner).clone());
        if self.overlaid && self.options.verify {
            notes.push(
                "not verified: since this load began, another one has brought other columns of its files into the table, or \
                 merged rows into it (sawmill verify compares whole tables)"
                    .to_owned(),
            );
        } else if !self.can_verify() {
            notes.push(
                "an earlier run merged these rows; an upsert is compared only while it merges; --again merges once more"
                    .to_owned(),
            );
        }
        match (self.rejected(), &self.postgres.rejects) {
            (0, _) => {}
            (rows, Some(to)) if self.standing != Standing::Complete => {
                notes.push(format!(
                    "{rows} rows could not be loaded and were put aside in {}",
                    to.path.display()
                ));
            }
            (rows, _) => notes.push(format!("{rows} rows could not be loaded and were put aside")),
        }
        notes
    }

    fn finish(&self, total: &Tally, control: &Control<'_>) -> Result<()> {
        self.assemble(control)?;
        let checkpoints = &self.plan.checkpoints;
        let id = &self.plan.load_id;
        // What is put aside of several tables is known when all of them are loaded.
        if self.postgres.part_of.is_none() {
            self.with_connection(control, |connection| self.write_rejects(connection, control))?;
        }
        self.with_connection(control, |connection| {
            // After a lost connection the commit may have happened.
            if checkpoints.find(connection, id, control)?.is_some_and(|record| record.complete) {
                return Ok(());
            }
            connection.begin(control)?;
            checkpoints.refuse_lost(connection, id, total, control)?;
            if self.postgres.part_of.is_some() {
                checkpoints.complete(connection, id, total, control)?;
                return durable::commit(connection, control);
            }
            if self.postgres.mode == Mode::Upsert {
                let (written, key, verify) = (&self.written, &self.postgres.key, self.options.verify);
                blockers::named(&self.postgres.server, connection, control, || {
                    upsert::merge(connection, written, &self.table, &self.columns, key, verify, control)
                })?;
            }
            let old = match self.postgres.mode {
                Mode::Replace => find(connection, &self.table, control)?,
                _ => None,
            };
            let replaced = match old {
                None => None,
                Some(old) => {
                    checkpoints.delete_of_table(connection, old.oid, id, control)?;
                    let server = &self.postgres.server;
                    let replaced = blockers::named(server, connection, control, || {
                        Replaced::locked(connection, &self.table, old.oid, control)
                    })?;
                    made_types::drop_table(connection, &self.table, old.oid, control)?;
                    Some(replaced)
                }
            };
            if self.postgres.mode.makes_the_table() {
                self.put_in_place(connection, control)?;
            }
            if let Some(replaced) = replaced {
                let lost = replaced.hand_on(connection, &self.table, control)?;
                *self.not_kept.lock().unwrap_or_else(PoisonError::into_inner) =
                    replaced::note(&self.table, &lost);
            }
            checkpoints.complete(connection, id, total, control)?;
            durable::commit(connection, control)
        })
    }
}
