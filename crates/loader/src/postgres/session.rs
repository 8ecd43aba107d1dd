//! A load into a PostgreSQL table: found or made, written, checked, put in its place.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::catalogue::{current_schema, find};
use super::checkpoint::{Checkpoints, LoadRecord, load_id};
use super::connection::Connection;
use super::copy_binary::{Column, CopyEncoder};
use super::prepare::Preparing;
use super::read_back::{self, ReadBack};
use super::table_name::{TableName, quote};
use super::writer::{CopyWriter, WriterPlan};
use super::{Mode, Postgres, columns, made_types, upsert};
use crate::buffers::Buffers;
use crate::content_sum::Tally;
use crate::control::Control;
use crate::error::{Error, Kind, Result};
use crate::load::{LoadOptions, again};
use crate::source::{Source, UnitKey};
use crate::target::{BatchEncoder, Session, Standing, UnitWriter};
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

impl<'a> PostgresSession<'a> {
    pub(crate) fn prepare(
        postgres: &'a Postgres,
        source: &'a dyn Source,
        options: &'a LoadOptions,
        control: &Control<'_>,
    ) -> Result<Self> {
        // What the source cannot give is told without a server.
        let natural = match postgres.mode.makes_the_table() {
            true => Some(columns::natural(source.schema(), &postgres.table, postgres.nested)?),
            false => None,
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
            (Some(natural), _) => natural.columns,
            (None, Some(found)) => {
                if !matches!(found.kind.as_str(), "r" | "p") {
                    return Err(Error::new(Kind::Schema, "it is no table but a view or another relation")
                        .at(format!("{table}, {}", connection.place()))
                        .advise("append to the table behind it"));
                }
                let existing = columns::read(&connection, found.oid, control)?;
                let schema = match postgres.by_position {
                    false => Arc::clone(source.schema()),
                    true => columns::by_position(source.schema(), &existing, &table)?,
                };
                columns::matched(&schema, &existing, &table)?
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
        let mode = postgres.mode.name();
        let checkpoints = Checkpoints::new(&postgres.checkpoint_schema);
        let by_position = if postgres.by_position { "by position" } else { "" };
        let native = if postgres.makes_types() { "nested native" } else { "" };
        let mapping = source.mapping() + by_position + &postgres.key.join("\0") + native;
        let id = match &postgres.part_of {
            Some(id) => id.clone(),
            None => load_id(source.files(), &mapping, &table.to_string(), mode),
        };
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
            found: None,
            id: &id,
        };
        let oid = found.as_ref().map_or(0, |found| found.oid);
        let (record, standing) = match postgres.mode {
            Mode::Create | Mode::Replace => preparing.create()?,
            Mode::Append | Mode::Truncate => preparing.append(oid)?,
            Mode::Upsert => preparing.upsert(oid)?,
        };
        let done = match standing {
            Standing::New => HashMap::new(),
            _ => checkpoints.units(&connection, &id, control)?,
        };
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
                columns::matched(source.schema(), &existing, &written)?
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
        let mut verification =
            Verification { columns, source: expected.clone(), target, differing: Vec::new() };
        // Of a table that holds other rows, too, nobody knows which they are.
        if !verification.matches() && self.record.before.as_ref().is_none_or(|before| before.rows == 0) {
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

    fn can_verify(&self) -> bool {
        // What was merged stands among rows that were there before.
        !(self.postgres.mode == Mode::Upsert && self.standing == Standing::Complete)
    }

    fn notes(&self) -> Vec<String> {
        match self.can_verify() {
            true => Vec::new(),
            false => vec!["these rows were merged before; they are compared before that alone".to_owned()],
        }
    }

    fn finish(&self, total: &Tally, control: &Control<'_>) -> Result<()> {
        let checkpoints = &self.plan.checkpoints;
        let id = &self.plan.load_id;
        self.with_connection(control, |connection| {
            // After a lost connection the commit may have happened.
            if checkpoints.find(connection, id, control)?.is_some_and(|record| record.complete) {
                return Ok(());
            }
            if self.postgres.part_of.is_some() {
                return checkpoints.complete(connection, id, total, control);
            }
            connection.batch(control, "BEGIN")?;
            if self.postgres.mode == Mode::Upsert {
                upsert::merge(
                    connection,
                    &self.written,
                    &self.table,
                    &self.columns,
                    &self.postgres.key,
                    control,
                )?;
            }
            let old = match self.postgres.mode {
                Mode::Replace => find(connection, &self.table, control)?,
                _ => None,
            };
            if let Some(old) = old {
                made_types::drop_table(connection, &self.table, old.oid, control)?;
            }
            if self.postgres.mode.makes_the_table() {
                let (schema, nested) = (self.source.schema(), self.postgres.nested);
                let from = columns::natural(schema, &self.written, nested)?.types;
                let to = columns::natural(schema, &self.table, nested)?.types;
                made_types::rename(connection, &from, &to, control)?;
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
