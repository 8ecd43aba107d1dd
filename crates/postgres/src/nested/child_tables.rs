//! A nested source as several tables that refer to each other: loaded one after the other into staging
//! tables, and put in place together.
//!
//! Each table is a separate load of the same source ([`FlatRows`]), with its own units, records and staging
//! table, as in mode create. When all are complete, one transaction creates the requested keys and gives all
//! tables their names. So the same call after any failure loads the missing rows, and the tables become
//! visible together.

mod in_place;

use std::sync::Arc;

use sawmill_loader::{LoadOptions, LoadReport, Mode, Note, Share, TableName, Verification, load, load_id};
use sawmill_pgcopy::Enums;
use sawmill_pgwire::{Connection, KnownServer, refuse_pooler};
use sawmill_source::{Control, Error, Kind, Result, Source};
use serde::Serialize;

use self::in_place::{foreign_key, key_name, reference_name};
use crate::Nested;
use crate::nested::flat_tables::{FlatRows, FlatTable, RecordNumbers, flat_tables};
use crate::records::checkpoint::{Checkpoints, Records};
use crate::session::rehearsal::Rehearsal;
use crate::table::catalogue::{Link, current_schema, find};
use crate::table::{columns, replaced};
use crate::target::{Postgres, Strategy};
use crate::verify::compare::{Compared, compare};

/// The tables that a nested source becomes.
pub struct PostgresTables<'a> {
    source: &'a dyn Source,
    postgres: Postgres,
    foreign_keys: bool,
    tables: Vec<FlatTable>,
    records: Arc<RecordNumbers>,
}

/// The facts about the whole that the load of one table needs.
#[derive(Clone, Debug)]
pub(crate) struct OneOfSeveral {
    /// Its ID.
    pub id: String,
    pub records: Arc<RecordNumbers>,
    /// The server of the whole load.
    pub server: Arc<KnownServer>,
}

/// The result for one of the tables.
#[derive(Clone, Debug, Serialize)]
pub struct OfTable<T> {
    /// The table's name.
    pub table: String,
    /// The result.
    #[serde(flatten)]
    pub result: T,
}

impl<'a> PostgresTables<'a> {
    /// The tables of `source`. `postgres` names the table of the rows themselves. Tables of lists are named
    /// after it and the fields that lead to them. With `foreign_keys` each table gets a primary key, and each
    /// table of lists also a foreign key.
    ///
    /// # Errors
    /// A mode other than create and replace; a file of rejected rows; fields that would become tables or columns
    /// of the same name.
    pub fn new(source: &'a dyn Source, postgres: Postgres, foreign_keys: bool) -> Result<Self> {
        let refused = |what: &str, advice: &str| {
            Err(Error::new(Kind::Config, what).at(format!("table {}", postgres.table)).advise(advice))
        };
        if !postgres.mode.makes_the_table() {
            return refused(
                &format!("mode {} cannot load nested values as tables of their own", postgres.mode.name()),
                "load into new tables (--mode create or replace), and insert from those with SQL",
            );
        }
        if postgres.kind != postgres.kind.of_parts() || postgres.strategy == Strategy::Staged {
            return refused(
                "keys, indexes and the staged strategy cannot be chosen for several tables at once",
                "leave these options out; --foreign-keys creates keys",
            );
        }
        if postgres.partitions.is_some() {
            let advice = "leave --partition-by out, or load nested values as jsonb";
            return refused("several tables cannot be partitioned at once", advice);
        }
        if postgres.rejects.is_some() {
            return refused(
                "tables of nested values cannot leave out rows with --rejects",
                "load nested values as jsonb, or correct the rows in the source and leave the option out",
            );
        }
        if postgres.values.enums == Enums::Enum {
            let advice = "load them as text (--enums text), or load nested values as jsonb";
            return refused("tables of nested values cannot have enumerations", advice);
        }
        let tables = flat_tables(source.schema())?;
        let records = Arc::new(RecordNumbers::new(source));
        Ok(Self { source, postgres: postgres.nested(Nested::Jsonb), foreign_keys, tables, records })
    }

    /// The tables' names. The first one holds the rows themselves.
    pub fn names(&self) -> Vec<TableName> {
        self.names_of(&self.postgres.table)
    }

    fn names_of(&self, rows: &TableName) -> Vec<TableName> {
        let below = |table: &FlatTable| match table.path.is_empty() {
            true => rows.clone(),
            false => rows.below(&table.path.join("_")),
        };
        self.tables.iter().map(below).collect()
    }

    /// The statements that create the tables.
    ///
    /// # Errors
    /// Columns that have no type or no valid name in PostgreSQL.
    pub fn ddl(&self, control: &Control<'_>) -> Result<String> {
        let names = self.names();
        let mut statements = Vec::new();
        for (table, name) in self.tables.iter().zip(&names) {
            let target = Postgres { table: name.clone(), ..self.postgres.clone() };
            statements.push(target.ddl(&self.rows(table), control)?);
        }
        if self.foreign_keys {
            for (table, name) in self.tables.iter().zip(&names) {
                statements.push(self.primary_key(table, name, &key_name(name)));
            }
            let references = self.references().map(|(child, parent)| {
                foreign_key(
                    &self.tables[parent],
                    &names[child],
                    &names[parent],
                    &reference_name(&names[child]),
                )
            });
            statements.extend(references);
        }
        Ok(statements.join(";\n"))
    }

    /// Loads all tables, exactly once, and puts them in place. Calls `next` before it loads each table.
    ///
    /// # Errors
    /// As [`load`] for each table; errors of the server when it creates the keys.
    pub fn load(
        &self,
        options: &LoadOptions,
        control: &Control<'_>,
        next: &mut dyn FnMut(&TableName),
    ) -> Result<Vec<OfTable<LoadReport>>> {
        if options.share != Share::Whole {
            let what = "tables of nested values are loaded as a whole, not in parts";
            return Err(Error::new(Kind::Config, what)
                .at(format!("table {}", self.postgres.table))
                .advise("load nested values as jsonb or native, or leave --part out"));
        }
        self.load_and_place(options, control, next).map_err(with_own_advice)
    }

    fn load_and_place(
        &self,
        options: &LoadOptions,
        control: &Control<'_>,
        next: &mut dyn FnMut(&TableName),
    ) -> Result<Vec<OfTable<LoadReport>>> {
        // The connection holds the lock until all tables are in place, so a second run cannot finish this
        // load.
        let (connection, (server, targets)) = self.postgres.retried(options.retries, control, || {
            let connection = Connection::open(&self.postgres.server, control)?;
            let link = Link::new(&connection, control);
            refuse_pooler(&connection, &self.postgres.server, control)?;
            let begun = self.begin(link)?;
            Ok((connection, begun))
        })?;
        let mut reports = self.load_targets(&targets, options, control, next)?;
        let notes = self.put_in_place(&server, &targets, &mut reports, options, control)?;
        reports
            .iter_mut()
            .zip(notes)
            .for_each(|(report, notes)| report.notes.extend(notes.into_iter().map(Note::from)));
        if let Some(first) = reports.first_mut() {
            let news =
                server.changes().into_iter().map(Note::from).filter(|change| !first.notes.contains(change));
            let news: Vec<Note> = news.collect();
            first.notes.extend(news);
        }
        drop(connection);
        Ok(targets.iter().zip(reports).map(|(target, report)| of_table(target, report)).collect())
    }

    /// Loads each of the tables into its staging table.
    fn load_targets(
        &self,
        targets: &[Postgres],
        options: &LoadOptions,
        control: &Control<'_>,
        next: &mut dyn FnMut(&TableName),
    ) -> Result<Vec<LoadReport>> {
        let pairs = self.tables.iter().zip(targets);
        pairs
            .map(|(table, target)| {
                next(&target.table);
                load(&self.rows(table), target, options, control)
            })
            .collect()
    }

    /// Puts the tables in place. Units that the server has confirmed and lost are loaded again first.
    fn put_in_place(
        &self,
        server: &KnownServer,
        targets: &[Postgres],
        reports: &mut [LoadReport],
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<Vec<Vec<String>>> {
        for _ in 0..options.retries {
            match self.place(server, targets, reports, options, control) {
                Err(error) if error.kind() == Kind::Changed => {}
                other => return other,
            }
            let again = self.load_targets(targets, options, control, &mut |_| {})?;
            reports.iter_mut().zip(again).for_each(|(report, again)| report.sent_again(again));
        }
        self.place(server, targets, reports, options, control)
    }

    /// Does everything that a load does before the first row of each table, and rolls it back.
    ///
    /// # Errors
    /// As a load's before its first row.
    pub fn rehearse(&self, options: &LoadOptions, control: &Control<'_>) -> Result<Vec<OfTable<Rehearsal>>> {
        let targets = {
            let mut connection = Connection::open(&self.postgres.server, control)?;
            refuse_pooler(&connection, &self.postgres.server, control)?;
            connection.rehearse(control)?;
            self.begin(Link::new(&connection, control))?.1
        };
        let pairs = self.tables.iter().zip(&targets);
        pairs
            .map(|(table, target)| {
                Ok(of_table(target, target.rehearse(&self.rows(table), options, control)?))
            })
            .collect()
    }

    /// The tables as targets of separate loads, after all checks. Afterwards the connection holds the lock of
    /// the whole load.
    fn begin(&self, link: Link<'_>) -> Result<(Arc<KnownServer>, Vec<Postgres>)> {
        // Rejects columns that cannot be represented before the first table is loaded.
        self.ddl(link.control)?;
        let server = Arc::new(KnownServer::new(&self.postgres.server, link.connection, link.control)?);
        server.refuse_more_than_one(
            3,
            "allow the role more connections, or load lists in columns of one table (--nested jsonb or native)",
        )?;
        let checkpoints = self.checkpoints()?;
        let rows = match self.postgres.table.schema() {
            Some(_) => self.postgres.table.clone(),
            None => match find(link, &self.postgres.table)? {
                Some(found) => self.postgres.table.within(&found.schema),
                None => self.postgres.table.within(&current_schema(link)?),
            },
        };
        let names = self.names_of(&rows);
        let mut mapping = self.source.facts().mapping.to_text() + "nested tables";
        if !self.postgres.kind.is_plain() {
            mapping += &format!("{:?}", self.postgres.kind);
        }
        let id = load_id(self.source.files(), &mapping, &rows.to_string(), self.postgres.mode.name());
        let records = checkpoints.on(link);
        records.lock(&id)?;
        self.refuse_existing(&records, &id, &names)?;
        let pairs = self.tables.iter().zip(&names);
        let targets = pairs.map(|(table, name)| self.target(table, name, &id, &server)).collect();
        Ok((server, targets))
    }

    /// The number of the source's records; each table is made from all of them.
    pub fn records(&self) -> u64 {
        self.source.rows()
    }

    /// The records of the loads of these tables.
    fn checkpoints(&self) -> Result<Checkpoints> {
        let checkpoints = Checkpoints::new(&self.postgres.checkpoint_schema)?;
        Ok(checkpoints.of_unlogged(self.postgres.kind.unlogged))
    }

    /// The rows of one of the tables.
    fn rows<'b>(&'b self, table: &'b FlatTable) -> FlatRows<'b> {
        FlatRows::new(self.source, table, &self.records)
    }

    /// One of the tables as a target, for a load that belongs to the load `id`.
    fn target(&self, table: &FlatTable, name: &TableName, id: &str, server: &Arc<KnownServer>) -> Postgres {
        let several = OneOfSeveral {
            id: table_load_id(id, table),
            records: Arc::clone(&self.records),
            server: Arc::clone(server),
        };
        Postgres { table: name.clone(), several: Some(several), ..self.postgres.clone() }
    }

    /// In mode create, refuses an existing table that this load has not finished. In mode replace, refuses a
    /// table that another object depends on.
    fn refuse_existing(&self, records: &Records<'_>, id: &str, names: &[TableName]) -> Result<()> {
        let link = records.link;
        if self.postgres.mode == Mode::Replace {
            // Tables of lists that the source no longer has are replaced with the others.
            let stale = self.stale(link, &names.iter().collect::<Vec<_>>())?;
            let mut replaced: Vec<u32> = stale.into_iter().map(|(oid, _)| oid).collect();
            for (table, name) in self.tables.iter().zip(names) {
                let Some(found) = find(link, name)? else { continue };
                // The user names the first table alone.
                if *name != self.postgres.table {
                    self.refuse_foreign(records, table, name, found.oid)?;
                }
                replaced.push(found.oid);
            }
            let refused = replaced::refuse_dependents(link, &self.postgres.table, &replaced);
            return refused.map_err(|error| error.advise("drop these first"));
        }
        records.create()?;
        let mut taken = Vec::new();
        for (table, name) in self.tables.iter().zip(names) {
            let Some(found) = find(link, name)? else { continue };
            let record = records.find(&table_load_id(id, table))?;
            if record.is_none_or(|record| !record.complete || record.table_oid != found.oid) {
                taken.push(name.to_string());
            }
        }
        match taken.is_empty() {
            true => Ok(()),
            false => Err(Error::new(Kind::Exists, format!("tables already exist: {}", taken.join(", ")))
                .at(link.place())
                .advise("load in mode replace, choose another name, or drop them")),
        }
    }

    /// Refuses to replace a table of a list's name that no load on record has made, unless it has the list's columns.
    fn refuse_foreign(
        &self,
        records: &Records<'_>,
        table: &FlatTable,
        name: &TableName,
        oid: u32,
    ) -> Result<()> {
        let (rows, existing) = (self.rows(table), columns::read(records.link, oid)?);
        let is_alike = existing.len() == rows.schema().fields().len()
            && existing.iter().all(|column| rows.schema().index_of(&column.name).is_ok());
        if is_alike || records.exist()? && !records.loads("table_oid = $1", &[&i64::from(oid)])?.is_empty() {
            return Ok(());
        }
        let what = "the table of a list has the name of a table that Sawmill has not made";
        Err(Error::new(Kind::Exists, what)
            .at(format!("table {name}, {}", records.link.place()))
            .advise("rename or drop that table, or load under another name"))
    }

    /// Compares each of the tables with the source; see [`verify`](crate::verify::compare::verify()).
    ///
    /// # Errors
    /// As [`verify`](crate::verify::compare::verify()) for each table.
    pub fn verify(&self, options: &LoadOptions, control: &Control<'_>) -> Result<Vec<OfTable<Verification>>> {
        let pairs = self.tables.iter().zip(self.names());
        let verified = pairs.map(|(table, name)| {
            let target = Postgres { table: name.clone(), ..self.postgres.clone() };
            let source = self.rows(table);
            let compared = Compared { source: &source, rejected: None, records: Some(&self.records) };
            let result = compare(&compared, &target, options, control).map_err(with_own_advice)?;
            Ok(OfTable { table: name.to_string(), result })
        });
        verified.collect()
    }
}

/// A load of one table, or its verification, advises `--rejects`, which several tables cannot have.
fn with_own_advice(error: Error) -> Error {
    match error.advice().contains("--rejects") {
        true => error.advise(
            "correct the value in the source, or load nested values as jsonb, with which --rejects leaves such rows out",
        ),
        false => error,
    }
}

fn of_table<T>(target: &Postgres, result: T) -> OfTable<T> {
    OfTable { table: target.table.to_string(), result }
}

/// The ID of the load of one table: it begins with the ID of the whole load.
fn table_load_id(id: &str, table: &FlatTable) -> String {
    format!("{id}/{}", table.path.join("/"))
}
