//! The columns of an existing table, the columns that a source needs, and how they match.

use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use sawmill_loader::{LoadOptions, TableName, check_name, quote, renamed};
use sawmill_pgcopy::{Column, ColumnType, Enums, PgType, ValueOptions, is_enum, is_json, value_type};
use sawmill_pgwire::Connection;
use sawmill_source::{Control, Error, Kind, Result};

use crate::table::catalogue::{self, FoundTable, Link};
use crate::target::Postgres;
use crate::types::made_types::{MadeType, Nested, natural_type};
use crate::types::server_type::{Asker, LOSSES, UNBOUND, of_server};

/// System columns of every table.
const SYSTEM: [&str; 6] = ["tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"];
/// `MaxHeapAttributeNumber` in src/include/access/htup_details.h.
const MAX_COLUMNS: usize = 1600;

/// The pattern of an expression that the server evaluates to the time, as SQL.
const NOW: &str = "'(now|transaction_timestamp|statement_timestamp|clock_timestamp)[(][)]|current_timestamp|localtimestamp'";

/// A column of an existing table.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableColumn {
    pub name: String,
    /// The type's name as the server writes it.
    pub type_name: String,
    /// `pg_attribute.atttypid`.
    pub type_oid: u32,
    /// `pg_attribute.atttypmod`.
    pub modifier: i32,
    /// `None` if the loader cannot write it.
    pub column_type: Option<ColumnType>,
    /// The same column for text that has no encoder: the server reads it.
    pub read_by_server: Option<ColumnType>,
    pub not_null: bool,
    /// It has a default, is an identity column or is computed: the server fills it.
    pub filled: bool,
    /// Its default is the time of the transaction or of the statement.
    pub stamped: bool,
    /// It is computed from other columns and cannot be written.
    pub generated: bool,
    /// It is GENERATED ALWAYS AS IDENTITY: only COPY writes it, past the server's own numbers.
    pub numbered: bool,
}

/// The columns of a table, in their order.
pub(crate) fn read(link: Link<'_>, oid: u32) -> Result<Vec<TableColumn>> {
    // attgenerated exists since version 12; to_jsonb reads it if it exists.
    let sql = format!(
        "SELECT attname::text, format_type(atttypid, atttypmod), atttypid, atttypmod, attnotnull, \
         atthasdef OR attidentity <> '', coalesce(to_jsonb(a)->>'attgenerated', '') <> '', \
         attidentity = 'a', {UNBOUND}, \
         coalesce((SELECT pg_catalog.pg_get_expr(adbin, adrelid) ~* {NOW} FROM pg_catalog.pg_attrdef \
           WHERE adrelid = attrelid AND adnum = attnum), false), {LOSSES} \
         FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
         WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    );
    let rows = link.query(&sql, &[&oid])?;
    let asker = Asker::new(link.connection.server());
    let mut columns = Vec::with_capacity(rows.len());
    for row in &rows {
        let (filled, generated): (bool, bool) = (link.get(row, 5)?, link.get(row, 6)?);
        let (oid, modifier): (u32, i32) = (link.get(row, 2)?, link.get(row, 3)?);
        let column_type = if generated { None } else { catalogue::read(link, oid, modifier)? };
        let (type_name, unbound): (String, Option<String>) = (link.get(row, 1)?, link.get(row, 8)?);
        let unbound = unbound.filter(|_| !generated);
        let losses = link.get::<Option<Vec<String>>>(row, 10)?.unwrap_or_default();
        columns.push(TableColumn {
            name: link.get(row, 0)?,
            read_by_server: unbound.map(|unbound| of_server(&asker, &type_name, &unbound, &losses)),
            type_name,
            type_oid: oid,
            modifier,
            column_type,
            not_null: link.get(row, 4)?,
            filled: filled || generated,
            stamped: link.get::<bool>(row, 9)? && !generated,
            generated,
            numbered: link.get(row, 7)?,
        });
    }
    Ok(columns)
}

impl Postgres {
    /// The schema of a source, whose columns get the names of the table's if they are matched by their position.
    ///
    /// # Errors
    /// More columns than in the table.
    pub(crate) fn renamed(
        &self,
        schema: &SchemaRef,
        existing: &[TableColumn],
        table: &TableName,
    ) -> Result<SchemaRef> {
        if !self.by_position {
            return Ok(Arc::clone(schema));
        }
        // A column of a type that cannot be written keeps its place: its value must not go into the next one.
        let names = existing.iter().filter(|column| !column.generated).map(|column| column.name.as_str());
        renamed(schema, names.collect(), table)
    }

    /// The columns of the table that a statement without names fills, in their order: name, and type as SQL writes it.
    /// Columns that the server computes or numbers (GENERATED ALWAYS) are left out, and timestamps are text if that
    /// of a zone is converted. Opens a connection for it.
    ///
    /// # Errors
    /// No connection, or no such table.
    pub fn columns_of_table(&self, control: &Control<'_>) -> Result<Vec<(String, String)>> {
        let columns = self.table_and_columns(control)?.1.into_iter();
        let columns = columns.filter(|column| !column.generated && !column.numbered);
        let is_converted = |name: &str| {
            self.values.timezone.is_some() && name.starts_with("timestamp") && !name.ends_with("[]")
        };
        let type_of = |name: String| if is_converted(&name) { "text".to_owned() } else { name };
        Ok(columns.map(|column| (column.name, type_of(column.type_name))).collect())
    }

    /// The columns of the table that rows fill, in their order, and whether each is text (`text`, `varchar`, `char`);
    /// none without a table. Opens a connection for it.
    ///
    /// # Errors
    /// No connection.
    pub fn columns_of_text(
        &self,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<Vec<(String, bool)>> {
        self.retried(options.retries, control, || {
            let connection = Connection::open(&self.server, control)?;
            let link = Link::new(&connection, control);
            let Some(found) = catalogue::find(link, &self.table)? else { return Ok(Vec::new()) };
            let columns = read(link, found.oid)?.into_iter();
            let named = columns.filter(|column| !column.generated).map(|column| {
                let of = column.column_type.as_ref().and_then(ColumnType::plain);
                let is_text = matches!(of, Some(PgType::Text | PgType::Varchar(_) | PgType::Char(_)));
                (column.name, is_text)
            });
            Ok(named.collect())
        })
    }

    /// The table, which must exist, and its columns. Opens a connection for it.
    pub(crate) fn table_and_columns(&self, control: &Control<'_>) -> Result<(TableName, Vec<TableColumn>)> {
        let connection = Connection::open(&self.server, control)?;
        let link = Link::new(&connection, control);
        let found = self.find(link)?;
        Ok((self.table.within(&found.schema), read(link, found.oid)?))
    }

    /// The table, which must exist.
    pub(crate) fn find(&self, link: Link<'_>) -> Result<FoundTable> {
        let found = catalogue::find(link, &self.table)?.ok_or_else(|| {
            Error::new(Kind::Schema, "the table does not exist")
                .at(format!("table {}, {}", self.table, link.place()))
                .advise("check its name, or create it")
        })?;
        found.check_table(&self.table, link.place())?;
        Ok(found)
    }
}

/// Refuses columns that the server numbers itself. COPY writes them all the same, and the server gives the same numbers to
/// other rows later.
pub(crate) fn refuse_numbered(schema: &Schema, existing: &[TableColumn], table: &TableName) -> Result<()> {
    let is_numbered = |name: &String| existing.iter().any(|column| column.numbered && column.name == *name);
    let numbered = schema.fields().iter().map(|field| field.name()).filter(|name| is_numbered(name));
    let refused: Vec<String> = numbered
        .map(|name| format!("the table numbers column {name:?} itself (GENERATED ALWAYS AS IDENTITY)"))
        .collect();
    match refused.is_empty() {
        true => Ok(()),
        false => Err(Error::new(Kind::Schema, refused.join("; ")).at(format!("table {table}"))),
    }
}

/// A table to create: its columns, and the types to create before it, inner ones first.
pub(crate) struct NewTable {
    pub columns: Arc<Vec<Column>>,
    pub types: Vec<MadeType>,
    /// The table that it will be.
    pub named: TableName,
}

/// A new table for this schema. One error names everything that cannot be represented.
pub(crate) fn natural(
    schema: &Schema,
    table: &TableName,
    nested: Nested,
    options: &ValueOptions,
) -> Result<NewTable> {
    let (mut types, mut enumerations) = (Vec::new(), Vec::new());
    let mut columns = Vec::with_capacity(schema.fields().len());
    let mut refused = Vec::new();
    for (i, field) in schema.fields().iter().enumerate() {
        let name = table.below(field.name());
        let column_type = match is_json(field) {
            true => Ok(ColumnType::Plain(PgType::Jsonb)),
            false if options.enums == Enums::Enum && is_enum(field) => {
                enumerations.push(MadeType::Enumeration {
                    name: name.clone(),
                    column: i,
                    labels: Vec::new(),
                });
                Ok(ColumnType::Enumeration(name.quoted()))
            }
            false => natural_type(field, nested, &name, &mut types),
        };
        match column_type.and_then(|column_type| Column::new(field, i, column_type, options)) {
            Ok(column) => columns.push(column),
            Err(what) => refused.push(format!("column {:?}: {what}", field.name())),
        }
        if let Err(what) = check_name(field.name()) {
            refused.push(format!("column {:?}: {what}", field.name()));
        }
        if SYSTEM.contains(&field.name().as_str()) {
            refused.push(format!("column {:?}: every table has a system column of that name", field.name()));
        }
    }
    let types: Vec<MadeType> = types.into_iter().map(MadeType::Composite).chain(enumerations).collect();
    let mut names: Vec<&str> = types.iter().map(|made| made.name().name()).collect();
    names.sort_unstable();
    for pair in names.windows(2).filter(|pair| pair[0] == pair[1]) {
        refused.push(format!("two structs or enumerations would both be the type {:?}", pair[0]));
    }
    Ok(NewTable { columns: checked(columns, refused, schema, table)?, types, named: table.clone() })
}

/// The columns of an existing table that this schema fills, matched by name. One error names all missing,
/// extra and incompatible columns.
pub(crate) fn matched(
    schema: &Schema,
    existing: &[TableColumn],
    table: &TableName,
    options: &ValueOptions,
) -> Result<Arc<Vec<Column>>> {
    matched_of(&names_of(schema), schema, existing, table, options)
}

/// The names of a schema's columns.
pub(crate) fn names_of(schema: &Schema) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

/// As [`matched`], of the columns with these names, in their order; the others are not loaded.
pub(crate) fn matched_of(
    names: &[String],
    schema: &Schema,
    existing: &[TableColumn],
    table: &TableName,
    options: &ValueOptions,
) -> Result<Arc<Vec<Column>>> {
    let positions: Vec<usize> = match names.len() == schema.fields().len() {
        // Two columns of one name are an error below.
        true if names.iter().eq(schema.fields().iter().map(|field| field.name())) => {
            (0..names.len()).collect()
        }
        _ => names.iter().filter_map(|name| schema.index_of(name).ok()).collect(),
    };
    let mut columns = Vec::with_capacity(positions.len());
    let mut refused = Vec::new();
    let fields = positions.iter().map(|i| (*i, schema.field(*i)));
    for (i, field) in fields.clone() {
        let Some(theirs) = existing.iter().find(|column| column.name == *field.name()) else {
            refused.push(format!("column {:?} is not in the table", field.name()));
            continue;
        };
        if theirs.generated {
            refused.push(format!("the table computes column {:?} (GENERATED ALWAYS AS)", field.name()));
            continue;
        }
        let planned = |column_type: &Option<ColumnType>| {
            let fitting = column_type.clone().ok_or_else(String::new);
            fitting.and_then(|column_type| Column::new(field, i, column_type, options))
        };
        // A type with an encoder says at once what it does not take; only its text may still be the server's to read.
        let by_server = theirs.column_type.is_none() || value_type(field).is_string();
        let by_server = theirs.read_by_server.as_ref().filter(|_| by_server).cloned();
        let fitting = planned(&theirs.column_type);
        match fitting.or_else(|why| planned(&by_server).map_err(|_| why)) {
            Ok(column) => columns.push(column),
            Err(why) => {
                let why = if why.is_empty() { why } else { format!(": {why}") };
                refused.push(format!(
                    "column {:?} is {} in the table, which cannot take {} exactly{why}",
                    field.name(),
                    theirs.type_name,
                    field.data_type()
                ));
            }
        }
    }
    let schema = Schema::new(fields.map(|(_, field)| field.clone()).collect::<Vec<Field>>());
    for theirs in lacking(&schema, existing).filter(|theirs| theirs.not_null && !theirs.filled) {
        refused.push(format!(
            "column {:?} of the table is not in the source, is NOT NULL and has no default",
            theirs.name
        ));
    }
    checked(columns, refused, &schema, table)
}

/// How values are converted for columns that do not take them as they are, one line each.
pub(crate) fn conversions(schema: &Schema, columns: &[Column]) -> Vec<String> {
    let line = |column: &Column| {
        let from = schema.fields().get(column.source)?.data_type();
        let how = column.conversion()?;
        Some(format!("column {:?}: {from} to {}, {how}", column.name, column.column_type))
    };
    columns.iter().filter_map(line).collect()
}

/// How the columns that this schema lacks are filled, except the one that a merge writes.
pub(crate) fn not_filled(
    schema: &Schema,
    existing: &[TableColumn],
    merged_time: Option<&str>,
) -> Vec<String> {
    let given = |column: &TableColumn| match (column.generated, column.filled) {
        (true, _) => "computed",
        (_, true) => "its default",
        (_, false) => "null",
    };
    let lacking = lacking(schema, existing).filter(|column| Some(column.name.as_str()) != merged_time);
    lacking.map(|column| format!("{:?} ({})", column.name, given(column))).collect()
}

/// The columns of an existing table that this schema lacks.
pub(crate) fn lacking<'a>(
    schema: &'a Schema,
    existing: &'a [TableColumn],
) -> impl Iterator<Item = &'a TableColumn> {
    existing.iter().filter(|theirs| schema.fields().iter().all(|field| *field.name() != theirs.name))
}

fn checked(
    columns: Vec<Column>,
    mut refused: Vec<String>,
    schema: &Schema,
    table: &TableName,
) -> Result<Arc<Vec<Column>>> {
    let mut names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    names.sort_unstable();
    for pair in names.windows(2).filter(|pair| pair[0] == pair[1]) {
        refused.push(format!("column {:?} occurs twice", pair[0]));
    }
    if names.is_empty() {
        return Err(Error::new(Kind::Schema, "the files have no columns")
            .at(format!("table {table}"))
            .advise("load files that have columns"));
    }
    if names.len() > MAX_COLUMNS {
        refused.push(format!(
            "the source has {} columns, a table of PostgreSQL at most {MAX_COLUMNS}",
            names.len()
        ));
    }
    match refused.is_empty() {
        true => Ok(Arc::new(columns)),
        false => Err(Error::new(Kind::Schema, refused.join("; "))
            .at(format!("table {table}"))
            .advise(
                "rename columns (--rename old=new), leave some out (--columns a,b), change them in the source, or load \
                 into another table",
            )),
    }
}

/// How the columns of an existing table differ from those that a new one would get; empty if they do not.
pub(crate) fn differences(wanted: &[Column], existing: &[TableColumn]) -> Vec<String> {
    let mut lines = Vec::new();
    for column in wanted {
        match existing.iter().find(|theirs| theirs.name == column.name) {
            None => lines.push(format!("it has no column {:?}", column.name)),
            Some(theirs) => {
                let same =
                    theirs.column_type.as_ref().is_some_and(|theirs| theirs.is_like(&column.column_type));
                if !same {
                    let (name, column_type) = (&column.name, &column.column_type);
                    lines.push(format!("column {name:?} is {} and not {column_type}", theirs.type_name));
                }
            }
        }
    }
    for theirs in existing {
        if wanted.iter().all(|column| column.name != theirs.name) {
            lines.push(format!("its column {:?} is not in the source", theirs.name));
        }
    }
    lines
}

/// `CREATE TABLE`, after `CREATE TYPE` for each type that is new. A field that cannot be NULL in the source
/// is NOT NULL.
///
/// Since version 18 this is a constraint, which the server names after the table, and which keeps its name when the table
/// is renamed. So a table that gathers rows names it, also for columns of the `key` that it gets at once.
pub(crate) fn create_table(table: &TableName, new: &NewTable, schema: &Schema, key: &[String]) -> String {
    let gathers = new.named != *table;
    let lines = new.columns.iter().map(|column| {
        let required = schema.fields().get(column.source).is_some_and(|field| !field_is_nullable(field));
        let constraint = match required || gathers && key.contains(&column.name) {
            false => String::new(),
            true if !gathers => " NOT NULL".to_owned(),
            true => {
                let name = new.named.below(&format!("{}_not_null", column.name));
                format!(" CONSTRAINT {} NOT NULL", quote(name.name()))
            }
        };
        format!("  {} {}{constraint}", quote(&column.name), column.column_type)
    });
    let table = format!("CREATE TABLE {} (\n{}\n)", table.quoted(), lines.collect::<Vec<_>>().join(",\n"));
    let types = new.types.iter().map(MadeType::create);
    types.chain([table]).collect::<Vec<_>>().join(";\n")
}

fn field_is_nullable(field: &Field) -> bool {
    field.is_nullable() || *field.data_type() == arrow_schema::DataType::Null
}

/// The columns' names for SQL.
pub(crate) fn list(columns: &[Column]) -> String {
    columns.iter().map(|column| quote(&column.name)).collect::<Vec<_>>().join(", ")
}
