//! Whether an existing table is partitioned as the command says.

use sawmill_loader::LoadOptions;
use sawmill_pgwire::Connection;
use sawmill_source::{Control, Error, Kind, Result};

use crate::partition::by::{PartitionBy, Scheme};
use crate::table::catalogue::{Link, find};
use crate::target::Postgres;

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
                false => refused(&format!("has {count} partitions by {key}")),
            }
        })
    }
}
