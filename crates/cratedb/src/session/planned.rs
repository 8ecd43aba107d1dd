//! The plan of a load: the columns of a new or existing table, and the key that makes its rows repeatable.

use std::sync::Arc;

use sawmill_loader::LoadOptions;
use sawmill_source::{Error, Kind, Result, Source};
use tokio_postgres::types::Type;

use crate::connect::sql::Sql;
use crate::encode::encoder::{EncodePlan, longest_row};
use crate::encode::unnest;
use crate::options::LongText;
use crate::session::evolving;
use crate::table::columns::{self, Column, Key, MAX_TEXT_LENGTH, Plan, Purpose};
use crate::table::existing::Existing;
use crate::table::loaded_at::check_loaded_at;
use crate::table::names::CrateTable;
use crate::table::{catalogue, ddl};
use crate::target::CrateDb;
use crate::write::head::{MAX_TAG_LENGTH, REPEAT, head};

/// The plan for a table that the load creates, and the columns of its primary key.
pub(super) fn new_plan(
    crate_db: &CrateDb,
    source: &dyn Source,
    table: &CrateTable,
) -> Result<(Plan, Vec<String>)> {
    let columns = columns::natural(source.schema(), &crate_db.options, table)?;
    let key = crate_db.wished_key(source);
    ddl::create_table(table, &columns, &key, &crate_db.options)?;
    let primary = ddl::primary_key(&key, ddl::partition(&columns, &crate_db.options)?.as_ref());
    let longest_text = (crate_db.options.long_text == LongText::Error).then_some(MAX_TEXT_LENGTH);
    Ok((Plan { columns, key, longest_text }, primary))
}

/// The plan for a table that exists, and the columns of its primary key.
pub(crate) fn existing_plan(
    crate_db: &CrateDb,
    source: &dyn Source,
    table: &CrateTable,
    purpose: Purpose<'_>,
    sql: &mut Sql<'_>,
) -> Result<(Plan, Vec<String>)> {
    let existing = catalogue::columns(sql, table)?;
    if existing.is_empty() {
        return Err(Error::new(Kind::Schema, "the table does not exist")
            .at(format!("table {table}, {}", sql.place()))
            .advise("load in mode create, which creates it"));
    }
    if purpose != Purpose::Compare {
        check_loaded_at(crate_db.options.loaded_at.as_deref(), &existing, table)?;
    }
    let primary = catalogue::primary_key(sql, table)?;
    let row_key = crate_db.options.row_key.as_deref();
    let schema = match crate_db.options.by_position {
        false => Arc::clone(source.schema()),
        true => columns::by_position(source.schema(), &existing, row_key, table)?,
    };
    let columns = columns::matched(&schema, &crate_db.options, &existing, table, purpose)
        .map_err(|error| evolving::with_a_way_out(error, crate_db, source, &existing))?;
    let key = choose_key(crate_db, table, &columns, (&existing, &primary))?;
    Ok((Plan { columns, key, longest_text: None }, primary))
}

/// Chooses how rows of an existing table can be repeated, from the options and its primary key.
fn choose_key(
    crate_db: &CrateDb,
    table: &CrateTable,
    filled: &[Column],
    (columns, primary): (&[Existing], &[String]),
) -> Result<Key> {
    let options = &crate_db.options;
    if let Some(name) = &options.row_key {
        if primary.contains(name) {
            return Ok(Key::Row(name.clone()));
        }
        let what = format!("the table has no primary key with the column {name:?}, which the row key needs");
        return Err(Error::new(Kind::Schema, what)
            .at(format!("table {table}"))
            .advise("make the table with --row-key, or append to it with --at-least-once"));
    }
    // A key by default has a new value each time; a computed one depends on the columns.
    let is_filled = |name: &String| filled.iter().any(|column| column.name == *name);
    let is_computed = |name: &String| columns.iter().any(|column| column.name == *name && column.generated);
    // Rows are looked up by columns of the key, or by all columns.
    let is_found = primary.iter().any(is_filled) || filled.iter().all(Column::is_comparable);
    if !primary.is_empty() && primary.iter().all(|name| is_filled(name) || is_computed(name)) && is_found {
        return Ok(Key::Own(primary.to_vec()));
    }
    if options.at_least_once {
        return Ok(Key::None);
    }
    Err(Error::new(
        Kind::Config,
        "the rows have no key: this load is at least once, and rows of a batch that was interrupted may be in the table twice",
    )
    .at(format!("table {table}"))
    .advise(
        "accept it with --at-least-once; or make the table with a key: in mode create --row-key adds one, and --primary-key \
         names its columns",
    ))
}

/// How rows are encoded for the table `written`: by row, or by column for the PostgreSQL wire.
pub(super) fn encode_plan(
    crate_db: &CrateDb,
    source: &dyn Source,
    options: &LoadOptions,
    plan: &Plan,
    (written, by_column): (&CrateTable, bool),
) -> EncodePlan {
    let head = head(written, plan, REPEAT);
    EncodePlan {
        longest_row: longest_row(head.before.len() + head.after.len() + MAX_TAG_LENGTH),
        columns: by_column,
        leave_out: crate_db.options.rejects.is_some(),
        ..EncodePlan::new(&crate_db.options, source, options.batch_bytes, plan.clone())
    }
}

/// The statements for the PostgreSQL wire, for first tries and for rows that may be in the table, with their
/// parameter types.
pub(super) fn unnest_of(written: &CrateTable, plan: &Plan) -> ([String; 2], Vec<Type>) {
    let statements = ["", REPEAT].map(|clause| {
        // With a key, existing rows are counted, and do not end the statement.
        let clause = match plan.key {
            Key::Row(_) | Key::Own(_) => REPEAT,
            Key::Tags(_) => "",
            Key::None => clause,
        };
        unnest::insert(written, plan, clause)
    });
    (statements, unnest::parameter_types(plan))
}
