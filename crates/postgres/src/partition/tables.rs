//! The partitions of a table: how they are named, created, attached and renamed.
//!
//! Until a load is complete, its partitions have temporary names. In the direct strategy they are created
//! with the table and the server routes each row. In the staged one a worker creates a table, which is
//! attached when all rows are loaded. A `CHECK` constraint that implies the partition's bound spares the
//! server a scan of all rows then (<https://www.postgresql.org/docs/current/ddl-partitioning.html>), except
//! for hash partitions of text: the server's own form of the bound has no collation, and the same expression
//! in a constraint has one.

use std::collections::HashMap;

use arrow_schema::Schema;
use sawmill_loader::{LoadOptions, TableName, quote};
use sawmill_pgwire::Connection;
use sawmill_profile::format_counted;
use sawmill_source::{Control, Error, Kind, Result};

use crate::partition::by::{PartitionBy, Scheme};
use crate::partition::slot::Slot;
use crate::partition::survey::Partitions;
use crate::records::checkpoint::{Records, unit_key};
use crate::table::catalogue::{Link, find};
use crate::table::columns::NewTable;
use crate::table::new_table::TableKind;
use crate::target::Postgres;

/// The constraint that implies the bound; it is dropped when the table is attached.
const CHECK: &str = "sawmill_partition";

/// Whether that constraint refused a row: it was sent to the wrong partition, which is not the row's fault.
pub(crate) fn is_of_partition(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().and_then(|db| db.constraint()) == Some(CHECK)
}

impl Partitions {
    /// The names of the partitions of `table`, in their order: after their values if all of these are plain
    /// and distinct, otherwise by number.
    pub(crate) fn names(&self, table: &TableName) -> Vec<TableName> {
        let suffixes: Vec<Option<String>> = match &self.rule {
            Some(rule) => self.slots.iter().map(|slot| rule.suffix(slot)).collect(),
            None => (0..self.slots.len()).map(|remainder| Some(remainder.to_string())).collect(),
        };
        let mut distinct: Vec<&String> = suffixes.iter().flatten().collect();
        distinct.sort_unstable();
        distinct.dedup();
        let plain = distinct.len() == self.slots.len();
        let name = |(place, suffix): (usize, &Option<String>)| match suffix {
            Some(suffix) if plain => table.partition(suffix),
            _ => table.numbered(place as u32 + 1),
        };
        suffixes.iter().enumerate().map(name).collect()
    }

    /// Their temporary names in the direct strategy.
    pub(crate) fn gathering_names(&self, table: &TableName) -> Vec<TableName> {
        (1..).take(self.slots.len()).map(|number| table.part(number)).collect()
    }

    /// `FOR VALUES ...` or `DEFAULT`.
    pub(crate) fn bound(&self, partition: usize) -> String {
        match (&self.rule, self.slots.get(partition)) {
            (Some(rule), Some(slot)) => rule.bound(slot),
            _ => format!("FOR VALUES WITH (MODULUS {}, REMAINDER {partition})", self.slots.len()),
        }
    }

    /// The statements that create `table` and each partition for which `made` is true, with these `names`.
    pub(crate) fn create(
        &self,
        kind: &TableKind,
        table: &TableName,
        names: &[TableName],
        made: impl Fn(u32) -> bool,
        new: &NewTable,
        schema: &Schema,
    ) -> String {
        let mut statements = kind.create(table, new, schema, Some(&self.by.clause()));
        for (partition, name) in names.iter().enumerate().filter(|(partition, _)| made(*partition as u32)) {
            let (unlogged, space) = (kind.unlogged_word(), kind.within_tablespace(" TABLESPACE "));
            statements += &format!(
                ";\nCREATE {unlogged}TABLE {} PARTITION OF {} {}{space}",
                name.quoted(),
                table.quoted(),
                self.bound(partition)
            );
        }
        statements
    }

    /// Whether a partition has no rows: no worker fills it.
    pub(crate) fn is_empty(&self, partition: u32) -> bool {
        self.rows_of(partition) == Some(0)
    }

    /// The statement that guarantees that all rows of a table belong to a partition of the table with the OID
    /// `parent`.
    pub(crate) fn add_check(&self, part: &TableName, partition: u32, parent: u32) -> String {
        let check = match (&self.rule, self.slots.get(partition as usize)) {
            (Some(rule), Some(slot)) => rule.check(slot, &quote(&self.by.column), parent),
            _ => "true".to_owned(),
        };
        format!("ALTER TABLE {} ADD CONSTRAINT {CHECK} CHECK ({check})", part.quoted())
    }

    /// The statements that attach a table to `parent` as a partition.
    pub(crate) fn attach(&self, part: &TableName, partition: u32, parent: &TableName) -> String {
        let (part, bound) = (part.quoted(), self.bound(partition as usize));
        format!(
            "ALTER TABLE {} ATTACH PARTITION {part} {bound}; ALTER TABLE {part} DROP CONSTRAINT {CHECK}",
            parent.quoted()
        )
    }

    /// Whether this is the default partition, which takes all other rows.
    fn is_default(&self, partition: u32) -> bool {
        self.slots.get(partition as usize) == Some(&Slot::Null) && self.bound(partition as usize) == "DEFAULT"
    }

    /// Makes sure, before a row is sent, that the partitions' final names are free, or will be after
    /// `replaced` and its partitions and types are dropped.
    pub(crate) fn check_names(&self, link: Link<'_>, table: &TableName, replaced: Option<u32>) -> Result<()> {
        let names: Vec<String> = self.names(table).iter().map(|name| name.name().to_owned()).collect();
        let taken: Option<(String,)> = link.first(
            "WITH RECURSIVE going(oid) AS (SELECT $3::oid \
               UNION SELECT inhrelid FROM pg_catalog.pg_inherits JOIN going ON inhparent = going.oid) \
             SELECT c.relname::text FROM pg_catalog.pg_class c \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE n.nspname = $1 AND c.relname = ANY($2) AND c.oid NOT IN (SELECT oid FROM going) \
             ORDER BY 1 LIMIT 1",
            &[&table.schema().unwrap_or_default(), &names, &replaced.unwrap_or(0)],
        )?;
        let Some((taken,)) = taken else { return Ok(()) };
        Err(Error::new(Kind::Exists, "a partition of the table needs this name, but it is taken")
            .at(format!("table {taken}, {}", link.place()))
            .advise("rename or drop that table, or load into a table of another name"))
    }
}

/// The tables that workers have filled, each with its partition and whether it is attached.
pub(crate) fn filled(
    records: &Records<'_>,
    id: &str,
    partitions: &Partitions,
) -> Result<Vec<(TableName, u32, bool)>> {
    let sql = format!(
        "SELECT DISTINCT ON (c.oid) n.nspname::text, c.relname::text, u.file, u.row_group, u.first_row, \
         EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhrelid = c.oid) \
         FROM {} u JOIN pg_catalog.pg_class c ON c.oid = u.part_oid \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE u.load_id = $1 ORDER BY c.oid",
        records.all_units()
    );
    let mut tables = Vec::new();
    let found: Vec<(String, String, i32, i32, i64, bool)> = records.link.rows(&sql, &[&id])?;
    for (schema, name, file, row_group, first_row, attached) in found {
        let name = TableName::new(Some(&schema), &name)?;
        let Some(share) = partitions.share_of(unit_key(file, row_group, first_row)) else {
            return Err(Error::new(Kind::Changed, "it holds units that belong to no partition")
                .at(format!("table {name}, {}", records.link.place()))
                .advise("forget the load and start it from the beginning"));
        };
        tables.push((name, share.partition, attached));
    }
    Ok(tables)
}

/// Attaches filled tables to `parent`, in the caller's transaction.
pub(crate) fn attach(
    link: Link<'_>,
    tables: &[(TableName, u32, bool)],
    partitions: &Partitions,
    parent: &TableName,
) -> Result<()> {
    // With a default partition, the server scans it for each other one that is attached.
    let (default, others): (Vec<_>, Vec<_>) = tables
        .iter()
        .filter(|(.., attached)| !attached)
        .partition(|(_, number, _)| partitions.is_default(*number));
    for (part, partition, _) in others.into_iter().chain(default) {
        link.batch(&partitions.attach(part, *partition, parent))?;
    }
    Ok(())
}

/// Names partitions after the final table, in the caller's transaction; returns the names.
pub(crate) fn rename(
    link: Link<'_>,
    now: &HashMap<u32, TableName>,
    partitions: &Partitions,
    table: &TableName,
) -> Result<Vec<TableName>> {
    let names = partitions.names(table);
    for (partition, name) in (0..).zip(&names) {
        let Some(old) = now.get(&partition) else {
            return Err(Error::new(Kind::Changed, "a partition of the load no longer exists")
                .at(format!("table {name}, {}", link.place()))
                .advise("forget the load and start it from the beginning"));
        };
        let rename = format!("ALTER TABLE {} RENAME TO {}", old.quoted(), quote(name.name()));
        link.batch(&rename)?;
    }
    Ok(names)
}

/// The key of a partitioned table: its strategy and definition, the column if it is one, whether each partition has the
/// period $2, and the number of partitions without the default one.
const KEY: &str = "SELECT p.partstrat::text, pg_catalog.pg_get_partkeydef(p.partrelid), \
    (SELECT a.attname::text FROM pg_catalog.pg_attribute a \
      WHERE a.attrelid = p.partrelid AND a.attnum = p.partattrs[0] AND p.partnatts = 1), \
    (SELECT coalesce(bool_and(span[2]::timestamp = span[1]::timestamp + $2::text::interval), true) \
      FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid, \
        regexp_match(pg_catalog.pg_get_expr(c.relpartbound, c.oid), 'FROM \\(''(.*)''\\) TO \\(''(.*)''\\)') span \
      WHERE i.inhparent = p.partrelid AND p.partstrat = 'r'), \
    (SELECT count(*) FROM pg_catalog.pg_inherits i WHERE i.inhparent = p.partrelid AND i.inhrelid <> p.partdefid) \
  FROM pg_catalog.pg_partitioned_table p WHERE p.partrelid = $1";

impl Postgres {
    /// Checks that the existing table has these partitions, before files are added to it.
    ///
    /// # Errors
    /// A table without partitions, or with other ones; no connection.
    pub fn refuse_other_partitions(
        &self,
        by: &PartitionBy,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<()> {
        self.retried(options.retries, control, || {
            let connection = Connection::open(&self.server, control)?;
            let link = Link::new(&connection, control);
            let Some(found) = find(link, &self.table)? else { return Ok(()) };
            let (strategy, period) = match by.scheme {
                Scheme::Year => ("r", "1 year"),
                Scheme::Month => ("r", "1 month"),
                Scheme::Day => ("r", "1 day"),
                Scheme::Hour => ("r", "1 hour"),
                Scheme::Hash(_) => ("h", "0"),
                Scheme::List => ("l", "0"),
            };
            link.batch("BEGIN; SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL timezone = 'UTC'")?;
            let rows = link.query(KEY, &[&found.oid, &period])?;
            link.batch("COMMIT")?;
            let refused = |how: &str| {
                Err(Error::new(Kind::Schema, format!("the table {how}, not those of {by}"))
                    .at(format!("table {}, {}", self.table, link.place()))
                    .advise(
                        "give the partitions that it has, or leave --partition-by out to add the files to it; --mode replace \
                         loads everything into a new table",
                    ))
            };
            let Some(row) = rows.first() else { return refused("has no partitions") };
            let (of_table, key): (String, String) = (link.get(row, 0)?, link.get(row, 1)?);
            let (column, periods): (Option<String>, bool) = (link.get(row, 2)?, link.get(row, 3)?);
            let count: i64 = link.get(row, 4)?;
            let is_counted = !matches!(by.scheme, Scheme::Hash(modulus) if i64::from(modulus) != count);
            match of_table == strategy && column.as_ref() == Some(&by.column) && periods && is_counted {
                true => Ok(()),
                false => refused(&format!("has {} by {key}", format_counted(count.unsigned_abs(), "partition"))),
            }
        })
    }
}
