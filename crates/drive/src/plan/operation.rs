//! Reads operations of a plan.

use sawmill_source::Result;

use crate::mix::pick::Pick;
use crate::plan::node::{Item, Node};
use crate::plan::own_statement::{chosen_row, own_statement};
use crate::plan::types::{Operation, PlanTable, Work};

/// The keys that name the kind of an operation, or of a statement among several.
const STATEMENTS: [&str; 9] =
    ["insert", "upsert", "copy", "bulk", "unnest", "update", "delete", "select", "sql"];
/// The keys of several statements.
const LISTS: [&str; 2] = ["steps", "transaction"];
/// Rows of one statement.
const ROWS: std::ops::RangeInclusive<u64> = 1..=100_000;

/// An operation with its name.
pub(crate) fn operation(node: Node<'_>, tables: &[PlanTable], number: usize) -> Result<Operation> {
    let name = node.get("name").map(Item::text).transpose()?;
    let all = [&STATEMENTS[..], &LISTS].concat();
    let kinds = node.which(&all);
    let [kind] = kinds.as_slice() else {
        let what = match kinds.len() {
            0 => "an operation that does nothing".to_owned(),
            _ => format!("an operation of several kinds: {}", kinds.join(", ")),
        };
        return Err(node.error(what, format!("give one of {}", all.join(", "))));
    };
    let default = format!("{kind} {number}");
    let name = name.map_or(default, str::to_owned);
    let weight = node.get("weight").map_or(Ok(1.0), Item::number)?;
    let transaction = *kind == "transaction";
    let mut operation = Operation { name, weight, transaction, ..Operation::default() };
    if let Some(chosen) = node.get("let") {
        for (name, row) in chosen.table()?.tables()? {
            operation.rows.push(chosen_row(name, row, tables)?);
        }
    }
    match node.get(kind) {
        Some(list) if LISTS.contains(kind) => {
            node.allow(&["name", "weight", "let", *kind])?;
            for item in list.items()? {
                let step = work(item.table()?, tables, false, &mut operation)?;
                operation.steps.push(step);
            }
            if operation.steps.is_empty() {
                return Err(list.error("no statements", "give at least one"));
            }
        }
        _ => {
            let step = work(node, tables, true, &mut operation)?;
            operation.steps.push(step);
        }
    }
    Ok(operation)
}

/// A statement. Adds the variables that it reads into, and the rows that it names, to the operation.
fn work(node: Node<'_>, tables: &[PlanTable], outer: bool, operation: &mut Operation) -> Result<Work> {
    let kinds = node.which(&STATEMENTS);
    let [kind] = kinds.as_slice() else {
        return Err(
            node.error("a statement needs one kind", format!("give one of {}", STATEMENTS.join(", ")))
        );
    };
    let own: &[&str] = match *kind {
        "insert" | "upsert" | "unnest" => &["rows", "prepared"],
        "copy" | "bulk" => &["rows"],
        "sql" => &["table", "parameters", "pick", "skew", "into", "expect", "writes", "prepared"],
        _ => &["pick", "skew", "prepared"],
    };
    let mut allowed = vec![*kind];
    allowed.extend(own);
    if outer {
        allowed.extend(["name", "weight", "let"]);
    }
    node.allow(&allowed)?;
    let rows = |default| node.get("rows").map_or(Ok(default), |item| item.count(ROWS));
    let prepared = node.get("prepared").map_or(Ok(true), Item::boolean)?;
    let pick = pick(node)?;
    let table = |key| table(node, key, tables);
    Ok(match *kind {
        "insert" => Work::Insert { table: table("insert")?, rows: rows(1)?, prepared, upsert: false },
        "upsert" => Work::Insert { table: table("upsert")?, rows: rows(1)?, prepared, upsert: true },
        copy @ ("copy" | "bulk") => Work::Copy { table: table(copy)?, rows: rows(1000)? },
        "unnest" => Work::Unnest { table: table("unnest")?, rows: rows(1000)?, prepared },
        "update" => Work::Update { table: table("update")?, pick, prepared },
        "delete" => Work::Delete { table: table("delete")?, pick, prepared },
        "select" => Work::Select { table: table("select")?, pick, prepared },
        _ => own_statement(node, tables, pick, prepared, operation)?,
    })
}

/// The table that a key names.
pub(super) fn table(node: Node<'_>, key: &'static str, tables: &[PlanTable]) -> Result<usize> {
    let Some(item) = node.get(key) else { return Err(node.error("no table", "name one")) };
    let name = item.text()?;
    let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    names.iter().position(|known| *known == name).ok_or_else(|| {
        item.error(format!("there is no table {name:?}"), format!("the plan has: {}", names.join(", ")))
    })
}

/// How to choose an earlier row.
pub(super) fn pick(node: Node<'_>) -> Result<Pick> {
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
