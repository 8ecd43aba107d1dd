//! Whether a table still has the rows that its loads have recorded.

use sawmill_loader::{Presence, TableName};
use sawmill_source::{Error, Kind, Result};

use crate::records::checkpoint::{Records, read_count};
use crate::table::part_tables;

/// Rows of a table that a message counts at most, as it should not wait for a large table.
pub(crate) const MAX_COUNTED: u64 = 1_000_000;

/// Rows that are there, recorded ones, and those from before; whether the table was rewritten, and keys were refused.
type Counts = (Option<i64>, i64, Option<i64>, Option<bool>, bool);

/// Whose rows are counted.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'a> {
    /// The rows of all loads into the table with this OID.
    Table(u32),
    /// The rows of one load, in the staging table and its part tables.
    Load(&'a str),
}

impl Records<'_> {
    /// Counts the rows of a table.
    pub(crate) fn presence(&self, scope: Scope<'_>, table: &TableName) -> Result<Presence> {
        let mut counted = vec![table.clone()];
        if let Scope::Load(id) = scope {
            let parts = part_tables::of_load(self, id)?;
            counted.extend(parts.into_iter().filter(|part| !part.attached).map(|part| part.name));
        }
        let may_look = self.may_look(&counted)?;
        let counts = counted.iter().map(|table| format!("(SELECT count(*) FROM {})", table.quoted()));
        let count = if may_look { counts.collect::<Vec<_>>().join(" + ") } else { "NULL::bigint".to_owned() };
        let (which, id, oid) = match scope {
            Scope::Table(oid) => ("table_oid = $2::bigint AND mode <> 'upsert' AND $1 = ''", "", oid),
            Scope::Load(id) => ("load_id = $1 AND $2::bigint = 0", id, 0),
        };
        let sql = format!(
            "WITH these AS (SELECT * FROM {} WHERE {which}) \
             SELECT {count}, \
               (SELECT coalesce(sum(rows), 0)::bigint FROM {} u WHERE load_id IN (SELECT load_id FROM these)), \
               (SELECT CASE WHEN mode IN ('append') THEN before_rows ELSE 0 END FROM these ORDER BY begun LIMIT 1), \
               (SELECT coalesce(table_file <> pg_catalog.pg_relation_filenode(table_oid::oid), false) FROM these \
                ORDER BY begun DESC LIMIT 1), \
               (SELECT coalesce(bool_or(keys_refused), false) FROM these)",
            self.table("loads"),
            self.all_units()
        );
        let counted: Option<Counts> = self.link.first(&sql, &[&id, &i64::from(oid)])?;
        let place = self.link.place();
        let Some((rows, recorded, before, rewritten, keys_refused)) = counted else {
            return Err(Error::new(Kind::Server, "the server returned no count").at(place));
        };
        Ok(Presence {
            rows: rows.map(|rows| rows as u64),
            recorded: read_count(place, recorded)?,
            before: before.map(|rows| rows as u64),
            rewritten: rewritten.unwrap_or(false),
            keys_refused,
        })
    }

    /// Whether this user may read all rows of tables.
    fn may_look(&self, tables: &[TableName]) -> Result<bool> {
        let names: Vec<String> = tables.iter().map(TableName::quoted).collect();
        let sql = "SELECT coalesce(bool_and(pg_catalog.has_table_privilege(name::regclass, 'SELECT') \
                     AND NOT pg_catalog.row_security_active(name::regclass)), false) FROM unnest($1::text[]) name";
        self.link.value(sql, &[&names])
    }

    /// The number of a table's rows, at most [`MAX_COUNTED`]; `None` if this user may not read them all.
    pub(crate) fn count_some(&self, table: &TableName) -> Result<Option<u64>> {
        if !self.may_look(std::slice::from_ref(table))? {
            return Ok(None);
        }
        let some = format!("SELECT FROM {} LIMIT {MAX_COUNTED}", table.quoted());
        let rows: i64 = self.link.value(&format!("SELECT count(*) FROM ({some}) first_rows"), &[])?;
        read_count(self.link.place(), rows).map(Some)
    }

    /// Whether a table is empty; false if this user may not read it.
    pub(crate) fn is_empty(&self, table: &TableName) -> Result<bool> {
        Ok(self.may_look(std::slice::from_ref(table))?
            && self.link.value(&format!("SELECT NOT EXISTS (SELECT FROM {})", table.quoted()), &[])?)
    }
}
