//! Reads custom statements, with the rows and variables that their parameters come from.

use sawmill_pgcopy::PgType;
use sawmill_source::Result;

use crate::mix::block::{NUMBER, OWN_COLUMNS};
use crate::mix::pick::Pick;
use crate::plan::node::{Item, Node};
use crate::plan::operation::{pick, table};
use crate::plan::types::{ChosenRow, Operation, Parameter, PlanTable, Variable, Work, Writes};

/// How a statement may declare its writes.
const WRITES: [(&str, Writes); 4] = [
    ("nothing", Writes::Nothing),
    ("insert", Writes::Insert),
    ("update", Writes::Update),
    ("delete", Writes::Delete),
];
/// The types of variables.
const TYPES: [(&str, PgType); 12] = [
    ("bool", PgType::Bool),
    ("int2", PgType::Int2),
    ("int4", PgType::Int4),
    ("int8", PgType::Int8),
    ("float4", PgType::Float4),
    ("float8", PgType::Float8),
    ("numeric", PgType::Numeric(None)),
    ("text", PgType::Text),
    ("uuid", PgType::Uuid),
    ("date", PgType::Date),
    ("timestamp", PgType::Timestamp),
    ("timestamptz", PgType::TimestampTz),
];

/// A row of `let`: `{ old = "accounts", pick = "zipf", writes = "update" }`, or `{ new = "history" }`.
pub(super) fn chosen_row(name: &str, node: Node<'_>, tables: &[PlanTable]) -> Result<ChosenRow> {
    let old = node.get("old").is_some();
    node.allow(if old { &["old", "pick", "skew", "writes"] } else { &["new", "writes"] })?;
    let fits = |(_, writes): &&(&str, Writes)| match writes {
        Writes::Insert => !old,
        Writes::Update | Writes::Delete => old,
        Writes::Nothing | Writes::Undeclared => true,
    };
    let words: Vec<_> = WRITES.iter().filter(fits).copied().collect();
    let writes = node.get("writes").map_or(Ok(Writes::Undeclared), |item| item.word(&words))?;
    let table = table(node, if old { "old" } else { "new" }, tables)?;
    Ok(ChosenRow { name: name.to_owned(), table, old, pick: pick(node)?, writes })
}

/// A statement with its parameters: from a list, or named in its text (`:row.column`, `:variable`).
pub(super) fn own_statement(
    node: Node<'_>,
    tables: &[PlanTable],
    pick: Pick,
    prepared: bool,
    operation: &mut Operation,
) -> Result<Work> {
    let Some(item) = node.get("sql") else { return Err(node.error("no statement", "give `sql`")) };
    let text = item.text()?;
    let (sql, parameters, writes) = match node.get("parameters") {
        Some(list) => {
            let table = node.get("table").map_or(Ok(0), |_| table(node, "table", tables))?;
            let (parameters, writes) = listed(node, list, text, (table, pick), tables, operation)?;
            (text.to_owned(), parameters, writes)
        }
        None => {
            let (sql, parameters) = named(item, text, tables, operation)?;
            let only_nothing = |item: Item<'_>| item.word(&WRITES[..1]);
            let writes = node.get("writes").map_or(Ok(Writes::of_statement(text)), only_nothing)?;
            (sql, parameters, writes)
        }
    };
    let expect = node.get("expect").map(|item| item.count(0..=1 << 40)).transpose()?;
    let into = into(node, operation)?;
    if let (Some(item), false) = (node.get("expect"), into.is_empty()) {
        return Err(item.error("`expect` beside `into`", "leave it out: one row is expected"));
    }
    Ok(Work::Sql { sql, parameters, into, expect, writes, prepared })
}

/// `into`: the name and the type of each column.
fn into(node: Node<'_>, operation: &mut Operation) -> Result<Vec<usize>> {
    let items = node.get("into").map_or(Ok(Vec::new()), Item::items)?;
    let variable = |item: Item<'_>| {
        let (name, word) = item.text()?.split_once(' ').unwrap_or((item.text()?, ""));
        let known = TYPES.iter().find(|(known, _)| *known == word.trim());
        let is_name =
            name.starts_with(char::is_alphabetic) && name.chars().all(is_part) && !name.contains('.');
        let (Some((_, pg_type)), true) = (known, is_name) else {
            let types: Vec<&str> = TYPES.iter().map(|(word, _)| *word).collect();
            let advice = format!("write a name and a type, as \"balance int8\"; types: {}", types.join(", "));
            return Err(item.error(format!("{:?} does not declare a variable", item.text()?), advice));
        };
        operation.variables.push(Variable { name: name.to_owned(), pg_type: *pg_type });
        Ok(operation.variables.len() - 1)
    };
    items.into_iter().map(variable).collect()
}

/// The parameters `$1`, `$2`, ... of a list: of a new row, of an earlier one, or of both, which are this statement's.
fn listed(
    node: Node<'_>,
    list: Item<'_>,
    sql: &str,
    (table, pick): (usize, Pick),
    tables: &[PlanTable],
    operation: &mut Operation,
) -> Result<(Vec<Parameter>, Writes)> {
    let items = list.items()?;
    let read = |item: &Item<'_>| listed_parameter(*item, tables.get(table));
    let read: Vec<(bool, usize)> = items.iter().map(read).collect::<Result<_>>()?;
    let writes = node.get("writes").map_or(Ok(Writes::of_statement(sql)), |item| item.word(&WRITES))?;
    let (fits, advice) = match writes {
        Writes::Insert => {
            (read.contains(&(false, 0)), "give it new.row, the number of the row that it inserts")
        }
        Writes::Update | Writes::Delete => {
            (read.contains(&(true, 0)), "give it old.row, the number of the row that it changes")
        }
        Writes::Nothing | Writes::Undeclared => (true, ""),
    };
    if let (Some(item), false) = (node.get("writes"), fits) {
        return Err(item.error("a statement whose row is not known", advice));
    }
    let mut places = [None; 2];
    let parameters = read.into_iter().map(|(old, column)| {
        let row = *places[usize::from(old)].get_or_insert_with(|| {
            let writes = if old == (writes == Writes::Insert) { Writes::Undeclared } else { writes };
            operation.rows.push(ChosenRow { name: String::new(), table, old, pick, writes });
            operation.rows.len() - 1
        });
        Parameter::Column { row, column }
    });
    Ok((parameters.collect(), writes))
}

/// `new.COLUMN` or `old.COLUMN`: whether the row is an earlier one, and the column.
fn listed_parameter(item: Item<'_>, table: Option<&PlanTable>) -> Result<(bool, usize)> {
    let text = item.text()?;
    let Some(table) = table else {
        return Err(item.error("parameters without a table", "give the plan a table"));
    };
    let (age, name) = text.split_once('.').unwrap_or(("", text));
    match (age, column(table, name)) {
        ("new" | "old", Some(column)) => Ok((age == "old", column)),
        _ => {
            let advice = format!(
                "write new.COLUMN for a new row, old.COLUMN for one that was inserted earlier; columns: {}",
                columns(table).join(", ")
            );
            Err(item.error(format!("{text:?} is not a parameter"), advice))
        }
    }
}

fn columns(table: &PlanTable) -> Vec<String> {
    let schema = table.dataset.arrow_schema();
    let names = schema.fields().iter().map(|field| field.name().clone());
    std::iter::once("row".to_owned()).chain(names).collect()
}

/// The place of a column; 0 is the number.
fn column(table: &PlanTable, name: &str) -> Option<usize> {
    match columns(table).iter().position(|column| column == name) {
        None => (name == NUMBER).then_some(0),
        Some(0) => Some(0),
        Some(place) => Some(place - 1 + OWN_COLUMNS),
    }
}

/// Whether a character belongs to a name after a colon.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

/// The statement with `$1`, `$2`, ... in place of `:row.column` and `:variable`, and these parameters.
fn named(
    item: Item<'_>,
    text: &str,
    tables: &[PlanTable],
    operation: &Operation,
) -> Result<(String, Vec<Parameter>)> {
    let (mut sql, mut parameters, mut rest) = (String::new(), Vec::new(), text);
    let mut quote = None;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let name = &after[..after.find(|c: char| !is_part(c)).unwrap_or(after.len())];
        let is_name = c == ':' && name.starts_with(char::is_alphabetic) && !sql.ends_with(':');
        if is_name && quote.is_none() {
            let parameter = named_parameter(item, name, tables, operation)?;
            let place = parameters.iter().position(|known| *known == parameter);
            let place = place.unwrap_or_else(|| {
                parameters.push(parameter);
                parameters.len() - 1
            });
            sql.push_str(&format!("${}", place + 1));
            rest = &after[name.len()..];
            continue;
        }
        match quote {
            Some(end) if end == c => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            _ => {}
        }
        sql.push(c);
        rest = after;
    }
    Ok((sql, parameters))
}

fn named_parameter(
    item: Item<'_>,
    name: &str,
    tables: &[PlanTable],
    operation: &Operation,
) -> Result<Parameter> {
    let found = match name.split_once('.') {
        Some((row, of)) => operation.rows.iter().position(|known| known.name == row).and_then(|row| {
            let column = column(tables.get(operation.rows[row].table)?, of)?;
            Some(Parameter::Column { row, column })
        }),
        // The one that was read last.
        None => operation.variables.iter().rposition(|known| known.name == name).map(Parameter::Variable),
    };
    found.ok_or_else(|| {
        let rows = operation.rows.iter().filter(|row| !row.name.is_empty());
        let columns = rows.flat_map(|row| {
            let columns = tables.get(row.table).map(columns).unwrap_or_default();
            columns.into_iter().map(|column| format!(":{}.{column}", row.name)).collect::<Vec<_>>()
        });
        let variables = operation.variables.iter().map(|variable| format!(":{}", variable.name));
        let known: Vec<String> = columns.chain(variables).collect();
        let advice = match known.is_empty() {
            true => "choose rows by `let`, or read values by `into` in a statement before".to_owned(),
            false => format!("there are {}", known.join(", ")),
        };
        item.error(format!(":{name} is not known there"), advice)
    })
}

/// The name of a type of variables, by its object identifier in PostgreSQL.
pub(crate) fn type_name(oid: u32, oid_of: impl Fn(PgType) -> u32) -> String {
    let known = TYPES.iter().find(|(_, pg_type)| oid_of(*pg_type) == oid);
    known.map_or_else(|| format!("the type with OID {oid}"), |(word, _)| (*word).to_owned())
}
