//! Tables and schemas in the server's catalogue.

use std::sync::Arc;

use sawmill_loader::TableName;
use sawmill_pgcopy::{Attribute, ColumnType, Composite, Part, PgType};
use sawmill_pgwire::{COMMIT_DURABLY, Connection};
use sawmill_source::{Control, Error, Kind, Result};
use tokio_postgres::types::{FromSql, ToSql};
use tokio_postgres::{Row, Statement};

/// A connection, and what ends the work on it.
#[derive(Clone, Copy)]
pub(crate) struct Link<'c> {
    pub connection: &'c Connection,
    pub control: &'c Control<'c>,
}

/// The parameters of a statement.
pub(crate) type Parameters<'p> = &'p [&'p (dyn ToSql + Sync)];

impl<'c> Link<'c> {
    pub(crate) fn new(connection: &'c Connection, control: &'c Control<'_>) -> Self {
        Self { connection, control }
    }

    pub(crate) fn place(&self) -> &'c str {
        self.connection.place()
    }

    pub(crate) fn begin(&self) -> Result<()> {
        self.connection.begin(self.control)
    }

    pub(crate) fn commit(&self) -> Result<()> {
        self.connection.commit(self.control)
    }

    /// Commits the open transaction, and makes everything committed before it last.
    ///
    /// With `synchronous_commit = off` a server crash can undo commits that the server has confirmed; with less
    /// than `on` they may be missing on a replica that takes over. The server writes its log in the order of the
    /// records, so one commit that waits for the log also makes all earlier ones last.
    pub(crate) fn commit_durably(&self) -> Result<()> {
        self.batch(COMMIT_DURABLY)?;
        self.commit()
    }

    pub(crate) fn batch(&self, sql: &str) -> Result<()> {
        self.connection.batch(self.control, sql)
    }

    pub(crate) fn execute(&self, sql: &str, parameters: Parameters<'_>) -> Result<u64> {
        self.connection.execute(self.control, sql, parameters)
    }

    pub(crate) fn prepare(&self, sql: &str) -> Result<Statement> {
        self.connection.wait(self.control, self.connection.client.prepare(sql))
    }

    /// All rows, to be read one by one with [`get`](Self::get).
    pub(crate) fn query(&self, sql: &str, parameters: Parameters<'_>) -> Result<Vec<Row>> {
        self.connection.query(self.control, sql, parameters)
    }

    pub(crate) fn get<'r, T: FromSql<'r>>(&self, row: &'r Row, column: usize) -> Result<T> {
        self.connection.get(row, column)
    }

    /// All rows.
    pub(crate) fn rows<T: FromRow>(&self, sql: &str, parameters: Parameters<'_>) -> Result<Vec<T>> {
        let rows = self.connection.query(self.control, sql, parameters)?;
        rows.iter().map(|row| T::read(self.connection, row)).collect()
    }

    /// The first row.
    pub(crate) fn first<T: FromRow>(&self, sql: &str, parameters: Parameters<'_>) -> Result<Option<T>> {
        let rows = self.connection.query(self.control, sql, parameters)?;
        rows.first().map(|row| T::read(self.connection, row)).transpose()
    }

    /// The first column of all rows.
    pub(crate) fn list<T: for<'r> FromSql<'r>>(
        &self,
        sql: &str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<T>> {
        Ok(self.rows(sql, parameters)?.into_iter().map(|(value,)| value).collect())
    }

    /// The value that a query returns in one row and column; the type's default if it returns no row.
    pub(crate) fn value<T: Default + for<'r> FromSql<'r>>(
        &self,
        sql: &str,
        parameters: Parameters<'_>,
    ) -> Result<T> {
        Ok(self.first(sql, parameters)?.map_or_else(T::default, |(value,)| value))
    }
}

/// A value read from a row: its first columns, or a type made of them.
pub(crate) trait FromRow: Sized {
    fn read(connection: &Connection, row: &Row) -> Result<Self>;
}

macro_rules! tuples {
    ($($($value:ident $at:tt)+;)+) => {
        $(impl<$($value: for<'r> FromSql<'r>),+> FromRow for ($($value,)+) {
            fn read(connection: &Connection, row: &Row) -> Result<Self> {
                Ok(($(connection.get(row, $at)?,)+))
            }
        })+
    };
}

tuples! {
    A 0;
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
    A 0 B 1 C 2 D 3 E 4;
    A 0 B 1 C 2 D 3 E 4 F 5;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7;
}

/// A schema and a name.
impl FromRow for TableName {
    fn read(connection: &Connection, row: &Row) -> Result<Self> {
        let (schema, name) = <(String, String)>::read(connection, row)?;
        Self::new(Some(&schema), &name)
    }
}

/// A table in the catalogue.
pub(crate) struct FoundTable {
    pub oid: u32,
    pub schema: String,
    /// `pg_class.relkind`.
    pub kind: String,
    /// A crash of the server empties it (`pg_class.relpersistence`).
    pub unlogged: bool,
}

impl FoundTable {
    /// Refuses everything but tables.
    pub(crate) fn check_table(&self, table: &TableName, place: &str) -> Result<()> {
        let (what, advice) = match self.kind.as_str() {
            "r" | "p" => return Ok(()),
            "v" => ("a view", "load into the table that it reads"),
            "m" => ("a materialized view", "load into a table that it reads, and refresh it"),
            "f" => ("a foreign table", "load into the table on its own server"),
            "S" => ("a sequence", "choose another name"),
            "i" | "I" => ("an index", "choose another name"),
            _ => ("a type or something else", "choose another name"),
        };
        Err(Error::new(Kind::Schema, format!("it is {what}, not a table"))
            .at(format!("table {table}, {place}"))
            .advise(advice))
    }
}

/// Looks a table up by its name.
pub(crate) fn find(link: Link<'_>, table: &TableName) -> Result<Option<FoundTable>> {
    let sql = "SELECT c.oid, n.nspname::text, c.relkind::text, c.relpersistence = 'u' FROM pg_catalog.pg_class c \
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)";
    let found = link.first(sql, &[&table.quoted()])?;
    Ok(found.map(|(oid, schema, kind, unlogged)| FoundTable { oid, schema, kind, unlogged }))
}

/// The current name of a table.
pub(crate) fn name_of(link: Link<'_>, oid: u32) -> Result<Option<TableName>> {
    let sql = "SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c \
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1";
    link.first::<TableName>(sql, &[&oid])
}

/// The schema of new tables whose name has none.
pub(crate) fn current_schema(link: Link<'_>) -> Result<String> {
    let schema: Option<String> = link.value("SELECT current_schema()::text", &[])?;
    schema.ok_or_else(|| {
        Error::new(Kind::Config, "the search path names no schema that exists")
            .at(link.place())
            .advise("name the table's schema")
    })
}

/// How deep nested types are followed; a composite type cannot contain itself.
const MAX_DEPTH: usize = 32;

/// The type of `pg_attribute.atttypid` and `atttypmod`; `None` if the loader cannot write it.
pub(crate) fn read(link: Link<'_>, oid: u32, modifier: i32) -> Result<Option<ColumnType>> {
    read_below(link, oid, modifier, MAX_DEPTH)
}

/// A type: its element, its relation, its schema, name and kind, its base type with a modifier, and how it is received.
type FoundType = (u32, u32, String, String, String, u32, i32, String);

fn read_below(link: Link<'_>, oid: u32, modifier: i32, depth: usize) -> Result<Option<ColumnType>> {
    if let Some(pg_type) = PgType::of_catalogue(oid, modifier) {
        return Ok(Some(ColumnType::Plain(pg_type)));
    }
    if depth == 0 {
        return Ok(None);
    }
    // An array type is the one that its element type names in typarray. Other types with elements, such as
    // point and oidvector, are not arrays. Row types of tables are left out: their columns may change.
    let sql = "SELECT coalesce((SELECT e.oid FROM pg_catalog.pg_type e \
                 WHERE e.oid = t.typelem AND e.typarray = t.oid), 0::oid), \
               coalesce(c.oid, 0::oid), n.nspname::text, t.typname::text, \
               t.typtype::text, t.typbasetype, t.typtypmod, \
               coalesce((SELECT prosrc FROM pg_catalog.pg_proc p WHERE p.oid = t.typreceive), '') \
               FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace \
               LEFT JOIN pg_catalog.pg_class c ON c.oid = t.typrelid AND t.typtype = 'c' AND c.relkind = 'c' \
               WHERE t.oid = $1";
    let found: Option<FoundType> = link.first(sql, &[&oid])?;
    let Some((element, relation, schema, name, kind, base, base_modifier, receive)) = found else {
        return Ok(None);
    };
    let name = || TableName::new(Some(&schema), &name);
    match (kind.as_str(), receive.as_str()) {
        // A domain is written as its base type, and the server checks it.
        ("d", _) => return read_below(link, base, base_modifier, depth - 1),
        ("e", _) => return Ok(Some(ColumnType::Enumeration(name()?.quoted()))),
        // citext and the like.
        ("b", "textrecv") => return Ok(Some(ColumnType::Plain(PgType::Text))),
        _ => {}
    }
    if element != 0 {
        // An array's modifier is its elements' modifier.
        let part = read_below(link, element, modifier, depth - 1)?;
        return Ok(part.map(|column_type| ColumnType::Array(Arc::new(Part { column_type, oid: element }))));
    }
    if relation == 0 {
        return Ok(None);
    }
    let sql = "SELECT attname::text, atttypid, atttypmod FROM pg_catalog.pg_attribute \
               WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped ORDER BY attnum";
    let mut attributes = Vec::new();
    for (name, oid, modifier) in link.rows(sql, &[&relation])? {
        let Some(column_type) = read_below(link, oid, modifier, depth - 1)? else { return Ok(None) };
        attributes.push(Attribute { name, part: Part { column_type, oid } });
    }
    let name = name()?.quoted();
    Ok(Some(ColumnType::Composite(Arc::new(Composite { name, attributes }))))
}
