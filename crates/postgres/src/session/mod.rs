//! A load into a PostgreSQL table: found or created, written, checked, and put in its place.

pub(crate) mod activity;
mod comparison;
mod evolving;
mod finishing;
pub(crate) mod insertion;
mod opening;
pub(crate) mod prepare;
pub(crate) mod rehearsal;
mod rejects;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use sawmill_loader::{
    Arrived, BatchEncoder, ColumnChanges, Encoders, LoadFacts, LoadOptions, LoadRecord, LoadState, Mode,
    Note, Portion, RecordedFiles, ServerWaits, Session, TableName, Tally, UnitWriter, Verification,
};
use sawmill_pgcopy::{Buffers, Column};
use sawmill_pgwire::{Connection, KnownServer};
use sawmill_source::{Control, Error, Kind, Result, Source, UnitKey};

use crate::Postgres;
use crate::encode::encoders::RejectingEncoder;
use crate::encode::encoders::SummingEncoder;
use crate::partition::rows::PartitionedRows;
use crate::rejected::rejects::RejectCounter;
use crate::session::activity::WriteAhead;
use crate::table::catalogue::Link;
use crate::write::plan::PartPlan;
use crate::write::plan::WriterPlan;
use crate::write::route::Route;
use crate::write::table_writer::{Held, TableWriter};
use crate::write::upsert::OnConflict;

/// An open load.
pub(crate) struct PostgresSession<'a> {
    postgres: &'a Postgres,
    source: &'a dyn Source,
    options: &'a LoadOptions,
    route: Route,
    /// The source in the order of the table's partitions, where workers fill these.
    by_partition: Option<PartitionedRows<'a>>,
    /// The source with units that an earlier run has committed with other numbers, if there are some.
    around_kept: Option<Portion<'a>>,
    /// Holds the load's lock, and does everything but copy. It also copies if the role may open only one.
    control_connection: Mutex<Connection>,
    /// The server on which the load began.
    server: KnownServer,
    /// Where the rows will be seen.
    table: TableName,
    /// Where they are written.
    written: TableName,
    columns: Arc<Vec<Column>>,
    plan: Arc<WriterPlan>,
    /// How part tables are created, if workers fill tables of their own.
    parts: Option<Arc<PartPlan>>,
    buffers: Arc<Buffers>,
    record: LoadRecord,
    /// When this run began.
    started: Instant,
    state: LoadState,
    done: HashMap<UnitKey, Tally>,
    /// Rows that earlier runs rejected, if this run may reject none.
    rejected_before: AtomicU64,
    /// Counts rejected rows, if rows may be rejected.
    rejects: Option<Arc<RejectCounter>>,
    /// Columns of the table that the source lacks, and how the server fills them.
    not_filled: Vec<String>,
    /// For each column that is narrower in the table, the option that would let all values in.
    hints: Arc<BTreeMap<String, String>>,
    /// The changes made for columns by which the files and the table differ.
    changes: ColumnChanges,
    /// Notes about the end of the load: about the replaced table, or rows that were not merged as others.
    at_the_end: Mutex<Vec<String>>,
    /// Rows of an upsert whose keys, all of their columns, were in the table.
    there_before: AtomicU64,
    /// The rows do not allow a key or an index of the table.
    keys_refused: AtomicBool,
    /// Notes on how the table was found.
    found_notes: Vec<String>,
    /// The table had other columns or types when the load began, and sums of earlier units are over these.
    retyped: bool,
    /// Since the load began, other loads have added rows to the table whose sums over these columns are
    /// unknown.
    overlaid: bool,
}

impl<'a> PostgresSession<'a> {
    /// Runs `work` on the connection that holds the load's lock. If that connection is lost, opens another
    /// one and takes the lock again.
    fn with_connection<T>(&self, control: &Control<'_>, work: impl Fn(Link<'_>) -> Result<T>) -> Result<T> {
        let mut connection = self.control_connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut attempt = 0;
        loop {
            match work(Link::new(&connection, control)) {
                Err(error) if error.kind() == Kind::Connection && attempt < self.options.retries => {
                    control.sleep(sawmill_loader::backoff(attempt))?;
                    attempt += 1;
                    match self.reconnect(&mut connection, control) {
                        Err(error) if error.kind() != Kind::Connection => return Err(error),
                        _ => {}
                    }
                }
                Err(error) => {
                    if !connection.is_rehearsing() {
                        // The transaction must not block what follows.
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
    /// Replaces the connection by another one to the same data, with the load's lock.
    fn reconnect(&self, connection: &mut Connection, control: &Control<'_>) -> Result<()> {
        connection.close();
        let opened = self.server.connect(control)?;
        let records = self.plan.checkpoints.on(Link::new(&opened, control));
        records.lock_again(&self.plan.load_id, self.options.share)?;
        *connection = opened;
        Ok(())
    }

    /// A connection for a writer: a new one, or the one that holds the load's lock if the role may open only
    /// one. A failed writer may have left a transaction open on that one.
    fn connection(&self, control: &Control<'_>) -> Result<Held<'_>> {
        if !self.server.allows_one_connection() {
            return Ok(Held::Own(Box::new(self.server.connect(control)?)));
        }
        let mut connection = self.control_connection.lock().unwrap_or_else(PoisonError::into_inner);
        match connection.batch(control, "ROLLBACK") {
            Err(error) if error.kind() == Kind::Connection => self.reconnect(&mut connection, control)?,
            rolled_back => rolled_back?,
        }
        Ok(Held::OfSession(connection))
    }
}

impl Session for PostgresSession<'_> {
    fn state(&self) -> LoadState {
        self.state
    }

    fn unit_rows(&self) -> u64 {
        self.record.unit_rows
    }

    fn source(&self) -> Option<&dyn Source> {
        let kept = self.around_kept.as_ref().map(|rows| rows as &dyn Source);
        self.by_partition.as_ref().map(|rows| rows as &dyn Source).or(kept)
    }

    fn done(&self) -> &HashMap<UnitKey, Tally> {
        &self.done
    }

    fn recorded(&self, control: &Control<'_>) -> Result<Option<HashMap<UnitKey, Tally>>> {
        // The connection that holds the lock may be lost, and restoring it does not matter here.
        let connection = self.connection(control)?;
        let link = Link::new(&connection, control);
        let (records, id) = (self.plan.checkpoints.on(link), &self.plan.load_id);
        let units = records.units(id)?;
        if units.is_empty() && records.find(id)?.is_none() {
            let what = "the server has lost the record of this load, and the loaded rows with it";
            return Err(Error::new(Kind::Changed, what)
                .at(link.place())
                .advise("run the same command again: it starts from the beginning"));
        }
        Ok(Some(units))
    }

    fn lost(&self, units: &[Arrived]) {
        if !self.source().unwrap_or(self.source).facts().knows_rows {
            return;
        }
        let rejected = units.iter().map(|lost| lost.unit.rows.saturating_sub(lost.tally.rows)).sum();
        match &self.rejects {
            Some(rejects) => rejects.forget(rejected),
            None => {
                self.rejected_before.fetch_sub(rejected, Relaxed);
            }
        }
    }

    fn value_refused(&self, control: &Control<'_>) {
        if self.state != LoadState::Complete {
            let facts = LoadFacts { value_refused: true, ..self.record.facts.clone() }.to_text();
            let (checkpoints, id) = (&self.plan.checkpoints, &self.plan.load_id);
            // The value is the error to tell.
            let _ = self.with_connection(control, |link| checkpoints.on(link).set(id, "facts", &facts));
        }
    }

    fn recorded_files(&self) -> &RecordedFiles {
        &self.record.files
    }

    fn record_stamps(&self, files: &RecordedFiles, control: &Control<'_>) -> Result<()> {
        let (checkpoints, id) = (&self.plan.checkpoints, &self.plan.load_id);
        self.with_connection(control, |link| checkpoints.on(link).set(id, "stamps", &files.stamps))
    }

    fn summing_encoders<'e>(
        &'e self,
        source: &dyn Source,
        control: &Control<'_>,
    ) -> Result<Option<Box<Encoders<'e>>>> {
        if self.retyped { Ok(None) } else { self.encoders_of_loaded(source, control).map(Some) }
    }

    fn starts_anew(&self) -> bool {
        matches!(self.postgres.mode, Mode::Replace | Mode::Truncate | Mode::Upsert)
    }

    fn columns(&self) -> usize {
        self.columns.len()
    }

    fn encoder(&self) -> Result<Box<dyn BatchEncoder>> {
        let mut encoder = SummingEncoder::new(Arc::clone(&self.columns), Arc::clone(&self.buffers));
        if self.rejects.is_some() {
            return Ok(Box::new(RejectingEncoder::new(encoder)));
        }
        encoder.hints = Arc::clone(&self.hints);
        Ok(Box::new(encoder))
    }

    fn writer(&self, control: &Control<'_>) -> Result<Box<dyn UnitWriter + '_>> {
        let connection = self.connection(control)?;
        let (plan, parts, rejects) = (Arc::clone(&self.plan), self.parts.clone(), self.rejects.clone());
        Ok(Box::new(TableWriter::new(plan, parts, rejects, connection, control)?))
    }

    fn watch(&self, done: &AtomicBool, control: &Control<'_>) -> Option<ServerWaits> {
        if self.server.allows_one_connection() {
            return None;
        }
        // Without the closing quote, so that it also matches staging and part tables, whose names are longer.
        let copy = format!("COPY {}", self.table.quoted().trim_end_matches('"'));
        let logged = !self.plan.checkpoints.unlogged;
        let write_ahead = logged.then(|| WriteAhead::on(&self.control_connection));
        activity::watch(&self.postgres.server, &copy, write_ahead, done, control)
    }

    fn verify(&self, expected: &Tally, control: &Control<'_>) -> Result<Verification> {
        self.compare(expected, control)
    }

    fn can_verify(&self) -> bool {
        // Merged rows cannot be distinguished from those that were in the table before.
        let complete = self.state == LoadState::Complete;
        !(self.overlaid || complete && (self.retyped || self.postgres.mode == Mode::Upsert))
    }

    fn verifies_by_key(&self) -> bool {
        self.postgres.mode == Mode::Upsert
            && !matches!(self.postgres.on_conflict, OnConflict::Update | OnConflict::ReplaceFiles(_))
    }

    fn rejected(&self) -> u64 {
        self.rejects.as_ref().map_or_else(|| self.rejected_before.load(Relaxed), |rejects| rejects.count())
    }

    fn there_before(&self) -> u64 {
        self.there_before.load(Relaxed)
    }

    fn column_changes(&self) -> ColumnChanges {
        match self.state {
            LoadState::Complete => ColumnChanges::default(),
            LoadState::New | LoadState::Resumed => self.changes.clone(),
        }
    }

    fn changes_so_far(&self) -> ColumnChanges {
        match self.state {
            LoadState::Complete => ColumnChanges::default(),
            _ if self.changes.added.is_empty() => self.record.facts.columns.clone(),
            _ => self.changes.clone(),
        }
    }

    fn notes(&self) -> Vec<Note> {
        self.all_notes()
    }

    fn finish(&self, total: &Tally, control: &Control<'_>) -> Result<()> {
        self.complete(total, control)
    }
}
