//! Whether a table still has the rows that the records of loads say are in it.

use sawmill_loader::TableName;
use sawmill_pgwire::Connection;
use sawmill_source::{Control, Error, Kind, Result};

use crate::records::checkpoint::Checkpoints;
use crate::table::part_tables;

/// A table's rows, counted, and those that its loads have recorded, seen at the same moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Presence {
    /// None where this user may not look at all rows.
    pub rows: Option<u64>,
    /// Rows of all units that are recorded.
    pub recorded: u64,
    /// Rows that the table had before the first of these loads; none where that was not counted.
    pub before: Option<u64>,
    /// The table's rows are in another file than when the last of these loads began: the table was truncated, or
    /// rewritten by `VACUUM FULL`, `CLUSTER` or `ALTER TABLE`.
    pub rewritten: bool,
}

/// Which loads are looked at.
#[derive(Clone, Copy)]
pub(crate) enum Of<'a> {
    /// All whose rows go into the table with this number.
    Table(u32),
    /// One load, whose rows gather in the table and in its parts.
    Load(&'a str),
}

impl Presence {
    /// Counts the rows of a table.
    pub(crate) fn of(
        of: Of<'_>,
        table: &TableName,
        checkpoints: &Checkpoints,
        connection: &Connection,
        control: &Control<'_>,
    ) -> Result<Self> {
        let mut counted = vec![table.clone()];
        if let Of::Load(id) = of {
            let parts = part_tables::of_load(connection, checkpoints, id, control)?;
            counted.extend(parts.into_iter().filter(|part| !part.attached).map(|part| part.name));
        }
        let may_look = may_look(&counted, connection, control)?;
        let counts = counted.iter().map(|table| format!("(SELECT count(*) FROM {})", table.quoted()));
        let count = match may_look {
            true => counts.collect::<Vec<_>>().join(" + "),
            false => "NULL::bigint".to_owned(),
        };
        let (which, id, oid) = match of {
            Of::Table(oid) => ("table_oid = $2::bigint AND mode <> 'upsert' AND $1 = ''", "", oid),
            Of::Load(id) => ("load_id = $1 AND $2::bigint = 0", id, 0),
        };
        let sql = format!(
            "WITH these AS (SELECT * FROM {} WHERE {which}) \
             SELECT {count}, \
               (SELECT coalesce(sum(rows), 0)::bigint FROM {} u WHERE load_id IN (SELECT load_id FROM these)), \
               (SELECT CASE WHEN mode IN ('append') THEN before_rows ELSE 0 END FROM these ORDER BY begun LIMIT 1), \
               (SELECT coalesce(table_file <> pg_catalog.pg_relation_filenode(table_oid::oid), false) FROM these \
                ORDER BY begun DESC LIMIT 1)",
            checkpoints.table("loads"),
            checkpoints.all_units()
        );
        let rows = connection.query(control, &sql, &[&id, &i64::from(oid)])?;
        let Some(row) = rows.first() else {
            return Err(Error::new(Kind::Server, "no rows were counted").at(connection.place()));
        };
        let (rows, recorded): (Option<i64>, i64) = (connection.get(row, 0)?, connection.get(row, 1)?);
        let (before, rewritten): (Option<i64>, Option<bool>) =
            (connection.get(row, 2)?, connection.get(row, 3)?);
        Ok(Self {
            rows: rows.map(|rows| rows as u64),
            recorded: recorded as u64,
            before: before.map(|rows| rows as u64),
            rewritten: rewritten.unwrap_or(false),
        })
    }

    /// Rows that must be there.
    fn least(&self) -> u64 {
        self.recorded + self.before.unwrap_or(0)
    }

    /// Whether rows are gone.
    pub(crate) fn lacks_rows(&self) -> bool {
        self.rows.is_some_and(|rows| rows < self.least())
    }

    /// Whether all rows are gone, or nobody knows which are: the table was truncated, or is another one.
    pub(crate) fn was_emptied(&self) -> bool {
        self.lacks_rows() && (self.rewritten || self.rows == Some(0))
    }

    /// Whether the table is known to hold something else than the recorded rows and those that were there before.
    pub(crate) fn is_other_than_recorded(&self) -> bool {
        self.rows.is_some() && !self.is_exact()
    }

    /// Whether the table has the recorded rows and those that were there before, and no others.
    pub(crate) fn is_exact(&self) -> bool {
        self.before.is_some() && self.rows == Some(self.least())
    }

    /// Whether all of the table's rows are recorded.
    pub(crate) fn is_known_whole(&self) -> bool {
        self.is_exact() && self.before == Some(0)
    }

    /// What was found, where there is something to say about it.
    pub(crate) fn finding(&self) -> Option<String> {
        let Some(rows) = self.rows else {
            return Some("the table's rows were not counted: this user may not read it".to_owned());
        };
        let Self { recorded, before, .. } = *self;
        let earlier = match before {
            None | Some(0) => String::new(),
            Some(before) => format!(", and {before} were there before"),
        };
        let found =
            format!("the table has {rows} rows; {recorded} were loaded into it, as the records say{earlier}");
        let rewritten = match self.rewritten {
            true => {
                "; since then it was truncated or rewritten (TRUNCATE, VACUUM FULL, CLUSTER or ALTER TABLE)"
            }
            false => "",
        };
        if self.lacks_rows() {
            return Some(found + rewritten);
        }
        let others = "; which of its rows are the loaded ones was not looked at (--verify compares them)";
        (!self.is_exact()).then(|| found + rewritten + others)
    }

    /// The error for a table that has lost rows.
    pub(crate) fn error(&self, place: String, advice: impl Into<String>) -> Error {
        Error::new(Kind::Mismatch, self.finding().unwrap_or_default()).at(place).advise(advice)
    }
}

/// Whether this user sees all rows of tables.
pub(crate) fn may_look(tables: &[TableName], connection: &Connection, control: &Control<'_>) -> Result<bool> {
    let names: Vec<String> = tables.iter().map(TableName::quoted).collect();
    let sql = "SELECT coalesce(bool_and(pg_catalog.has_table_privilege(name::regclass, 'SELECT') \
                 AND NOT pg_catalog.row_security_active(name::regclass)), false) FROM unnest($1::text[]) name";
    let rows = connection.query(control, sql, &[&names])?;
    rows.first().map_or(Ok(false), |row| connection.get(row, 0))
}
