//! Reads operations of a plan.

use sawmill_source::Result;

use crate::mix::block::{NUMBER, OWN_COLUMNS};
use crate::mix::pick::Pick;
use crate::plan::node::{Item, Node};
use crate::plan::types::{Operation, Parameter, PlanTable, Work, Writes};

/// What an operation does, by the key that says so.
const KINDS: [&str; 10] =
    ["insert", "upsert", "copy", "bulk", "unnest", "update", "delete", "select", "sql", "transaction"];
/// Those that may be steps of a transaction: all others.
const STEPS: &[&str] = KINDS.split_at(KINDS.len() - 1).0;
/// Rows of one statement.
const ROWS: std::ops::RangeInclusive<u64> = 1..=100_000;

/// An operation with its name.
pub(crate) fn operation(node: Node<'_>, tables: &[PlanTable], number: usize) -> Result<Operation> {
    let name = node.get("name").map(Item::text).transpose()?;
    let kinds = node.which(&KINDS);
    let [kind] = kinds.as_slice() else {
        let what = match kinds.len() {
            0 => "an operation that does nothing".to_owned(),
            _ => format!("an operation of several kinds: {}", kinds.join(", ")),
        };
        return Err(node.error(what, format!("give one of {}", KINDS.join(", "))));
    };
    let default = format!("{kind} {number}");
    let name = name.map_or(default, str::to_owned);
    let weight = node.get("weight").map_or(Ok(1.0), Item::number)?;
    let transaction = *kind == "transaction";
    let steps = match node.get("transaction") {
        Some(list) => {
            node.allow(&["name", "weight", "transaction"])?;
            let steps: Vec<Work> = list
                .items()?
                .into_iter()
                .map(|item| work(item.table()?, tables, false))
                .collect::<Result<_>>()?;
            if steps.is_empty() {
                return Err(list.error("a transaction without statements", "give at least one"));
            }
            steps
        }
        None => vec![work(node, tables, true)?],
    };
    Ok(Operation { name, weight, steps, transaction })
}

fn work(node: Node<'_>, tables: &[PlanTable], outer: bool) -> Result<Work> {
    let kinds = node.which(STEPS);
    let [kind] = kinds.as_slice() else {
        return Err(node.error("a statement needs one kind", format!("give one of {}", STEPS.join(", "))));
    };
    let own: &[&str] = match *kind {
        "insert" | "upsert" | "unnest" => &["rows", "prepared"],
        "copy" | "bulk" => &["rows"],
        "sql" => &["table", "parameters", "pick", "skew", "expect", "writes", "prepared"],
        _ => &["pick", "skew", "prepared"],
    };
    let mut allowed = vec![*kind];
    allowed.extend(own);
    if outer {
        allowed.extend(["name", "weight"]);
    }
    node.allow(&allowed)?;
    let rows = |default| node.get("rows").map_or(Ok(default), |item| item.count(ROWS));
    let prepared = node.get("prepared").map_or(Ok(true), Item::boolean)?;
    let pick = pick(node)?;
    let table = |key| table(node, key, tables);
    Ok(match *kind {
        "insert" => Work::Insert { table: table("insert")?, rows: rows(1)?, prepared, upsert: false },
        "upsert" => Work::Insert { table: table("upsert")?, rows: rows(1)?, prepared, upsert: true },
        "copy" => Work::Copy { table: table("copy")?, rows: rows(1000)? },
        "bulk" => Work::Bulk { table: table("bulk")?, rows: rows(1000)? },
        "unnest" => Work::Unnest { table: table("unnest")?, rows: rows(1000)?, prepared },
        "update" => Work::Update { table: table("update")?, pick, prepared },
        "delete" => Work::Delete { table: table("delete")?, pick, prepared },
        "select" => Work::Select { table: table("select")?, pick, prepared },
        _ => {
            let Some(sql) = node.get("sql") else { return Err(node.error("no statement", "give `sql`")) };
            let of = match node.get("table") {
                Some(_) => table("table")?,
                None => 0,
            };
            let parameters = node.get("parameters").map_or(Ok(Vec::new()), Item::items)?;
            let parameters: Vec<Parameter> =
                parameters.into_iter().map(|item| parameter(item, tables.get(of))).collect::<Result<_>>()?;
            let expect = node.get("expect").map(|item| item.count(0..=1 << 40)).transpose()?;
            let (sql, writes) = (sql.text()?.to_owned(), writes(node, sql.text()?, &parameters)?);
            Work::Sql { sql, table: of, parameters, pick, expect, writes, prepared }
        }
    })
}

/// What a statement of the user's own does.
fn writes(node: Node<'_>, sql: &str, parameters: &[Parameter]) -> Result<Writes> {
    let Some(item) = node.get("writes") else { return Ok(Writes::of_statement(sql)) };
    let words = [
        ("nothing", Writes::Nothing),
        ("insert", Writes::Insert),
        ("update", Writes::Update),
        ("delete", Writes::Delete),
    ];
    let writes = item.word(&words)?;
    let needs = |old| parameters.iter().any(|parameter| parameter.old == old && parameter.column == 0);
    let (fits, advice) = match writes {
        Writes::Insert => (needs(false), "give it new.row, the number of the row that it inserts"),
        Writes::Update | Writes::Delete => {
            (needs(true), "give it old.row, the number of the row that it changes")
        }
        Writes::Nothing | Writes::Undeclared => (true, ""),
    };
    if fits { Ok(writes) } else { Err(item.error("a statement whose row is not known", advice)) }
}

fn table(node: Node<'_>, key: &'static str, tables: &[PlanTable]) -> Result<usize> {
    let Some(item) = node.get(key) else { return Err(node.error("no table", "name one")) };
    let name = item.text()?;
    let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    names.iter().position(|known| *known == name).ok_or_else(|| {
        item.error(format!("there is no table {name:?}"), format!("the plan has: {}", names.join(", ")))
    })
}

fn pick(node: Node<'_>) -> Result<Pick> {
    let skew = node.get("skew").map(Item::number).transpose()?;
    let s = skew.unwrap_or(1.0);
    let words = [("uniform", Pick::Uniform), ("zipf", Pick::Zipf(s)), ("latest", Pick::Latest(s))];
    let pick = node.get("pick").map_or(Ok(Pick::Uniform), |item| item.word(&words))?;
    match (node.get("skew"), pick) {
        (Some(item), Pick::Uniform) => {
            Err(item.error("`skew` without a skewed `pick`", "give pick = \"zipf\" or \"latest\""))
        }
        _ => Ok(pick),
    }
}

/// `new.COLUMN` or `old.COLUMN`.
fn parameter(item: Item<'_>, table: Option<&PlanTable>) -> Result<Parameter> {
    let text = item.text()?;
    let Some(table) = table else {
        return Err(item.error("parameters without a table", "give the plan a table"));
    };
    let schema = table.dataset.arrow_schema();
    let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let advice = format!(
        "write new.COLUMN for a new row, old.COLUMN for one that was inserted earlier; columns: row, {}",
        columns.join(", ")
    );
    let (age, name) = text.split_once('.').unwrap_or(("", text));
    let column = match name {
        "row" | NUMBER => Some(0),
        name => columns.iter().position(|column| *column == name).map(|place| place + OWN_COLUMNS),
    };
    match (age, column) {
        ("new" | "old", Some(column)) => Ok(Parameter { old: age == "old", column }),
        _ => Err(item.error(format!("{text:?} is not a parameter"), advice)),
    }
}
