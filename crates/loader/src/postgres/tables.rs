//! A nested source as several tables that refer to each other: loaded one after the other out of sight, put in
//! their places together.
//!
//! Each table is a load of its own over the same source ([`FlatRows`]), with units and records of its own, and
//! gathers as in mode create. When all are complete, one transaction gives all of them their names, and before
//! that their keys where those are wanted. So the same call after any failure loads what is missing, and nobody
//! sees a part of the tables.
//!
//! Records of which some part cannot be loaded are taken out of all tables, where they are put aside, before the tables
//! get their places ([`whole_records`](super::whole_records)).

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;

use super::catalogue::{Found, current_schema, find};
use super::checkpoint::{Checkpoints, load_id};
use super::connection::Connection;
use super::made_types;
use super::rejected_records::RejectedRecords;
use super::table_name::{TableName, fitted, quote};
use super::verify::{Compared, compare};
use super::whole_records::WholeRecords;
use super::{Enums, Mode, Nested, Postgres, Strategy, rejects_file};
use crate::control::Control;
use crate::error::{Error, Kind, Result};
use crate::flat_tables::{FlatRows, FlatTable, RecordNumbers, flat_tables};
use crate::load::{LoadOptions, LoadReport, again, load};
use crate::source::Source;
use crate::verify::Verification;

/// The tables that a nested source becomes.
pub struct PostgresTables<'a> {
    source: &'a dyn Source,
    postgres: Postgres,
    foreign_keys: bool,
    tables: Vec<FlatTable>,
    records: Arc<RecordNumbers>,
}

/// What the load of one of several tables knows of them.
#[derive(Clone, Debug)]
pub(super) struct OneOfSeveral {
    /// What it is recorded by.
    pub id: String,
    /// The lists that it holds; empty for the records themselves.
    pub lists: String,
    pub records: Arc<RecordNumbers>,
}

/// What came of one of the tables.
#[derive(Clone, Debug, Serialize)]
pub struct OfTable<T> {
    /// Its name.
    pub table: String,
    /// What came of it.
    #[serde(flatten)]
    pub result: T,
}

impl<'a> PostgresTables<'a> {
    /// The tables of `source`: `postgres` names the one of the rows themselves, those of lists are called after
    /// it and the fields that lead to them. `foreign_keys` gives each a primary key, and those of lists a foreign
    /// key.
    ///
    /// # Errors
    /// Another mode than create and replace; fields that would become tables or columns of the same name.
    pub fn new(source: &'a dyn Source, postgres: Postgres, foreign_keys: bool) -> Result<Self> {
        if !postgres.mode.makes_the_table() {
            let what = format!("mode {} with nested values as tables of their own", postgres.mode.name());
            return Err(Error::new(Kind::Config, what)
                .at(format!("table {}", postgres.table))
                .advise("load into new tables (--mode create or replace), and insert from those with SQL"));
        }
        if !postgres.kind.is_plain() || postgres.strategy == Strategy::Staged {
            let what = "keys, indexes, storage and strategy are not chosen for several tables at once";
            return Err(Error::new(Kind::Config, what)
                .at(format!("table {}", postgres.table))
                .advise("leave these options out; --foreign-keys makes keys"));
        }
        if postgres.partitions.is_some() {
            return Err(Error::new(Kind::Config, "partitions of several tables at once")
                .at(format!("table {}", postgres.table))
                .advise("leave --partition-by out, or load nested values as jsonb"));
        }
        if postgres.values.enums == Enums::Enum {
            return Err(Error::new(Kind::Config, "enumerations with nested values as tables of their own")
                .at(format!("table {}", postgres.table))
                .advise("load them as text (--enums text), or load nested values as jsonb"));
        }
        let tables = flat_tables(source.schema())?;
        let records = Arc::new(RecordNumbers::of(source));
        Ok(Self { source, postgres: postgres.nested(Nested::Jsonb), foreign_keys, tables, records })
    }

    /// The tables' names, that of the rows themselves first.
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

    /// The statements that make the tables.
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
                statements.push(primary_key(table, name, &key_name(name)));
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

    /// The tables of lists, each with the table that its key refers to.
    fn references(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.tables.iter().enumerate().filter_map(|(child, table)| Some((child, table.parent?)))
    }

    /// Loads all tables, exactly once, and puts them in their places. `next` is told of each table before it is
    /// loaded.
    ///
    /// # Errors
    /// As [`load`] for each table; besides what the server says when it makes the keys.
    pub fn load(
        &self,
        options: &LoadOptions,
        control: &Control<'_>,
        next: &mut dyn FnMut(&TableName),
    ) -> Result<Vec<OfTable<LoadReport>>> {
        // What cannot be represented in one of them is told before the first is loaded.
        self.ddl(control)?;
        let checkpoints = Checkpoints::new(&self.postgres.checkpoint_schema)?;
        let connection = Connection::open(&self.postgres.server, control)?;
        let rows = match self.postgres.table.schema() {
            Some(_) => self.postgres.table.clone(),
            None => match find(&connection, &self.postgres.table, control)? {
                Some(found) => self.postgres.table.within(&found.schema),
                None => self.postgres.table.within(&current_schema(&connection, control)?),
            },
        };
        let names = self.names_of(&rows);
        let mut mapping = self.source.mapping() + "nested tables";
        if let Some(rejects) = &self.postgres.rejects {
            // Which records are put aside depends on what their values may become.
            mapping = mapping + " of whole records" + &self.postgres.values.mapping();
            rejects_file::check(&rejects.path)?;
        }
        let id = load_id(self.source.files(), &mapping, &rows.to_string(), self.postgres.mode.name());
        // Held until all are in their places, so that nobody else finishes what this run is at.
        checkpoints.lock(&connection, &id, control)?;
        self.refuse_existing(&connection, &checkpoints, &id, &names, control)?;
        let mut reports = Vec::with_capacity(names.len());
        let mut report = |name: &TableName, result| reports.push(OfTable { table: name.to_string(), result });
        let parts: Vec<Postgres> =
            self.tables.iter().zip(&names).map(|(table, name)| self.part(table, name, &id)).collect();
        match &self.postgres.rejects {
            None => {
                for (table, part) in self.tables.iter().zip(&parts) {
                    next(&part.table);
                    report(&part.table, load(&self.rows(table), part, options, control)?);
                }
            }
            Some(rejects) => {
                let whole = WholeRecords {
                    source: self.source,
                    server: &self.postgres.server,
                    tables: &self.tables,
                    parts: &parts,
                    records: &self.records,
                    checkpoints: &checkpoints,
                    options,
                };
                let results = whole.load(rejects, control, next)?;
                names.iter().zip(results).for_each(|(name, result)| report(name, result));
            }
        }
        self.place(&names, options, control)?;
        drop(connection);
        Ok(reports)
    }

    /// The rows of one of the tables.
    fn rows<'b>(&'b self, table: &'b FlatTable) -> FlatRows<'b> {
        FlatRows::new(self.source, table, &self.records)
    }

    /// One of the tables as the target of a load of its own, which is part of the load `id`.
    fn part(&self, table: &FlatTable, name: &TableName, id: &str) -> Postgres {
        let part_of = OneOfSeveral {
            id: part_id(id, table),
            lists: table.path.join("_"),
            records: Arc::clone(&self.records),
        };
        Postgres { table: name.clone(), part_of: Some(part_of), ..self.postgres.clone() }
    }

    /// In mode create a table that is there must be one that this load has finished.
    fn refuse_existing(
        &self,
        connection: &Connection,
        checkpoints: &Checkpoints,
        id: &str,
        names: &[TableName],
        control: &Control<'_>,
    ) -> Result<()> {
        if self.postgres.mode != Mode::Create {
            return Ok(());
        }
        checkpoints.create(connection, control)?;
        let mut taken = Vec::new();
        for (table, name) in self.tables.iter().zip(names) {
            let Some(found) = find(connection, name, control)? else { continue };
            let record = checkpoints.find(connection, &part_id(id, table), control)?;
            if record.is_none_or(|record| !record.complete || record.table_oid != found.oid) {
                taken.push(name.to_string());
            }
        }
        match taken.is_empty() {
            true => Ok(()),
            false => Err(Error::new(Kind::Exists, format!("tables exist already: {}", taken.join(", ")))
                .at(connection.place())
                .advise("load in mode replace, choose another name, or drop them")),
        }
    }

    /// Puts tables that are complete in their places, all in one transaction.
    fn place(&self, names: &[TableName], options: &LoadOptions, control: &Control<'_>) -> Result<()> {
        again(options.retries, control, || {
            let connection = Connection::open(&self.postgres.server, control)?;
            connection.batch(control, "BEGIN")?;
            let mut staged: HashMap<usize, TableName> = HashMap::new();
            for (i, name) in names.iter().enumerate() {
                if find(&connection, &name.staging(), control)?.is_some() {
                    staged.insert(i, name.staging());
                }
            }
            let now = |i: usize| staged.get(&i).unwrap_or(&names[i]);
            let mut renamed_keys = Vec::new();
            if self.foreign_keys {
                for (i, table) in self.tables.iter().enumerate() {
                    // The name of an index may be that of the table that is replaced: it is given afterwards.
                    let key = key_name(now(i));
                    if !has_constraint(&connection, now(i), "contype = 'p'", control)? {
                        connection.batch(control, &primary_key(table, now(i), &key))?;
                        renamed_keys.extend(staged.contains_key(&i).then_some((i, key)));
                    }
                }
                for (child, parent) in self.references() {
                    let name = reference_name(&names[child]);
                    let there = format!("contype = 'f' AND conname = '{}'", name.replace('\'', "''"));
                    if !has_constraint(&connection, now(child), &there, control)? {
                        let key = foreign_key(&self.tables[parent], now(child), now(parent), &name);
                        connection.batch(control, &key)?;
                    }
                }
            }
            // Lists before what they refer to.
            for (i, name) in names.iter().enumerate().rev().filter(|(i, _)| staged.contains_key(i)) {
                if let (Mode::Replace, Some(Found { oid, .. })) =
                    (self.postgres.mode, find(&connection, name, control)?)
                {
                    made_types::drop_table(&connection, name, oid, control)?;
                }
                let rename = format!("ALTER TABLE {} RENAME TO {}", now(i).quoted(), quote(name.name()));
                connection.batch(control, &rename)?;
            }
            for (i, key) in renamed_keys {
                let (table, name) = (names[i].quoted(), key_name(&names[i]));
                let rename =
                    format!("ALTER TABLE {table} RENAME CONSTRAINT {} TO {}", quote(&key), quote(&name));
                connection.batch(control, &rename)?;
            }
            connection.batch(control, "COMMIT")
        })
    }

    /// Compares each of the tables with the source; see [`verify`](super::verify()). Where a file of rejected rows is
    /// named, its records are left out of the source: each table and the file together must hold what the source holds.
    ///
    /// # Errors
    /// As [`verify`](super::verify()) for each table.
    pub fn verify(&self, options: &LoadOptions, control: &Control<'_>) -> Result<Vec<OfTable<Verification>>> {
        let names = self.names();
        let rejected = match &self.postgres.rejects {
            None => None,
            Some(to) => Some(RejectedRecords::open(&to.path, self.source, &self.records, &self.tables)?),
        };
        let mut aside = rejected.as_ref().map(RejectedRecords::tables);
        let pairs = self.tables.iter().zip(names);
        let verified = pairs.map(|(table, name)| {
            let target = Postgres { table: name.clone(), ..self.postgres.clone() };
            let (source, aside) = (self.rows(table), aside.as_mut().and_then(Iterator::next));
            let put_aside = aside.as_ref().map(|rows| rows as &dyn Source);
            let compared = Compared { source: &source, put_aside, records: Some(&self.records) };
            let mut result = compare(&compared, &target, options, control)?;
            let of_records = rejected.as_ref().filter(|_| table.path.is_empty());
            result.put_aside = of_records.map_or(0, RejectedRecords::count);
            Ok(OfTable { table: name.to_string(), result })
        });
        verified.collect()
    }
}

/// What the load of one table is recorded by: parts of a load are known by its own number.
fn part_id(id: &str, table: &FlatTable) -> String {
    format!("{id}/{}", table.path.join("/"))
}

fn has_constraint(
    connection: &Connection,
    table: &TableName,
    which: &str,
    control: &Control<'_>,
) -> Result<bool> {
    let sql = format!(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_constraint WHERE conrelid = to_regclass($1) AND {which})"
    );
    let rows = connection.query(control, &sql, &[&table.quoted()])?;
    rows.first().map_or(Ok(false), |row| connection.get(row, 0))
}

fn key_name(table: &TableName) -> String {
    fitted(table.name(), "_pkey")
}

fn reference_name(table: &TableName) -> String {
    fitted(table.name(), "_fkey")
}

fn primary_key(table: &FlatTable, name: &TableName, constraint: &str) -> String {
    let key = key_of(table);
    format!("ALTER TABLE {} ADD CONSTRAINT {} PRIMARY KEY ({key})", name.quoted(), quote(constraint))
}

/// The key of lists begins with the key of the table that they are in.
fn foreign_key(
    parent: &FlatTable,
    child_name: &TableName,
    parent_name: &TableName,
    constraint: &str,
) -> String {
    let (child, constraint, key) = (child_name.quoted(), quote(constraint), key_of(parent));
    format!(
        "ALTER TABLE {child} ADD CONSTRAINT {constraint} FOREIGN KEY ({key}) REFERENCES {} ({key})",
        parent_name.quoted()
    )
}

fn key_of(table: &FlatTable) -> String {
    table.key.iter().map(|name| quote(name)).collect::<Vec<_>>().join(", ")
}
