//! The table's side of a verification, read through `COPY TO`. The other side is
//! [`crate::verify::source_sums`].
//!
//! Several connections read the table under one exported snapshot, each taking ranges of pages (`ctid`
//! ranges, which PostgreSQL 14 and newer scan directly). Rows are summed as they arrive; none is kept.
//! Policies must not hide rows: where they hold for this user, the server refuses the query.

use std::borrow::Borrow;
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use futures_util::StreamExt;
use sawmill_loader::{Sums, TableName};
use sawmill_pgcopy::Column;
use sawmill_pgwire::{Connection, KnownServer, WireError};
use sawmill_profile::{WaitKind, on_threads, wait};
use sawmill_source::{Control, Error, Kind, Result};

use crate::encode::canonical_row::CanonicalRow;
use crate::table::catalogue::Link;
use crate::table::columns;
use crate::verify::tuples::Tuples;

/// Begins the transaction of a connection that reads.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL row_security = off";

/// The table to read, and how.
#[derive(Clone, Copy)]
pub(crate) struct ReadBack<'a> {
    pub server: &'a KnownServer,
    pub table: &'a TableName,
    pub columns: &'a [Column],
    pub degree: usize,
    pub each_column: bool,
    /// Numerics that differ only in their display scale are equal.
    pub by_value: bool,
}

impl<'a> ReadBack<'a> {
    /// The sums of whole rows, over `degree` connections.
    pub(crate) fn new(
        server: &'a KnownServer,
        table: &'a TableName,
        columns: &'a [Column],
        degree: usize,
    ) -> Self {
        Self { server, table, columns, degree, each_column: false, by_value: false }
    }

    /// Reads the table and sums it.
    pub(crate) fn run(&self, control: &Control<'_>) -> Result<Sums> {
        self.led_by(Link::new(&self.server.connect(control)?, control))
    }

    /// The same, led by a connection on which no transaction is open. With a degree of 1 it reads all rows.
    pub(crate) fn led_by(&self, leader: Link<'_>) -> Result<Sums> {
        leader.batch(BEGIN)?;
        let sql = "SELECT relkind::text FROM pg_catalog.pg_class WHERE oid = to_regclass($1)";
        let kind: Option<String> = leader.value(sql, &[&self.table.quoted()])?;
        let degree = self.degree.max(1);
        let ranges = match kind.as_deref() {
            Some("r" | "p") => self.ranges(leader, degree)?,
            Some(_) => VecDeque::from([self.table.quoted()]),
            None => {
                return Err(Error::new(Kind::Schema, "the table does not exist")
                    .at(format!("table {}, {}", self.table, leader.place()))
                    .advise("load it first"));
            }
        };
        let ranges = Mutex::new(ranges);
        let sums = match degree {
            1 => vec![self.read_ranges(&ranges, leader.control, || Ok(leader.connection))?],
            _ => {
                let snapshot: String = leader.value("SELECT pg_export_snapshot()", &[])?;
                let stop = AtomicBool::new(false);
                let control = leader.control.with_stop(&stop);
                on_threads("reader", 1..degree + 1, &stop, |_| {
                    let _attached = control.phase().attach("reader");
                    self.read_ranges(&ranges, &control, || self.beside(&snapshot, &control))
                })?
            }
        };
        leader.batch("COMMIT")?;
        Ok(Sums::new(sums, self.columns.len()))
    }

    /// Another connection that reads under the snapshot.
    fn beside(&self, snapshot: &str, control: &Control<'_>) -> Result<Connection> {
        let _connecting = wait(WaitKind::Network);
        let connection = self.server.connect(control)?;
        // The server makes the snapshot's name from digits and hyphens.
        let taken = connection.batch(control, &format!("{BEGIN}; SET TRANSACTION SNAPSHOT '{snapshot}'"));
        taken.map_err(|error| match error.kind() {
            // The transaction of the snapshot has ended with its connection.
            Kind::Server => Error::new(Kind::Connection, error.what()).at(error.place()),
            _ => error,
        })?;
        Ok(connection)
    }

    /// The table and its descendants, each in ranges of its pages.
    fn ranges(&self, leader: Link<'_>, degree: usize) -> Result<VecDeque<String>> {
        let tables: Vec<(String, String, bool, i64)> = leader.rows(
            "WITH RECURSIVE tables(oid) AS (SELECT to_regclass($1)::oid \
               UNION SELECT inhrelid FROM pg_catalog.pg_inherits JOIN tables ON inhparent = tables.oid) \
             SELECT n.nspname::text, c.relname::text, c.relkind = 'r', \
               pg_relation_size(c.oid) / current_setting('block_size')::bigint \
             FROM tables JOIN pg_catalog.pg_class c USING (oid) \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind <> 'p' ORDER BY 4 DESC",
            &[&self.table.quoted()],
        )?;
        let mut ranges = VecDeque::new();
        for (schema, name, plain, pages) in tables {
            let table = TableName::new(Some(&schema), &name)?.quoted();
            match plain {
                true => ranges
                    .extend(page_ranges(pages, degree).iter().map(|range| format!("ONLY {table}{range}"))),
                // A foreign table has no pages.
                false => ranges.push_back(table),
            }
        }
        Ok(ranges)
    }

    /// Reads the remaining ranges, over the connection that `connect` returns.
    fn read_ranges<C: Borrow<Connection>>(
        &self,
        ranges: &Mutex<VecDeque<String>>,
        control: &Control<'_>,
        connect: impl FnOnce() -> Result<C>,
    ) -> Result<Sums> {
        let take = || ranges.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(mut range) = take() else { return Ok(Sums::default()) };
        let connected = connect()?;
        let connection = connected.borrow();
        let canonical = CanonicalRow::new(self.columns, self.by_value);
        let mut tuples = Tuples::new(self.columns.len(), canonical, self.each_column);
        loop {
            let sql = format!(
                "COPY (SELECT {} FROM {range}) TO STDOUT (FORMAT binary)",
                columns::list(self.columns)
            );
            let reading = read_rows(connection, &sql, &mut tuples);
            connection.wait_for(control, reading)?;
            match take() {
                Some(next) => range = next,
                None => break,
            }
        }
        Ok(tuples.into_sums())
    }
}

/// Adds the rows that `COPY ... TO STDOUT (FORMAT binary)` returns.
pub(crate) async fn read_rows(
    connection: &Connection,
    sql: &str,
    tuples: &mut Tuples,
) -> std::result::Result<(), WireError> {
    tuples.begin();
    read_copy(connection, sql, |bytes| tuples.feed(bytes)).await
}

/// Passes the output of `COPY ... TO STDOUT` to `feed`, in pieces of any size.
pub(crate) async fn read_copy(
    connection: &Connection,
    sql: &str,
    mut feed: impl FnMut(&[u8]) -> std::result::Result<(), String>,
) -> std::result::Result<(), WireError> {
    let mut stream = {
        let _starting = wait(WaitKind::Network);
        Box::pin(connection.client.copy_out(sql).await?)
    };
    loop {
        let bytes = {
            let _reading = wait(WaitKind::Network);
            stream.next().await
        };
        let Some(bytes) = bytes else { return Ok(()) };
        feed(&bytes?).map_err(|what| Error::new(Kind::Server, what).at(connection.place()))?;
    }
}

/// Conditions that split a table's pages into four ranges per connection. The last is open-ended, for pages
/// added during the read.
fn page_ranges(pages: i64, degree: usize) -> VecDeque<String> {
    let ranges = (degree as i64 * 4).min(pages.max(1) / 64 + 1);
    if ranges == 1 {
        return VecDeque::from([String::new()]);
    }
    let bound = |range: i64| pages * range / ranges;
    (0..ranges)
        .map(|range| {
            let from = format!(" WHERE ctid >= '({},0)'", bound(range));
            if range + 1 == ranges { from } else { format!("{from} AND ctid < '({},0)'", bound(range + 1)) }
        })
        .collect()
}
