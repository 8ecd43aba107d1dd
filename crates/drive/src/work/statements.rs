//! The statements of a plan as SQL.

use sawmill_pgcopy::PgType;
use sawmill_source::{Error, Kind, Result};

use crate::mix::block::{BLOCK_ROWS, NUMBER, VERSION};
use crate::plan::types::{Plan, Work};
use crate::work::rows::SharedTable;

/// The most parameters of a statement: their number is 16 bits wide.
const PARAMETERS: u64 = 65_535;

/// A name in double quotes; each part of `schema.table` is quoted separately.
pub(crate) fn quoted(name: &str) -> String {
    name.split('.').map(column).collect::<Vec<_>>().join(".")
}

fn column(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The columns of a table in quotes, the number first.
pub(crate) fn columns(table: &SharedTable) -> String {
    table.maker.column_types().map(|(name, _)| column(name)).collect::<Vec<_>>().join(", ")
}

/// Creates a table; `type_of` names the types of the database. `counts`: updates add to the version.
pub(crate) fn create(
    table: &SharedTable,
    if_not_exists: bool,
    with: Option<&str>,
    type_of: &dyn Fn(PgType) -> String,
    counts: bool,
) -> String {
    let types = table.maker.column_types();
    let columns: Vec<String> = types
        .map(|(name, pg_type)| {
            // Custom statements need not know the version.
            let default = if name == VERSION && counts { " DEFAULT 0" } else { "" };
            format!("{} {}{default}", column(name), type_of(pg_type))
        })
        .chain([format!("PRIMARY KEY ({})", column(NUMBER))])
        .collect();
    let unless = if if_not_exists { "IF NOT EXISTS " } else { "" };
    let with = with.map(|with| format!(" WITH ({with})")).unwrap_or_default();
    format!("CREATE TABLE {unless}{} ({}){with}", quoted(&table.name), columns.join(", "))
}

/// Looks for a row of this process in a table that another part of the run may have made. Without `arithmetic`, as
/// in CrateDB's stand-in, looks only among the rows of its first block.
pub(crate) fn first_row(table: &SharedTable, arithmetic: bool) -> String {
    let (key, (part, parts)) = (column(NUMBER), table.part);
    let first = (part - 1) * BLOCK_ROWS;
    let ours = match arithmetic {
        true => format!("{key} / {BLOCK_ROWS} % {parts} = {}", part - 1),
        false => format!("{key} > {} AND {key} < {}", first as i64 - 1, first + BLOCK_ROWS),
    };
    format!("SELECT {key} FROM {} WHERE {ours} LIMIT 1", quoted(&table.name))
}

/// The error of a table that has rows of this process before the run.
pub(crate) fn used(table: &SharedTable) -> Error {
    Error::new(Kind::Exists, "the table has rows of an earlier run, of this part")
        .at(format!("table {}", table.name))
        .advise("drop it before the parts start, or choose another name")
}

/// `INSERT ... SELECT FROM UNNEST` with an array of each column. `array` gives the text after a parameter, `cast`
/// the text after a column: a cast, or nothing.
pub(crate) fn unnest(
    table: &SharedTable,
    array: &dyn Fn(PgType) -> String,
    cast: &dyn Fn(PgType) -> String,
) -> String {
    let types: Vec<PgType> = table.maker.column_types().map(|(_, pg_type)| pg_type).collect();
    let listed = |text: &dyn Fn(usize, PgType) -> String| {
        let texts = types.iter().enumerate().map(|(i, pg_type)| text(i + 1, *pg_type));
        texts.collect::<Vec<String>>().join(", ")
    };
    format!(
        "INSERT INTO {} ({}) (SELECT {} FROM UNNEST({}) AS u ({}))",
        quoted(&table.name),
        columns(table),
        listed(&|i, pg_type| format!("c{i}{}", cast(pg_type))),
        listed(&|i, pg_type| format!("${i}{}", array(pg_type))),
        listed(&|i, _| format!("c{i}")),
    )
}

/// The statement of a step, with `$1`, `$2`, ... COPY and UNNEST are PostgreSQL's. `counts`: updates add to the version that the
/// server has, instead of setting it.
pub(crate) fn for_step(
    plan: &Plan,
    work: &Work,
    tables: &[std::sync::Arc<SharedTable>],
    counts: bool,
) -> Result<String> {
    let named = |table: usize| -> Result<&SharedTable> {
        let found = tables.get(table).map(AsRef::as_ref);
        found.ok_or_else(|| Error::new(Kind::Config, "the plan has no table").at(plan.name.clone()))
    };
    let key = column(NUMBER);
    Ok(match work {
        Work::Insert { table, rows, upsert, .. } => insert(named(*table)?, *rows, *upsert, counts)?,
        Work::Copy { table, .. } => {
            let table = named(*table)?;
            format!("COPY {} ({}) FROM STDIN (FORMAT binary)", quoted(&table.name), columns(table))
        }
        Work::Unnest { table, .. } => {
            unnest(named(*table)?, &|pg_type| format!("::{pg_type}[]"), &|_| String::new())
        }
        Work::Update { table, .. } => {
            let table = named(*table)?;
            let names = table.maker.column_types().enumerate().skip(1);
            let set: Vec<String> = names
                .map(|(i, (name, _))| {
                    let name_quoted = column(name);
                    let before =
                        if counts && name == VERSION { format!("{name_quoted} + ") } else { String::new() };
                    format!("{name_quoted} = {before}${}", i + 1)
                })
                .collect();
            format!("UPDATE {} SET {} WHERE {key} = $1", quoted(&table.name), set.join(", "))
        }
        Work::Delete { table, .. } => {
            format!("DELETE FROM {} WHERE {key} = $1", quoted(&named(*table)?.name))
        }
        Work::Select { table, .. } => {
            let table = named(*table)?;
            format!("SELECT {} FROM {} WHERE {key} = $1", columns(table), quoted(&table.name))
        }
        Work::Sql { sql, .. } => sql.clone(),
    })
}

/// An INSERT of a row, for CrateDB's `bulk_args`.
pub(crate) fn bulk(table: &SharedTable) -> String {
    let places: Vec<&str> = table.maker.columns.iter().map(|_| "?").collect();
    format!("INSERT INTO {} ({}) VALUES ({})", quoted(&table.name), columns(table), places.join(", "))
}

/// An INSERT of several rows.
fn insert(table: &SharedTable, rows: u64, upsert: bool, counts: bool) -> Result<String> {
    let count = table.maker.columns.len() as u64;
    if count * rows > PARAMETERS {
        let what = format!("{rows} rows of {count} columns in one INSERT");
        let advice = format!("give {} rows or fewer, or copy them", PARAMETERS / count);
        return Err(Error::new(Kind::Config, what).at(table.name.clone()).advise(advice));
    }
    let row = |row: u64| {
        let places: Vec<String> = (1..=count).map(|i| format!("${}", row * count + i)).collect();
        format!("({})", places.join(", "))
    };
    let values: Vec<String> = (0..rows).map(row).collect();
    let mut sql =
        format!("INSERT INTO {} ({}) VALUES {}", quoted(&table.name), columns(table), values.join(", "));
    if upsert {
        let names = table.maker.column_types().skip(1);
        let set: Vec<String> = names
            .map(|(name, _)| match counts && name == VERSION {
                true => format!("{0} = {1}.{0} + 1", column(name), quoted(&table.name)),
                false => format!("{0} = EXCLUDED.{0}", column(name)),
            })
            .collect();
        sql.push_str(&format!(" ON CONFLICT ({}) DO UPDATE SET {}", column(NUMBER), set.join(", ")));
    }
    Ok(sql)
}

/// The object identifier of a type, for parameters of custom statements.
pub(crate) fn oid(pg_type: PgType) -> u32 {
    match pg_type {
        PgType::Bool => 16,
        PgType::Int2 => 21,
        PgType::Int4 => 23,
        PgType::Int8 => 20,
        PgType::Float4 => 700,
        PgType::Float8 => 701,
        PgType::Numeric(_) => 1700,
        PgType::Bytea => 17,
        PgType::Uuid => 2950,
        PgType::Date => 1082,
        PgType::Time => 1083,
        PgType::Timestamp => 1114,
        PgType::TimestampTz => 1184,
        PgType::Interval => 1186,
        PgType::Json => 114,
        PgType::Jsonb => 3802,
        _ => 25,
    }
}
