//! A load into a PostgreSQL table: found or made, written, checked, put in its place.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::checkpoint::{Checkpoints, LoadRecord, load_id};
use super::connection::Connection;
use super::copy_binary::{Column, CopyEncoder, Refused, Stop};
use super::read_back::{self, ReadBack};
use super::table_name::{TableName, quote};
use super::writer::{CopyWriter, WriterPlan};
use super::{Mode, Postgres, columns};
use crate::buffers::Buffers;
use crate::content_sum::Tally;
use crate::control::Control;
use crate::error::{Error, Kind, Result};
use crate::load::{LoadOptions, again};
use crate::source::{Source, UnitKey};
use crate::target::{BatchEncoder, Block, Refusal, Session, Standing, UnitWriter};
use crate::verify::Verification;

/// An open load.
pub(crate) struct PostgresSession<'a> {
    postgres: &'a Postgres,
    source: &'a dyn Source,
    options: &'a LoadOptions,
    /// Holds the lock of the load; also does everything that is not copying.
    control_connection: Mutex<Connection>,
    /// Where the rows will be seen.
    table: TableName,
    /// Where they are written.
    written: TableName,
    columns: Arc<Vec<Column>>,
    plan: Arc<WriterPlan>,
    buffers: Arc<Buffers>,
    record: LoadRecord,
    standing: Standing,
    done: HashMap<UnitKey, Tally>,
}

/// A table as the catalogue has it.
pub(super) struct Found {
    pub oid: u32,
    pub schema: String,
    /// `pg_class.relkind`.
    kind: String,
}

pub(super) fn find(
    connection: &Connection,
    table: &TableName,
    control: &Control<'_>,
) -> Result<Option<Found>> {
    let rows = connection.query(
        control,
        "SELECT c.oid, n.nspname::text, c.relkind::text FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)",
        &[&table.quoted()],
    )?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(Found {
        oid: connection.get(row, 0)?,
        schema: connection.get(row, 1)?,
        kind: connection.get(row, 2)?,
    }))
}

impl<'a> PostgresSession<'a> {
    pub(crate) fn prepare(
        postgres: &'a Postgres,
        source: &'a dyn Source,
        options: &'a LoadOptions,
        control: &Control<'_>,
    ) -> Result<Self> {
        // What the source cannot give is told without a server.
        let natural = match postgres.mode {
            Mode::Create => Some(columns::natural(source.schema(), &postgres.table)?),
            Mode::Append => None,
        };
        let connection = Connection::open(&postgres.server, control)?;
        let found = find(&connection, &postgres.table, control)?;
        let schema = match (&found, postgres.table.schema()) {
            (Some(found), _) => found.schema.clone(),
            (None, Some(schema)) => schema.to_owned(),
            (None, None) => current_schema(&connection, control)?,
        };
        let table = postgres.table.within(&schema);
        let columns = match (natural, &found) {
            (Some(natural), _) => natural,
            (None, Some(found)) => {
                if !matches!(found.kind.as_str(), "r" | "p") {
                    return Err(Error::new(Kind::Schema, "it is no table but a view or another relation")
                        .at(format!("{table}, {}", connection.place()))
                        .advise("append to the table behind it"));
                }
                columns::matched(source.schema(), &columns::read(&connection, found.oid, control)?, &table)?
            }
            (None, None) => {
                return Err(Error::new(Kind::Schema, "there is no such table to append to")
                    .at(format!("table {table}, {}", connection.place()))
                    .advise("create it, or load in mode create, which creates it"));
            }
        };
        let mode = postgres.mode.name();
        let checkpoints = Checkpoints::new(&postgres.checkpoint_schema);
        let id = load_id(source.files(), &table.to_string(), mode);
        checkpoints.lock(&connection, &id, control)?;
        checkpoints.create(&connection, control)?;
        let mut preparing = Preparing {
            postgres,
            source,
            options,
            control,
            connection: &connection,
            checkpoints: &checkpoints,
            table: &table,
            columns: &columns,
            id: &id,
        };
        let (record, standing) = match postgres.mode {
            Mode::Create => preparing.create()?,
            Mode::Append => preparing.append(found.map_or(0, |found| found.oid))?,
        };
        let done = match standing {
            Standing::New => HashMap::new(),
            _ => checkpoints.units(&connection, &id, control)?,
        };
        let written = match (postgres.mode, standing) {
            (Mode::Create, Standing::New | Standing::Resumed) => table.staging(),
            _ => table.clone(),
        };
        let plan = WriterPlan {
            load_id: id,
            checkpoints,
            copy: format!(
                "COPY {} ({}) FROM STDIN (FORMAT binary)",
                written.quoted(),
                columns::list(&columns)
            ),
        };
        Ok(Self {
            postgres,
            source,
            options,
            control_connection: Mutex::new(connection),
            table,
            written,
            columns,
            plan: Arc::new(plan),
            buffers: Buffers::new(options.batch_bytes),
            record,
            standing,
            done,
        })
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
                    if let Ok(opened) = Connection::open(&self.postgres.server, control) {
                        self.plan.checkpoints.lock(&opened, &self.plan.load_id, control)?;
                        *connection = opened;
                    }
                }
                other => return other,
            }
        }
    }
}

pub(super) fn current_schema(connection: &Connection, control: &Control<'_>) -> Result<String> {
    let rows = connection.query(control, "SELECT current_schema()::text", &[])?;
    let schema: Option<String> = rows.first().map_or(Ok(None), |row| connection.get(row, 0))?;
    schema.ok_or_else(|| {
        Error::new(Kind::Config, "the search path names no schema that exists")
            .at(connection.place())
            .advise("name the table's schema")
    })
}

/// The decision between new, resumed and complete.
struct Preparing<'p, 'a> {
    postgres: &'a Postgres,
    source: &'a dyn Source,
    options: &'a LoadOptions,
    control: &'p Control<'p>,
    connection: &'p Connection,
    checkpoints: &'p Checkpoints,
    table: &'p TableName,
    columns: &'p [Column],
    id: &'p str,
}

impl Preparing<'_, '_> {
    fn create(&mut self) -> Result<(LoadRecord, Standing)> {
        let staging = self.table.staging();
        let record = self.checkpoints.find(self.connection, self.id, self.control)?;
        let table = find(self.connection, self.table, self.control)?;
        let gathered = find(self.connection, &staging, self.control)?;
        match (record, table) {
            (Some(record), Some(found)) if record.complete && record.table_oid == found.oid => {
                let changed = record.changed_files(self.source.files());
                match changed.is_empty() {
                    true => Ok((record, Standing::Complete)),
                    false => Err(Error::new(
                        Kind::Exists,
                        format!("the table exists, loaded from another content of {}", changed.join(", ")),
                    )
                    .at(self.place())
                    .advise("drop the table to load it afresh, or load into another one")),
                }
            }
            (_, Some(found)) => Err(self.exists(&found)?),
            (Some(record), None) if !record.complete => match gathered {
                Some(gathered) if gathered.oid == record.table_oid => {
                    self.refuse_changed(&record)?;
                    Ok((record, Standing::Resumed))
                }
                _ => self.start(gathered.as_ref(), &staging),
            },
            (_, None) => self.start(gathered.as_ref(), &staging),
        }
    }

    /// A new table out of sight, and the load's record, in one transaction.
    fn start(&mut self, gathered: Option<&Found>, staging: &TableName) -> Result<(LoadRecord, Standing)> {
        if gathered.is_some() {
            return Err(Error::new(
                Kind::Exists,
                format!("another load into this table is not finished: {staging} is there"),
            )
            .at(self.place())
            .advise("finish it with the files it began with, or forget it"));
        }
        let connection = self.connection;
        let create = columns::create_table(staging, self.columns, self.source.schema());
        connection.batch(self.control, &format!("BEGIN; {create}"))?;
        let Some(found) = find(connection, staging, self.control)? else {
            return Err(
                Error::new(Kind::Server, "the table that was just created is not there").at(self.place())
            );
        };
        let record = self.record(found.oid, None);
        self.checkpoints.delete(connection, self.id, self.control)?;
        self.write_record(&record)?;
        connection.batch(self.control, "COMMIT")?;
        Ok((record, Standing::New))
    }

    fn append(&mut self, oid: u32) -> Result<(LoadRecord, Standing)> {
        let record = self.checkpoints.find(self.connection, self.id, self.control)?;
        if let Some(record) = record.filter(|record| record.table_oid == oid) {
            match (record.complete, record.changed_files(self.source.files()).is_empty()) {
                (true, true) => return Ok((record, Standing::Complete)),
                // Another content under the same name, after the first was loaded, is another load.
                (true, false) => {}
                (false, _) => {
                    self.refuse_changed(&record)?;
                    return Ok((record, Standing::Resumed));
                }
            }
        }
        let before = match self.options.verify {
            false => None,
            true => {
                let read = ReadBack {
                    server: &self.postgres.server,
                    table: self.table,
                    columns: self.columns,
                    degree: self.options.degree,
                    each_column: false,
                };
                Some(read.run(self.control)?.whole)
            }
        };
        let record = self.record(oid, before);
        self.connection.batch(self.control, "BEGIN")?;
        self.checkpoints.delete(self.connection, self.id, self.control)?;
        self.write_record(&record)?;
        self.connection.batch(self.control, "COMMIT")?;
        Ok((record, Standing::New))
    }

    fn record(&self, table_oid: u32, before: Option<Tally>) -> LoadRecord {
        let files = self.source.files();
        LoadRecord {
            id: self.id.to_owned(),
            table_oid,
            unit_rows: self.options.unit_rows.max(1),
            files: files.iter().map(|file| file.name.clone()).collect(),
            fingerprints: files.iter().map(|file| file.fingerprint.clone()).collect(),
            complete: false,
            before,
        }
    }

    fn write_record(&self, record: &LoadRecord) -> Result<()> {
        let (target, mode) = (self.table.to_string(), self.postgres.mode.name());
        self.checkpoints.begin(self.connection, record, &target, mode, self.control)
    }

    fn refuse_changed(&self, record: &LoadRecord) -> Result<()> {
        let changed = record.changed_files(self.source.files());
        match changed.is_empty() {
            true => Ok(()),
            false => Err(Error::new(
                Kind::Changed,
                format!("a source file has changed since the load began: {}", changed.join(", ")),
            )
            .at(self.place())
            .advise("bring back the file as it was to finish the load, or forget the load and start afresh")),
        }
    }

    fn exists(&self, found: &Found) -> Result<Error> {
        let existing = columns::read(self.connection, found.oid, self.control)?;
        let differences = columns::differences(self.columns, &existing);
        let what = match differences.is_empty() {
            true => "the table exists already, with the same columns".to_owned(),
            false => format!("the table exists already, and differs: {}", differences.join("; ")),
        };
        Ok(Error::new(Kind::Exists, what)
            .at(self.place())
            .advise("load in mode append to add to it, choose another table, or drop it"))
    }

    fn place(&self) -> String {
        format!("table {}, {}", self.table, self.connection.place())
    }
}

impl Session for PostgresSession<'_> {
    fn standing(&self) -> Standing {
        self.standing
    }

    fn unit_rows(&self) -> u64 {
        self.record.unit_rows
    }

    fn done(&self) -> &HashMap<UnitKey, Tally> {
        &self.done
    }

    fn columns(&self) -> usize {
        self.columns.len()
    }

    fn encoder(&self) -> Result<Box<dyn BatchEncoder>> {
        Ok(Box::new(CopyEncoder::new(Arc::clone(&self.columns), Arc::clone(&self.buffers))))
    }

    fn writer(&self, control: &Control<'_>) -> Result<Box<dyn UnitWriter>> {
        let connection = Connection::open(&self.postgres.server, control)?;
        Ok(Box::new(CopyWriter::new(Arc::clone(&self.plan), connection, control)?))
    }

    fn verify(&self, expected: &Tally, control: &Control<'_>) -> Result<Verification> {
        let read = ReadBack {
            server: &self.postgres.server,
            table: &self.written,
            columns: &self.columns,
            degree: self.options.degree,
            each_column: false,
        };
        let retries = self.options.retries;
        let mut target = again(retries, control, || read.run(control))?.whole;
        match (&self.record.before, self.postgres.mode) {
            (Some(before), _) => target = target.minus(before),
            (None, Mode::Create) => {}
            (None, Mode::Append) => {
                return Err(Error::new(
                    Kind::Mismatch,
                    "cannot be verified: what the table held before the load was not summed up",
                )
                .at(format!("table {}", self.table))
                .advise("ask for verification from the first run of an append on"));
            }
        }
        let columns = self.columns.iter().map(|column| column.name.clone()).collect();
        let mut verification =
            Verification { columns, source: expected.clone(), target, differing: Vec::new() };
        if !verification.matches() && self.record.before.is_none() {
            let source = read_back::encode_source(
                self.source,
                &self.columns,
                self.options,
                self.record.unit_rows,
                true,
                control,
            )?;
            let read = ReadBack { each_column: true, ..read };
            let target = again(retries, control, || read.run(control))?;
            verification.differing = source.differing(&target, &self.columns);
        }
        verification.into_result(&format!("table {}, {}", self.table, self.postgres.server))
    }

    fn finish(&self, total: &Tally, control: &Control<'_>) -> Result<()> {
        let checkpoints = &self.plan.checkpoints;
        let id = &self.plan.load_id;
        self.with_connection(control, |connection| {
            // After a lost connection the commit may have happened.
            if checkpoints.find(connection, id, control)?.is_some_and(|record| record.complete) {
                return Ok(());
            }
            connection.batch(control, "BEGIN")?;
            if self.postgres.mode == Mode::Create {
                connection.batch(
                    control,
                    &format!("ALTER TABLE {} RENAME TO {}", self.written.quoted(), quote(self.table.name())),
                )?;
            }
            checkpoints.complete(connection, id, total, control)?;
            connection.batch(control, "COMMIT")
        })
    }
}

impl BatchEncoder for CopyEncoder {
    fn encode(
        &mut self,
        batch: &arrow_array::RecordBatch,
        emit: &mut dyn FnMut(Block) -> Result<()>,
    ) -> Result<(), Refusal> {
        let mut emit = |bytes, rows| emit(Block { bytes, rows });
        self.batch(batch, &mut emit).map_err(|stop| match stop {
            Stop::Refused(Refused { row, column, what }) => Refusal::Value { row, column, what },
            Stop::Emit(error) => Refusal::Stopped(error),
        })
    }

    fn end_unit(&mut self, emit: &mut dyn FnMut(Block) -> Result<()>) -> Result<Tally> {
        let mut emit = |bytes, rows| emit(Block { bytes, rows });
        match self.flush(&mut emit) {
            Ok(()) => Ok(self.take_tally()),
            Err(Stop::Emit(error)) => Err(error),
            Err(Stop::Refused(refused)) => Err(Error::new(Kind::Value, refused.what)),
        }
    }
}
