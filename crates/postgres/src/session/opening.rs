//! How a load begins: what fits is decided, the table is found or made, and the records say what is in already.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex};

use sawmill_loader::{LoadOptions, Mode, Standing};
use sawmill_pgcopy::Buffers;
use sawmill_pgwire::{Connection, KnownServer, refuse_pooler};
use sawmill_source::{Control, Error, Kind, Result, Source};

use super::PostgresSession;
use crate::encode::canonical_row::CanonicalRow;
use crate::partition::rows::PartitionedRows;
use crate::records::checkpoint::Checkpoints;
use crate::rejected::file;
use crate::rejected::rejects::Rejecting;
use crate::session::prepare::Preparing;
use crate::table::catalogue::{current_schema, find};
use crate::table::columns;
use crate::table::columns::NewTable;
use crate::table::part_tables;
use crate::target::Postgres;
use crate::write::part_writer::PartPlan;
use crate::write::upsert;
use crate::write::writer::WriterPlan;

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
        let checkpoints = Checkpoints::new(&postgres.checkpoint_schema)?;
        let mut connection = Connection::open(&postgres.server, control)?;
        refuse_pooler(&connection, &postgres.server, control)?;
        if rehearse {
            connection.rehearse(control)?;
        }
        let server = KnownServer::of(&postgres.server, &connection, control)?;
        if let Some(several) = &postgres.part_of {
            several.server.check(&connection, control)?;
        }
        let found = find(&connection, &postgres.table, control)?;
        let schema = match (&found, postgres.table.schema()) {
            (Some(found), _) => found.schema.clone(),
            (None, Some(schema)) => schema.to_owned(),
            (None, None) => current_schema(&connection, control)?,
        };
        let table = postgres.table.within(&schema);
        // Of one of several tables it was looked at for all of them.
        if let Some(rejects) = postgres.rejects.as_ref().filter(|_| postgres.part_of.is_none()) {
            file::check(&rejects.path, postgres.rejects_of(source, &table))?;
        }
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
            server: &server,
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
            canonical: CanonicalRow::of(&columns, false),
            unit_rows: record.unit_rows,
            files: source.files().iter().map(|file| file.name.clone()).collect(),
        };
        let parts = match staged && standing != Standing::Complete {
            false => None,
            true => {
                if plan.checkpoints.of_unlogged_table() {
                    part_tables::drop_emptied(&connection, &plan.checkpoints, &table, control)?;
                }
                let made = part_tables::of_load(&connection, &plan.checkpoints, &plan.load_id, control)?;
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
                    next: AtomicU32::new(part_tables::next_number(&made).max(
                        postgres.partitions.as_ref().map_or(1, |partitions| partitions.count() as u32 + 1),
                    )),
                }))
            }
        };
        let session = Self {
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
            server,
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
            at_the_end: Mutex::new(None),
            found_notes,
            overlaid,
        };
        if !rehearse {
            session.write_missing_rejects(control)?;
        }
        Ok(session)
    }
}
