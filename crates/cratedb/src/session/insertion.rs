//! The rows of one statement into one table.
//!
//! ```text
//! new table:      rows ─ tags ─▶ a table that gathers ─▶ counted by tag ─▶ its name      all rows or no table
//! existing table: rows ─ key or none ─▶ the table ─▶ counted row by row                  some rows, if it fails
//! ```
//!
//! A statement cannot be resumed, because its rows cannot be read a second time. So the insertion records no units.
//! A failed statement drops the new table that it was filling. If the process is killed first, the next statement
//! that creates the table drops the leftovers.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use sawmill_loader::{BatchEncoder, LoadOptions, Mode, Refusal, Session, Tally};
use sawmill_profile::format_counted;
use sawmill_source::{
    Control, Error, Facts, Kind, Known, Mapping, Read, Result, RowPlace, Source, SourceFile, Unit, UnitKey,
    UnitReader, counted_places,
};

use super::CrateSession;
use crate::connect::client::{Client, Cluster};
use crate::connect::sql::Sql;
use crate::encode::encoder::{CrateEncoder, EncodePlan};
use crate::options::Transport;
use crate::records::checkpoint::Checkpoints;
use crate::table::catalogue;
use crate::table::columns::{Key, Purpose};
use crate::table::names::CrateTable;
use crate::target::CrateDb;
use crate::write::durable;
use crate::write::writer::{CrateWriter, WriterPlan};

/// The prefix of the name under which a statement's rows are recorded while they gather.
const STATEMENT: &str = "rows of a statement";

/// Rows after which a writer begins a new unit: rows are numbered by 32 bits in it.
const UNIT_ROWS: u64 = 1 << 20;

/// An insertion under way, to which each partition of a query adds its rows.
pub struct Insertion {
    encode: Arc<EncodePlan>,
    writers: Arc<WriterPlan>,
    total: Mutex<Tally>,
}

/// A partition's connection to the cluster.
pub struct InsertedPartition {
    insertion: Arc<Insertion>,
    encoder: CrateEncoder,
    writer: CrateWriter,
    /// The unit under way, once it has begun.
    unit: Option<Unit>,
    number: u32,
    /// Rows of the batches before.
    rows: u64,
}

impl CrateDb {
    /// Inserts the rows that `work` sends, and returns the number of rows that the server has counted as inserted: in
    /// mode create into a new table, else into the columns of the table that have the names of the fields.
    ///
    /// A new table is filled under another name, each row exactly once, and renamed once the server has counted all rows.
    /// If the insertion fails, the table does not exist. In an existing table, rows are visible as soon as they arrive. If
    /// the columns include its primary key, the insertion skips rows that the table already has with the same values, so
    /// a failed statement can be run again. Without a primary key, no row is sent twice: the insertion ends at the first
    /// request that gets no answer. Either way the error says how many rows the server has counted, and whether there may
    /// be more.
    ///
    /// # Errors
    /// In mode create a table of this name, else none; fields that fit into no column, all in one error; rows that the
    /// server refuses; an error of `work`; no connection.
    pub fn insert(
        &self,
        schema: &SchemaRef,
        control: &Control<'_>,
        work: impl FnOnce(&Arc<Insertion>) -> Result<()>,
    ) -> Result<u64> {
        let mut crate_db = self.clone();
        crate_db.of_statement = true;
        // Only HTTP counts row by row.
        crate_db.options.transport = Transport::Http;
        let rows = StatementRows::new(schema);
        match self.mode {
            Mode::Create => crate_db.insert_new(&rows, control, work),
            _ => {
                crate_db.options.at_least_once = true;
                crate_db.insert_into(&rows, control, work)
            }
        }
    }

    /// The columns of the table that rows go to, in their order: name, and type as SQL writes it. Computed columns are
    /// left out.
    ///
    /// # Errors
    /// No connection, or no such table.
    pub fn columns_of_table(&self, control: &Control<'_>) -> Result<Vec<(String, String)>> {
        let table = self.table()?;
        let mut client = Client::new(&Cluster::new(&self.server, Duration::ZERO, 0)?);
        let columns = catalogue::columns(&mut client.on(control), &table)?;
        if columns.is_empty() {
            return Err(no_table(&table, client.place()));
        }
        let columns = columns.into_iter().filter(|column| !column.generated);
        Ok(columns.map(|column| (column.name, column.data_type.to_string())).collect())
    }

    fn insert_new(
        &self,
        rows: &StatementRows,
        control: &Control<'_>,
        work: impl FnOnce(&Arc<Insertion>) -> Result<()>,
    ) -> Result<u64> {
        let options = statement_options();
        self.check_name_is_free(control)?;
        let session = CrateSession::prepare(self, rows, &options, control).map_err(in_statement)?;
        let insertion = Insertion::new(&session.encode, &session.writers);
        let done = work(&insertion).and_then(|()| session.complete(&insertion.total(), control));
        done.map_err(|error| session.taken_back(&in_statement(error), control))
    }

    fn check_name_is_free(&self, control: &Control<'_>) -> Result<()> {
        let table = self.table()?;
        let mut client = Client::new(&Cluster::new(&self.server, Duration::ZERO, 0)?);
        match catalogue::exists(&mut client.on(control), &table)? {
            false => Ok(()),
            true => Err(Error::new(Kind::Exists, "there is a table or view of this name")
                .at(format!("table {table}, {}", client.place()))
                .advise("choose another name, or insert into it")),
        }
    }

    fn insert_into(
        &self,
        rows: &StatementRows,
        control: &Control<'_>,
        work: impl FnOnce(&Arc<Insertion>) -> Result<()>,
    ) -> Result<u64> {
        let (table, options) = (self.table()?, statement_options());
        let cluster = Cluster::new(&self.server, options.patience, options.retries)?;
        let mut client = Client::new(&cluster);
        let sql = &mut client.on(control);
        if !catalogue::exists(sql, &table)? {
            return Err(no_table(&table, sql.place()));
        }
        let planned = self.existing_plan(rows, &table, Purpose::Write, sql);
        let (plan, _) = planned.map_err(in_statement)?;
        cluster.table_is_known();
        let encode = Arc::new(self.encode_plan(rows, &options, &plan, (&table, false)));
        let checkpoints = Checkpoints::new(&self.checkpoint_schema);
        let writers = WriterPlan::of_table(&cluster, &table, (&plan, &encode), checkpoints);
        let writers = WriterPlan { of_statement: true, ..writers };
        let insertion = Insertion::new(&encode, &Arc::new(writers));
        let before = sql.count(&table)?;
        let done = work(&insertion).and_then(|()| insertion.complete(&table, before, sql));
        done.map_err(|error| insertion.left(&in_statement(error)))
    }
}

/// The end of an insertion into an existing table.
impl Insertion {
    /// Makes the rows durable and visible, and returns how many of them are new.
    fn complete(&self, table: &CrateTable, before: u64, sql: &mut Sql<'_>) -> Result<u64> {
        let writers = &self.writers;
        if durable::may_lose_rows(sql, table)? {
            durable::make_durable(sql, table)?;
        }
        let now = sql.count(table)?;
        let inserted = writers.inserted.load(Relaxed);
        Ok(match writers.before.is_counted() && writers.before.rows() == 0 {
            true => inserted,
            // Some keys existed, but this statement may have inserted them itself: a request may arrive twice.
            false => now.saturating_sub(before).min(self.total().rows).max(inserted),
        })
    }

    /// Adds to the error what the statement leaves behind, and how to repeat it.
    fn left(&self, error: &Error) -> Error {
        let writers = &self.writers;
        let (inserted, unanswered) = (writers.inserted.load(Relaxed), writers.unanswered.load(Relaxed));
        let more = match unanswered {
            0 => String::new(),
            _ => format!(
                ", and up to {} of requests that got no answer",
                format_counted(unanswered, "more row")
            ),
        };
        let rows = format_counted(inserted, "row");
        let in_doubt = writers.in_doubt.load(Relaxed);
        let there = match (inserted + unanswered, in_doubt) {
            (0, true) => "rows of the statement may be in the table".to_owned(),
            (_, true) => format!("at least {rows} of the statement are in the table"),
            (0, false) => "no row of the statement is in the table".to_owned(),
            (1, false) if unanswered == 0 => format!("{rows} of the statement is in the table"),
            (_, false) => format!("{rows} of the statement{more} are in the table"),
        };
        let again = match &writers.plan.key {
            _ if inserted + unanswered == 0 && !in_doubt => "run the same statement again",
            Key::Own(_) | Key::Row(_) => {
                "run the same statement again: it skips the rows that the table already has, by primary key"
            }
            Key::Tags(_) | Key::None => {
                "the columns include no primary key, so the same statement would insert these rows again: \
                 delete them first, or use a table with a primary key"
            }
        };
        advised_further(error, format!("{there}; {again}"))
    }
}

impl CrateSession<'_> {
    /// Compares the gathered rows with the sent ones, gives the table its name, and returns the number of its rows.
    fn complete(&self, total: &Tally, control: &Control<'_>) -> Result<u64> {
        let lacking = self.to_send_again(total, control)?;
        if !lacking.is_empty() {
            let what = "the server no longer has all rows that it had acknowledged";
            return Err(self.error(Kind::Mismatch, what).advise("run the statement again"));
        }
        self.finish(total, control)?;
        let (writers, mut client) = (&self.writers, Client::new(&self.cluster));
        writers.checkpoints.on(&mut client.on(control)).delete(&writers.load_id)?;
        Ok(self.counted().unwrap_or(total.rows))
    }

    /// Drops the gathered rows, and returns the error with a note on the table's state.
    fn taken_back(&self, error: &Error, control: &Control<'_>) -> Error {
        // A cancelled statement cleans up as well.
        let cancel = false.into();
        let control = Control::new(&cancel, control.phase());
        let left = match self.take_back(&control) {
            Ok(true) => "the table has all rows: the statement failed after the table was renamed".to_owned(),
            Ok(false) => "the table was not created, and no row of the statement was kept".to_owned(),
            Err(failed) => format!(
                "the table was not created; dropping {}, which holds the rows received so far, failed ({}): the next \
                 statement that creates the table drops it",
                self.written,
                failed.what()
            ),
        };
        advised_further(error, left)
    }

    /// Drops the tables in which rows gathered, and the record of the load. Whether the table has its name already.
    fn take_back(&self, control: &Control<'_>) -> Result<bool> {
        let mut client = Client::new(&Cluster::new(&self.crate_db.server, Duration::ZERO, 0)?);
        let sql = &mut client.on(control);
        self.writers.confirm_lease(sql)?;
        let gathered = [self.table.staging(), self.table.sealed()];
        let [staging, sealed] = &gathered;
        // If another program has created a table of this name since, that table lacks these rows.
        let [table, staging, sealed] = catalogue::which_exist(sql, [&self.table, staging, sealed])?;
        let is_placed = table && !staging && !sealed;
        for gathered in gathered {
            sql.drop_table(&gathered)?;
        }
        self.writers.checkpoints.on(sql).delete(&self.writers.load_id)?;
        Ok(is_placed)
    }
}

impl Insertion {
    fn new(encode: &Arc<EncodePlan>, writers: &Arc<WriterPlan>) -> Arc<Self> {
        Arc::new(Self {
            total: Mutex::new(Tally::empty(encode.plan.columns.len())),
            encode: Arc::clone(encode),
            writers: Arc::clone(writers),
        })
    }

    fn total(&self) -> Tally {
        self.total.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A connection for the rows of a partition, by its number.
    pub fn partition(self: &Arc<Self>, number: u32) -> InsertedPartition {
        InsertedPartition {
            encoder: CrateEncoder::new(Arc::clone(&self.encode)),
            writer: CrateWriter::new(Arc::clone(&self.writers)),
            insertion: Arc::clone(self),
            unit: None,
            number,
            rows: 0,
        }
    }
}

impl InsertedPartition {
    /// Encodes the rows, and sends each request that is full: 20,000 rows, or 8 MiB. Returns when the server has answered.
    ///
    /// # Errors
    /// A value that the column cannot hold, or a row that the server refuses, with its place in the partition; no
    /// connection.
    pub fn send(&mut self, batch: &RecordBatch, control: &Control<'_>) -> Result<()> {
        let unit = match self.unit {
            Some(unit) => unit,
            None => self.begin(),
        };
        let Self { encoder, writer, .. } = self;
        let mut emit = |block| writer.push(&unit, block, control);
        encoder.encode(batch, &mut emit).map_err(|refusal| match refusal {
            Refusal::Stopped(error) => error,
            Refusal::Value { row, column, what } => {
                let row = self.rows + row as u64 + 1;
                let place = format!(
                    "column {column:?}, table {}, partition {} of the query, row {row}",
                    self.insertion.writers.table.gathered_for(),
                    self.number
                );
                let advice = match what.contains("finer than a millisecond") {
                    true => "truncate it in the SELECT: date_trunc('millisecond', column)",
                    false => "convert the value or leave the row out in the SELECT",
                };
                Error::new(Kind::Value, without_option(&what)).at(place).advise(advice)
            }
        })?;
        self.rows += batch.num_rows() as u64;
        if self.rows - unit.key.first_row >= UNIT_ROWS { self.end_unit(control) } else { Ok(()) }
    }

    /// Sends the rest of the partition's rows.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn end(mut self, control: &Control<'_>) -> Result<()> {
        self.end_unit(control)
    }

    fn begin(&mut self) -> Unit {
        let key = UnitKey { file: self.number, row_group: 0, first_row: self.rows };
        let unit = Unit { key, rows: 0, bytes: 0 };
        self.writer.begin(&unit);
        self.encoder.begin_unit(&unit);
        self.unit = Some(unit);
        unit
    }

    fn end_unit(&mut self, control: &Control<'_>) -> Result<()> {
        let Some(unit) = self.unit.take() else { return Ok(()) };
        let Self { encoder, writer, insertion, .. } = self;
        let tally = encoder.end_unit(&mut |block| writer.push(&unit, block, control))?;
        writer.record(vec![(unit, tally.clone())], control)?;
        insertion.total.lock().unwrap_or_else(PoisonError::into_inner).add(&tally);
        Ok(())
    }
}

/// The error with more advice.
fn advised_further(error: &Error, more: String) -> Error {
    let advice = error.advice();
    error.clone().advise(if advice.is_empty() { more } else { format!("{advice}; {more}") })
}

/// The options of a load that statements have.
fn statement_options() -> LoadOptions {
    LoadOptions { batch_bytes: CrateDb::BATCH_BYTES, ..LoadOptions::default() }
}

fn no_table(table: &CrateTable, place: String) -> Error {
    Error::new(Kind::Schema, "the table does not exist")
        .at(format!("table {table}, {place}"))
        .advise("check its name, or create it")
}

/// The fault of a value, without the advice to use an option of the command, which statements do not have.
fn without_option(what: &str) -> &str {
    what.split_once("; choose --").map_or(what, |(what, _)| what)
}

/// Replaces the advice: a statement cannot be resumed.
fn in_statement(error: Error) -> Error {
    match error.kind() {
        Kind::Schema => Error::new(Kind::Schema, error.what().replace(": use --rename ", ": rename it, "))
            .at(error.place())
            .advise("rename, cast or leave out columns in the SELECT of the statement"),
        Kind::Busy => error.advise("wait until it has ended, and run the statement again"),
        Kind::Cancelled => error.advise(""),
        _ => error,
    }
}

/// The source of a statement as loads see it: columns, and no rows that could be read again.
struct StatementRows {
    schema: SchemaRef,
    files: [SourceFile; 1],
}

impl StatementRows {
    fn new(schema: &SchemaRef) -> Self {
        // Two statements are never the same load; the name identifies the load.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{STATEMENT} of process {} at {}", std::process::id(), now.as_nanos());
        let file =
            SourceFile { name, fingerprint: String::new(), stamp: None, rows: 0, bytes: 0, columns: None };
        Self { schema: Arc::clone(schema), files: [file] }
    }
}

/// The run of a statement, by which its tags begin: a number of 30 bits that hardly any other statement has.
pub(crate) fn statement_run() -> u64 {
    let unique = format!("{} {:?}", std::process::id(), SystemTime::now());
    (xxhash_rust::xxh3::xxh3_64(unique.as_bytes()) & 0x3fff_ffff) | 2
}

/// Whether the files of a recorded load are the rows of a statement.
pub(crate) fn is_statement(files: &[String]) -> bool {
    matches!(files, [name] if name.starts_with(STATEMENT))
}

impl Source for StatementRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    fn facts(&self) -> Facts {
        Facts { knows_rows: false, ..Facts::of_files(&self.files, &Mapping::of_columns(STATEMENT)) }
    }

    fn plan(&self, _unit_rows: u64) -> Vec<Vec<Unit>> {
        Vec::new()
    }

    fn known(&self, _file: u32, _column: usize) -> Result<Vec<Known>> {
        Ok(Vec::new())
    }

    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }

    fn locate(&self, _group: UnitKey, rows: &[u64], _named: bool) -> Result<Vec<RowPlace>> {
        Ok(counted_places(rows))
    }

    fn open(&self, _read: Read<'_>, _batch_rows: usize) -> Box<dyn UnitReader + '_> {
        Box::new(Nothing)
    }
}

/// The reader of a plan without units.
struct Nothing;

impl UnitReader for Nothing {
    fn start(&mut self, _unit: &Unit) -> Result<()> {
        Ok(())
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        Ok(None)
    }
}
