//! Rows that a table would refuse when they are merged: the table that gathers them refuses them first, while it is
//! known where they come from, so that they can be rejected.

use sawmill_loader::{Mode, TableName};
use sawmill_pgcopy::Column;
use sawmill_source::{Error, Kind, Result};

use crate::table::catalogue::Link;
use crate::target::Postgres;

/// The conditions of a table for the columns of a load, which gathers its rows in another table.
pub(crate) struct Refusals<'a> {
    /// The table's OID.
    pub table: u32,
    pub gathered: &'a TableName,
    pub columns: &'a [Column],
}

impl Refusals<'_> {
    /// Adds them.
    pub(crate) fn take_over(&self, link: Link<'_>) -> Result<()> {
        let parts = self.parts(link)?;
        if parts.is_empty() {
            Ok(())
        } else {
            let alter = format!("ALTER TABLE {} {}", self.gathered.quoted(), parts.join(", "));
            link.batch(&alter)
        }
    }

    /// Whether the table that gathers rows, of this OID, has none of them although there are some: a run without rejects has
    /// made it.
    pub(crate) fn are_missing(&self, oid: u32, link: Link<'_>) -> Result<bool> {
        let sql = "SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_constraint WHERE conrelid = $1) AND NOT EXISTS \
                   (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = $1 AND attnum > 0 AND attnotnull)";
        Ok(!self.parts(link)?.is_empty() && link.value(sql, &[&oid])?)
    }

    /// NOT NULL and those checks that need no other columns, as parts of a statement. Triggers and rules may change a row
    /// before the table looks at it: then there are none.
    fn parts(&self, link: Link<'_>) -> Result<Vec<String>> {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        // pg_trigger.tgtype: 1 for each row, 2 before, 4 INSERT.
        let sql = "WITH filled AS (SELECT attnum, attname, attnotnull FROM pg_catalog.pg_attribute \
               WHERE attrelid = $1 AND attname = ANY ($2) AND attnum > 0 AND NOT attisdropped), \
             changing AS (SELECT FROM pg_catalog.pg_trigger WHERE tgrelid = $1 AND NOT tgisinternal \
               AND tgtype & 7 = 7 AND tgenabled <> 'D' \
               UNION ALL SELECT FROM pg_catalog.pg_class WHERE oid = $1 AND relhasrules) \
             SELECT pg_catalog.format('ALTER COLUMN %I SET NOT NULL', attname) FROM filled \
               WHERE attnotnull AND NOT EXISTS (SELECT FROM changing) \
             UNION ALL SELECT pg_catalog.format('ADD CONSTRAINT %I %s', conname, pg_catalog.pg_get_constraintdef(oid)) \
               FROM pg_catalog.pg_constraint WHERE conrelid = $1 AND contype = 'c' \
               AND conkey OPERATOR(pg_catalog.<@) ARRAY(SELECT attnum FROM filled) AND NOT EXISTS (SELECT FROM changing)";
        link.list(sql, &[&self.table, &names])
    }
}

/// How a load goes without some rows. Text has no conditions.
pub(crate) const LEAVE_OUT: &str =
    "leave such rows out (Parquet files: with --where; text: take them out of the files)";

impl Postgres {
    /// The error of a merge, with a way out if the table refuses a row that was not rejected.
    pub(crate) fn refused_in_merge(&self, error: Error) -> Error {
        let code = error.what().rsplit_once('[').map(|(_, code)| code.to_owned()).unwrap_or_default();
        let of_rows = ["22", "23", "44", "54", "P0"].iter().any(|class| code.starts_with(class));
        if error.kind() != Kind::Server || !of_rows || self.mode != Mode::Upsert {
            return error;
        }
        if self.replaces_files() {
            let advice = "nothing was replaced: correct the row or the table, and run the same command again; --rejects takes rows \
                          that a check or NOT NULL refuses, and none whose key another row has, which shows only when the \
                          earlier rows are gone";
            return Error::new(error.kind(), error.what()).at(error.place()).advise(advice);
        }
        let rejects = if self.rejects.is_some() {
            "; --rejects does not take rows that break another unique key, an exclusion or a foreign key when they are \
                 merged, or that a trigger or a check over other columns refuses then"
        } else {
            "; with --rejects FILE it is named, if a check or NOT NULL refuses it"
        };
        let advice = format!(
            "nothing was merged: correct the row, and run the same command again; or forget the load (sawmill load forget), \
             and {LEAVE_OUT}{rejects}"
        );
        Error::new(error.kind(), error.what()).at(error.place()).advise(advice)
    }
}
