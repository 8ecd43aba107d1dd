//! Whether a table still has the rows that its loads have recorded.

use sawmill_loader::TableName;
use sawmill_pgwire::Connection;
use sawmill_source::{Control, Error, Kind, Result};

use crate::records::checkpoint::{Checkpoints, read_count};
use crate::table::catalogue::value;
use crate::table::part_tables;

/// The number of a table's rows, and of the rows that its loads have recorded, in one snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Presence {
    /// `None` if this user may not read all rows.
    pub rows: Option<u64>,
    /// Rows of all recorded units.
    pub recorded: u64,
    /// Rows that the table had before the first of these loads; `None` if they were not counted.
    pub before: Option<u64>,
    /// The table's rows are in another file than when the last of these loads began: the table was truncated,
    /// or rewritten by `VACUUM FULL`, `CLUSTER` or `ALTER TABLE`.
    pub rewritten: bool,
    /// The load's complete rows did not allow a key or an index, and the user was asked to correct them.
    pub keys_refused: bool,
}

/// Whose rows are counted.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'a> {
    /// The rows of all loads into the table with this OID.
    Table(u32),
    /// The rows of one load, in the staging table and its part tables.
    Load(&'a str),
}

impl Presence {
    /// Counts the rows of a table.
    pub(crate) fn new(
        scope: Scope<'_>,
        table: &TableName,
        checkpoints: &Checkpoints,
        connection: &Connection,
        control: &Control<'_>,
    ) -> Result<Self> {
        let mut counted = vec![table.clone()];
        if let Scope::Load(id) = scope {
            let parts = part_tables::of_load(connection, checkpoints, id, control)?;
            counted.extend(parts.into_iter().filter(|part| !part.attached).map(|part| part.name));
        }
        let may_look = may_look(&counted, connection, control)?;
        let counts = counted.iter().map(|table| format!("(SELECT count(*) FROM {})", table.quoted()));
        let count = match may_look {
            true => counts.collect::<Vec<_>>().join(" + "),
            false => "NULL::bigint".to_owned(),
        };
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
            checkpoints.table("loads"),
            checkpoints.all_units()
        );
        let rows = connection.query(control, &sql, &[&id, &i64::from(oid)])?;
        let Some(row) = rows.first() else {
            return Err(Error::new(Kind::Server, "the server returned no count").at(connection.place()));
        };
        let (rows, recorded): (Option<i64>, i64) = (connection.get(row, 0)?, connection.get(row, 1)?);
        let (before, rewritten): (Option<i64>, Option<bool>) =
            (connection.get(row, 2)?, connection.get(row, 3)?);
        Ok(Self {
            rows: rows.map(|rows| rows as u64),
            recorded: read_count(connection, recorded)?,
            before: before.map(|rows| rows as u64),
            rewritten: rewritten.unwrap_or(false),
            keys_refused: connection.get(row, 4)?,
        })
    }

    /// The least number of rows that the table must have.
    fn least(&self) -> u64 {
        self.recorded + self.before.unwrap_or(0)
    }

    /// Whether rows are missing.
    pub(crate) fn lacks_rows(&self) -> bool {
        self.rows.is_some_and(|rows| rows < self.least())
    }

    /// Whether all rows are missing, or some are and the table was rewritten: it was truncated, or is another one.
    pub(crate) fn was_emptied(&self) -> bool {
        self.lacks_rows() && (self.rewritten || self.rows == Some(0))
    }

    /// Whether the table is known to hold other rows than the recorded ones and those that it had before.
    pub(crate) fn is_other_than_recorded(&self) -> bool {
        self.rows.is_some() && !self.is_exact()
    }

    /// Whether the table has as many rows as are recorded and were there before.
    pub(crate) fn is_exact(&self) -> bool {
        self.before.is_some() && self.rows == Some(self.least())
    }

    /// Whether all of the table's rows are recorded.
    pub(crate) fn is_known_whole(&self) -> bool {
        self.is_exact() && self.before == Some(0)
    }

    /// A note on the row counts, if they are not as expected.
    pub(crate) fn finding(&self) -> Option<String> {
        let Some(rows) = self.rows else {
            return Some("the table's rows were not counted: this user may not read them all".to_owned());
        };
        let Self { recorded, before, .. } = *self;
        let earlier = match before {
            None | Some(0) => String::new(),
            Some(before) => format!(", and it had {before} rows before"),
        };
        let found = format!(
            "the table has {rows} rows; according to the records {recorded} were loaded into it{earlier}"
        );
        let rewritten = match self.rewritten {
            true => {
                "; since then it was truncated or rewritten (TRUNCATE, VACUUM FULL, CLUSTER or ALTER TABLE)"
            }
            false => "",
        };
        if self.lacks_rows() {
            return Some(found + rewritten);
        }
        let others = "; whether they are the loaded rows was not checked (--verify compares them)";
        (!self.is_exact()).then(|| found + rewritten + others)
    }

    /// The error for a table that has lost rows.
    pub(crate) fn error(&self, place: String, advice: impl Into<String>) -> Error {
        Error::new(Kind::Mismatch, self.finding().unwrap_or_default()).at(place).advise(advice)
    }
}

/// Whether this user may read all rows of tables.
pub(crate) fn may_look(tables: &[TableName], connection: &Connection, control: &Control<'_>) -> Result<bool> {
    let names: Vec<String> = tables.iter().map(TableName::quoted).collect();
    let sql = "SELECT coalesce(bool_and(pg_catalog.has_table_privilege(name::regclass, 'SELECT') \
                 AND NOT pg_catalog.row_security_active(name::regclass)), false) FROM unnest($1::text[]) name";
    value(connection, control, sql, &[&names])
}
