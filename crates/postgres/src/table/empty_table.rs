//! Creates an empty table to append to, logged or not, with a primary key or without; and reads the number of
//! rows in a table and its size. For comparing loads into several kinds of tables.

use sawmill_loader::LoadOptions;
use sawmill_pgwire::Connection;
use sawmill_source::{Control, Result, Source};

use crate::table::catalogue::{Link, find};
use crate::table::columns;
use crate::table::new_table::TableKind;
use crate::target::Postgres;
use crate::types::enumerations;

impl Postgres {
    /// Creates the table as mode create would, but empty, of this kind, and directly under its name.
    ///
    /// # Errors
    /// As [`ddl`](Self::ddl); a key column that the source lacks; a table that exists; no connection or no
    /// permission.
    pub fn create_empty(&self, source: &dyn Source, kind: &TableKind, control: &Control<'_>) -> Result<()> {
        let mut planned = columns::natural(source.schema(), &self.table, self.nested, &self.values)?;
        kind.check(&planned.columns, &self.table)?;
        enumerations::find_labels(&mut planned, source, &self.values, &LoadOptions::default(), control)?;
        let connection = Connection::open(&self.server, control)?;
        let link = Link::new(&connection, control);
        link.batch("BEGIN")?;
        link.batch(&kind.create(&self.table, &planned, source.schema(), None))?;
        link.batch("COMMIT")
    }

    /// The number of rows in the table; `None` if it does not exist.
    ///
    /// # Errors
    /// No connection, or no permission.
    pub fn count_rows(&self, control: &Control<'_>) -> Result<Option<u64>> {
        let connection = Connection::open(&self.server, control)?;
        let link = Link::new(&connection, control);
        if find(link, &self.table)?.is_none() {
            return Ok(None);
        }
        let count: i64 = link.value(&format!("SELECT count(*) FROM {}", self.table.quoted()), &[])?;
        Ok(Some(count as u64))
    }

    /// The size of the table in bytes with its partitions, indexes and TOAST; `None` if it does not exist.
    ///
    /// # Errors
    /// No connection, or no permission.
    pub fn stored_bytes(&self, control: &Control<'_>) -> Result<Option<u64>> {
        let connection = Connection::open(&self.server, control)?;
        let link = Link::new(&connection, control);
        let Some(found) = find(link, &self.table)? else { return Ok(None) };
        let sizes = "WITH RECURSIVE part(oid) AS (SELECT $1::oid UNION \
                     SELECT inhrelid FROM pg_inherits JOIN part ON inhparent = part.oid) \
                     SELECT sum(pg_total_relation_size(oid))::bigint FROM part";
        let size: i64 = link.value(sizes, &[&found.oid])?;
        Ok(Some(size.unsigned_abs()))
    }

    /// The server's version as it reports it: `15.18 (Debian ...)`.
    ///
    /// # Errors
    /// No connection.
    pub fn server_version(&self, control: &Control<'_>) -> Result<String> {
        let connection = Connection::open(&self.server, control)?;
        let link = Link::new(&connection, control);
        link.value("SELECT current_setting('server_version')", &[])
    }
}
