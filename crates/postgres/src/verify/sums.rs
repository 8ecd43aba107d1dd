//! Sums of a table's rows, read back, and of a source's rows, encoded once more.

use std::borrow::Borrow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use sawmill_loader::{BatchEncoder, LoadOptions, Reading, Reread, Sums, TableName, Tally};
use sawmill_pgcopy::{Buffers, Column, ValueOptions};
use sawmill_pgwire::{Connection, KnownServer, WireError};
use sawmill_profile::{WaitKind, on_threads, wait};
use sawmill_source::{Control, Error, Kind, Read, Result, Source, UnitKey};

use crate::encode::canonical_row::CanonicalRow;
use crate::encode::encoders::{RejectingEncoder, SummingEncoder};
use crate::rejected::bad_records::BadRecords;
use crate::table::catalogue::Link;
use crate::table::columns::natural;
use crate::types::made_types::Nested;
use crate::types::sent_as_text::selected;
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
            let sql =
                format!("COPY (SELECT {} FROM {range}) TO STDOUT (FORMAT binary)", selected(self.columns));
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

/// A source, and how it is encoded.
#[derive(Clone, Copy)]
pub(crate) struct SourceSums<'a> {
    pub source: &'a dyn Source,
    pub columns: &'a Arc<Vec<Column>>,
    pub options: &'a LoadOptions,
    pub unit_rows: u64,
    /// Also sums each column separately.
    pub each_column: bool,
    /// Numerics that differ only in their display scale are equal.
    pub by_value: bool,
    /// Leaves out and counts rows that cannot be encoded; otherwise the first of them is an error.
    pub leave_out: bool,
    /// Other rows to leave out, if rows are left out, and not to count.
    pub refused: Option<&'a BadRecords>,
}

impl SourceSums<'_> {
    /// Encodes and sums all rows, with as many threads as there are connections. Also returns the rows that could not be
    /// encoded, by their units.
    pub(crate) fn run(&self, control: &Control<'_>) -> Result<(Sums, Vec<(UnitKey, u64)>)> {
        let Self { source, columns, options, .. } = *self;
        let encoders = || -> Result<Box<dyn BatchEncoder>> {
            let encoder = SummingEncoder::new(Arc::clone(columns), Buffers::new(options.batch_bytes));
            Ok(if self.leave_out { Box::new(RejectingEncoder::new(encoder)) } else { Box::new(encoder) })
        };
        // The encoder sums all whole rows that it encodes. For anything else they are parsed again.
        let again = self.each_column || self.by_value || self.refused.is_some();
        let start = || Summing {
            tuples: Tuples::new(columns.len(), CanonicalRow::new(columns, self.by_value), self.each_column),
            encoded: Tally::empty(columns.len()),
            left_out: Vec::new(),
            unit: UnitKey { file: 0, row_group: 0, first_row: 0 },
            refused: BTreeSet::new(),
        };
        let look = |summing: &mut Summing, item: Reread<'_>| match item {
            Reread::Unit(unit) => {
                summing.unit = unit.key;
                summing.refused =
                    self.refused.map(|records| records.rows_of(unit)).transpose()?.unwrap_or_default();
                Ok(())
            }
            Reread::Rows(block) => {
                let unit = summing.unit;
                let rows = block.marks.iter().flat_map(|marks| &marks.refused);
                let rows = rows.map(|(row, _)| unit.first_row + u64::from(*row));
                let rows = rows.filter(|row| !summing.refused.contains(row));
                summing.left_out.extend(rows.map(|row| (unit, row)));
                match again {
                    true => summing.tuples.feed_without(&summing.refused, unit.first_row, block),
                    false => Ok(()),
                }
            }
            Reread::End(_, tally) => {
                summing.encoded.add(&tally);
                Ok(())
            }
        };
        let (runs, read) = (source.plan(self.unit_rows), Read { broken_text: true, ..Read::default() });
        let reading = Reading { source, runs, read, encoders: &encoders, options, control };
        let parts = reading.run(start, look)?;
        let mut left_out = Vec::new();
        let sums = parts.into_iter().map(|part| {
            left_out.extend(part.left_out);
            if again { part.tuples.into_sums() } else { Sums { whole: part.encoded, each: Vec::new() } }
        });
        let sums = Sums::new(sums.collect(), columns.len());
        Ok((sums, left_out))
    }
}

/// A thread's sums.
struct Summing {
    tuples: Tuples,
    encoded: Tally,
    /// Rows that cannot be encoded.
    left_out: Vec<(UnitKey, u64)>,
    /// The unit, and its rows that are left out and not counted.
    unit: UnitKey,
    refused: BTreeSet<u64>,
}

/// The number of rows of `source`, their content sum and the non-null values of each column, as a load into a
/// new table of PostgreSQL with default options reports them. Rows are encoded by as many threads as
/// `options` has connections.
///
/// ```
/// use sawmill_loader::LoadOptions;
/// use sawmill_postgres::content;
/// use sawmill_source::{Control, GeneratedRows};
/// let devices = sawmill_generator::Dataset::built_in("devices").unwrap()?;
/// let profile = sawmill_profile::Profile::new();
/// let (phase, cancel) = (profile.phase("sum"), false.into());
/// let source = GeneratedRows::new(devices, 1000, 42);
/// let tally = content(&source, &LoadOptions::default(), &Control::new(&cancel, &phase))?;
/// assert_eq!(tally.rows, 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A column or a value that PostgreSQL cannot represent; errors of the source.
pub fn content(source: &dyn Source, options: &LoadOptions, control: &Control<'_>) -> Result<Tally> {
    // The sum does not depend on the name.
    let table: TableName = "content".parse()?;
    let planned = natural(source.schema(), &table, Nested::default(), &ValueOptions::default())?;
    let sums = SourceSums {
        source,
        columns: &planned.columns,
        options,
        unit_rows: options.unit_rows,
        each_column: false,
        by_value: false,
        leave_out: false,
        refused: None,
    };
    Ok(sums.run(control)?.0.whole)
}
