//! The columns that rows are encoded for, as the catalogue had them when the load was planned.
//!
//! Binary COPY has no types: the server reads eight bytes of a `bigint` as a `double precision` if the column has
//! become one. So the statement that records units compares the columns with the plan ([`PlannedColumns::are_there`]).
//! By then COPY holds a lock on the table, and nothing can change it before the commit. The lock does not extend to
//! composite types: a change after the comparison renames or converts the rows that are in, too.

use sawmill_loader::{TableName, literal};
use sawmill_pgcopy::Column;
use sawmill_pgwire::Connection;
use sawmill_source::{Error, Kind, Result};
use tokio_postgres::Row;

use crate::table::catalogue::{FromRow, Link};

/// The columns of a table that a load fills, and the attributes of composite types within them.
#[derive(Clone, Debug)]
pub(crate) struct PlannedColumns {
    pub table: TableName,
    oid: u32,
    columns: Vec<Attribute>,
    of_types: Vec<Attribute>,
    /// A column that was not there.
    lacking: Option<String>,
}

/// A column of a table, or an attribute of a composite type.
#[derive(Clone, Debug)]
struct Attribute {
    /// The table, or the relation of the type.
    relation: u32,
    relation_name: String,
    number: i16,
    name: String,
    type_oid: u32,
    modifier: i32,
    type_name: String,
    hash: i64,
}

/// A column in the record of a load.
pub(crate) struct RecordedColumn<'l> {
    pub name: &'l str,
    number: i16,
    pub type_oid: u32,
    pub modifier: i32,
}

impl<'l> RecordedColumn<'l> {
    pub(crate) fn read(line: &'l str) -> Option<Self> {
        let mut parts = line.splitn(4, ' ');
        let number = parts.next()?.parse().ok()?;
        let (type_oid, modifier) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { name: parts.next()?, number, type_oid, modifier })
    }
}

/// The first recorded column whose name another column of the table has `now`; both are lines of records.
pub(crate) fn moved<'l>(recorded: &'l [String], now: &[String]) -> Option<&'l str> {
    let now: Vec<RecordedColumn<'_>> = now.iter().filter_map(|line| RecordedColumn::read(line)).collect();
    let is_moved = |was: &RecordedColumn<'_>| {
        now.iter().any(|column| column.name == was.name && column.number != was.number)
    };
    recorded.iter().filter_map(|line| RecordedColumn::read(line)).find(is_moved).map(|was| was.name)
}

/// How a column differs from the plan.
pub(crate) struct Difference {
    pub what: String,
    /// Earlier rows have their values in another column now.
    pub moved: bool,
}

/// Identifies a column in one number.
const HASH: &str = "pg_catalog.hashtextextended(a.attname::text, (a.attnum::bigint << 48) \
                    # (a.atttypid::bigint << 16) # a.atttypmod::bigint)";
/// The same with the composite type that it belongs to.
const HASH_OF_TYPE: &str = "pg_catalog.hashtextextended(a.attname::text, (a.attnum::bigint << 48) \
                            # (a.atttypid::bigint << 16) # a.atttypmod::bigint # (a.attrelid::bigint << 20))";

impl PlannedColumns {
    /// The columns of these names in the table with this OID. Read them before the types that rows are
    /// encoded for, so that a change in between is noticed.
    pub(crate) fn read<'n>(
        link: Link<'_>,
        table: &TableName,
        oid: u32,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<Self> {
        let names: Vec<&str> = names.collect();
        let there = "a.attrelid = $1 AND a.attname = ANY ($2) AND a.attnum > 0 AND NOT a.attisdropped";
        let sql = format!("{} WHERE {there} ORDER BY a.attnum", select(HASH));
        let columns: Vec<Attribute> = link.rows(&sql, &[&oid, &names])?;
        let lacking = names.iter().find(|name| columns.iter().all(|column| column.name != **name));
        let lacking = lacking.map(|name| (*name).to_owned());
        let types: Vec<u32> = columns.iter().map(|column| column.type_oid).collect();
        // Types whose values contain others: arrays, domains, and composite types.
        let reached = format!(
            "WITH RECURSIVE reached(oid) AS (SELECT unnest($1::oid[]) UNION SELECT n.oid FROM reached r \
               JOIN pg_catalog.pg_type t ON t.oid = r.oid CROSS JOIN LATERAL (SELECT t.typelem UNION ALL \
                 SELECT t.typbasetype UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a \
                 WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped) n(oid)) \
             {} WHERE a.attrelid IN (SELECT t.typrelid FROM reached JOIN pg_catalog.pg_type t USING (oid) \
               WHERE t.typrelid <> 0) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum",
            select(HASH_OF_TYPE)
        );
        // Built-in types contain no attributes, and the query takes longer than the others.
        const FIRST_OF_USERS: u32 = 16384;
        let of_types = match types.iter().any(|oid| *oid >= FIRST_OF_USERS) {
            true => link.rows(&reached, &[&types])?,
            false => Vec::new(),
        };
        Ok(Self { table: table.clone(), oid, columns, of_types, lacking })
    }

    /// No columns, for a load that copies nothing.
    pub(crate) fn none(table: &TableName, oid: u32) -> Self {
        Self { table: table.clone(), oid, columns: Vec::new(), of_types: Vec::new(), lacking: None }
    }

    /// The condition that the planned columns and the named table are unchanged. `part` is a `bigint`
    /// expression, the OID of the part table with the rows, or null for none. The condition costs the server some 11 us
    /// a transaction (an INSERT of one unit's record takes 29 us without it): 1 % of a unit that takes a millisecond.
    pub(crate) fn are_there(&self, part: &str) -> String {
        if self.lacking.is_some() {
            return "false".to_owned();
        }
        let numbers: Vec<String> = self.columns.iter().map(|column| column.number.to_string()).collect();
        let sum = |attributes: &[Attribute]| attributes.iter().map(|a| i128::from(a.hash)).sum::<i128>();
        let name = literal(&self.table.quoted());
        let mut condition = format!(
            "(SELECT sum({HASH}) FROM pg_catalog.pg_attribute a WHERE a.attrelid = coalesce({part}, {oid})::oid \
               AND a.attnum = ANY ('{{{}}}'::int2[])) = {}::numeric \
             AND ({part} IS NOT NULL OR pg_catalog.to_regclass({name}) = {oid}::oid)",
            numbers.join(","),
            sum(&self.columns),
            oid = self.oid,
        );
        if !self.of_types.is_empty() {
            let mut relations: Vec<String> = self.of_types.iter().map(|a| a.relation.to_string()).collect();
            relations.dedup();
            condition += &format!(
                " AND (SELECT sum({HASH_OF_TYPE}) FROM pg_catalog.pg_attribute a \
                   WHERE a.attrelid = ANY ('{{{}}}'::oid[]) AND a.attnum > 0 AND NOT a.attisdropped) = {}::numeric",
                relations.join(","),
                sum(&self.of_types),
            );
        }
        condition
    }

    /// The change since the load was planned; `None` if there is none, or not any more.
    pub(crate) fn change(&self, link: Link<'_>) -> Result<Option<Error>> {
        let place = format!("table {}, {}", self.table, link.place());
        let named = "SELECT pg_catalog.to_regclass($1) = $2::oid";
        if link.value::<Option<bool>>(named, &[&self.table.quoted(), &self.oid])? != Some(true) {
            return Ok(Some(another_table(place)));
        }
        let attributes = || self.columns.iter().chain(&self.of_types);
        let mut relations: Vec<u32> = attributes().map(|attribute| attribute.relation).collect();
        relations.dedup();
        let sql =
            format!("{} WHERE a.attrelid = ANY ($1) AND a.attnum > 0 AND NOT a.attisdropped", select(HASH));
        let now: Vec<Attribute> = link.rows(&sql, &[&relations])?;
        let added = now
            .iter()
            .filter(|now| now.relation != self.oid)
            .find(|now| attributes().all(|was| (was.relation, was.number) != (now.relation, now.number)));
        let lacking = self.lacking.iter().find(|name| now.iter().any(|now| now.name == **name));
        let lacking =
            lacking.map(|name| Difference { what: format!("column {name:?} was added"), moved: false });
        let difference =
            lacking.or_else(|| attributes().find_map(|was| was.difference(&now))).or_else(|| {
                let Attribute { relation_name, name, .. } = added?;
                Some(Difference {
                    what: format!("type {relation_name} has a new attribute {name:?}"),
                    moved: true,
                })
            });
        Ok(difference.map(|difference| {
            let what =
                format!("{} since the load was planned; binary COPY would misread its rows", difference.what);
            Error::new(Kind::Changed, what).at(place).advise(difference.advice())
        }))
    }

    /// Refuses, in the transaction that has merged rows into another table, columns that have other types there: the
    /// server has converted the values.
    pub(crate) fn refuse_converted(&self, link: Link<'_>, table: &TableName, oid: u32) -> Result<()> {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        let sql = format!("{} WHERE a.attrelid = $1 AND a.attname = ANY ($2)", select(HASH));
        for now in link.rows::<Attribute>(&sql, &[&oid, &names])? {
            let was = self.columns.iter().find(|column| column.name == now.name);
            let Some(was) = was.filter(|was| !was.has_type_of(&now)) else { continue };
            let what = format!(
                "column {:?} was {} when its rows were gathered and is {} now; the merge would convert them",
                now.name, was.type_name, now.type_name
            );
            return Err(Error::new(Kind::Changed, what)
                .at(format!("table {table}, {}", link.place()))
                .advise("nothing was merged: forget the load (sawmill load forget) and load again"));
        }
        Ok(())
    }

    /// The columns for the load's record, in the order in which rows have them.
    pub(crate) fn recorded(&self, columns: &[Column]) -> Vec<String> {
        let line = |a: &Attribute| format!("{} {} {} {}", a.number, a.type_oid, a.modifier, a.name);
        let found = columns.iter().filter_map(|column| self.columns.iter().find(|a| a.name == column.name));
        found.map(line).collect()
    }

    /// How the columns differ from those that the load's record has.
    pub(crate) fn since(&self, recorded: &[String]) -> Option<Difference> {
        let was = recorded.iter().filter_map(|line| RecordedColumn::read(line));
        was.into_iter().find_map(|RecordedColumn { name, number, type_oid, modifier }| {
            let now = self.columns.iter().find(|column| column.name == name)?;
            if now.number != number {
                let what = format!("column {name:?} is another one than");
                return Some(Difference { what, moved: true });
            }
            let same = (now.type_oid, now.modifier) == (type_oid, modifier);
            (!same).then(|| Difference {
                what: format!("column {name:?} is {} and had another type", now.type_name),
                moved: false,
            })
        })
    }
}

impl Difference {
    /// The advice if a running load noticed the difference.
    fn advice(&self) -> &'static str {
        if self.moved {
            FORGET
        } else {
            "the rows of the open transaction were rolled back: run the same command again, which loads the rest if the \
                 columns as they are now take the files' values; otherwise undo the change first"
        }
    }
}

/// The advice for loaded rows whose columns have changed.
pub(crate) const FORGET: &str = "rows that are in may have their values in other columns now: forget the load (sawmill \
     load forget), remove what it brought, and load again";

/// The table's name belongs to another table, or to none.
pub(crate) fn another_table(place: String) -> Error {
    let what = "the table was dropped or renamed while the load ran: its name now belongs to another table, or to none";
    Error::new(Kind::Mismatch, what).at(place).advise(
        "restore the table under its name, or name the table as it is called now, and run the same command again; or forget \
         the load (sawmill load forget) and load again",
    )
}

/// The server holds other columns than those that the rows were encoded for.
pub(crate) fn columns_changed() -> Error {
    Error::new(Kind::Server, "the table's columns changed while rows were copied into it")
        .advise("nothing of these rows was committed: run the same command again")
}

fn select(hash: &str) -> String {
    format!(
        "SELECT a.attrelid, a.attrelid::regclass::text, a.attnum, a.attname::text, a.atttypid, a.atttypmod, \
           pg_catalog.format_type(a.atttypid, a.atttypmod), {hash} FROM pg_catalog.pg_attribute a"
    )
}

impl FromRow for Attribute {
    fn read(connection: &Connection, row: &Row) -> Result<Self> {
        let (relation, relation_name, number, name, type_oid, modifier, type_name, hash) =
            FromRow::read(connection, row)?;
        Ok(Self { relation, relation_name, number, name, type_oid, modifier, type_name, hash })
    }
}

impl Attribute {
    fn has_type_of(&self, other: &Self) -> bool {
        (self.type_oid, self.modifier) == (other.type_oid, other.modifier)
    }

    /// The difference from the present attributes, if any.
    fn difference(&self, now: &[Self]) -> Option<Difference> {
        let name = &self.name;
        let mut of_relation = now.iter().filter(|now| now.relation == self.relation);
        let Some(now) = of_relation.find(|now| now.number == self.number) else {
            return Some(Difference { what: format!("column {name:?} was dropped"), moved: true });
        };
        if now.name != *name {
            return Some(Difference {
                what: format!("column {name:?} was renamed to {:?}", now.name),
                moved: true,
            });
        }
        (!self.has_type_of(now)).then(|| Difference {
            what: format!("column {name:?} was {} and became {}", self.type_name, now.type_name),
            moved: false,
        })
    }
}
