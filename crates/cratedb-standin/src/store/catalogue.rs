//! `information_schema`, computed on each call.

use super::condition::holds;
use super::table::Table;
use super::{Answer, Engine, Error, unknown_table};
use crate::json::Json;
use crate::sql::Select;
use crate::types::{Type, Value, to_json};

/// A row of the catalogue: its columns with their values.
type Entry = Vec<(&'static str, Value)>;

impl Engine {
    pub(super) fn catalogue(&self, select: &Select, arguments: &[Json]) -> Result<Answer, Error> {
        let mut entries: Vec<Entry> = Vec::new();
        for ((schema, name), table) in self.lock().iter() {
            let of_table = match select.name.1.as_str() {
                "tables" => vec![table_entry(table)],
                "columns" => column_entries(table),
                "key_column_usage" => key_entries(table),
                _ => return Err(unknown_table(&select.name)),
            };
            entries.extend(of_table.into_iter().map(|mut entry| {
                entry.extend([("table_schema", text(schema)), ("table_name", text(name))]);
                entry
            }));
        }
        let mut rows = Vec::new();
        for entry in entries {
            let get =
                |name: &str| entry.iter().find(|(column, _)| *column == name).map(|(_, value)| value.clone());
            if select.condition.as_ref().is_none_or(|condition| holds(condition, arguments, &get)) {
                let cells = select.columns.iter().map(|name| to_json(&get(name).unwrap_or(Value::Null)));
                rows.push(cells.collect::<Vec<_>>());
            }
        }
        match select.columns.is_empty() {
            true => Ok(Answer::count(rows.len())),
            false => Ok(Answer { columns: select.columns.clone(), count: rows.len() as i64, rows }),
        }
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn table_entry(table: &Table) -> Entry {
    let durability = if table.asynchronous { "ASYNC" } else { "REQUEST" };
    vec![("settings['translog']['durability']", text(durability))]
}

/// The columns, and after an object column its fields.
fn column_entries(table: &Table) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (i, column) in table.columns.iter().enumerate() {
        let nullable = !column.not_null && !table.key.contains(&i);
        let precision = match &column.data_type {
            Type::Numeric(Some((precision, _))) => Value::Int((*precision).into()),
            Type::Integer(bits) => Value::Int((*bits).into()),
            _ => Value::Null,
        };
        let default = if column.stamped { text("CURRENT_TIMESTAMP") } else { Value::Null };
        let (name, generated) = (&column.name, column.generated.is_some());
        entries.push(column_entry(name, i, &column.data_type, (default, precision), (nullable, generated)));
        if let Type::Object(_, fields) = &column.data_type {
            for (field, data_type) in fields {
                let name = format!("{}['{field}']", column.name);
                let nulls = (Value::Null, Value::Null);
                entries.push(column_entry(&name, i, data_type, nulls, (true, false)));
            }
        }
    }
    entries
}

fn column_entry(
    name: &str,
    column: usize,
    data_type: &Type,
    (default, precision): (Value, Value),
    (nullable, generated): (bool, bool),
) -> Entry {
    vec![
        ("column_name", text(name)),
        ("ordinal_position", Value::Int(column as i64 + 1)),
        ("data_type", text(&data_type.catalogue_name())),
        ("column_default", default),
        ("numeric_precision", precision),
        ("is_nullable", text(if nullable { "YES" } else { "NO" })),
        ("is_generated", text(if generated { "ALWAYS" } else { "NEVER" })),
    ]
}

fn key_entries(table: &Table) -> Vec<Entry> {
    let entry = |(i, at): (usize, &usize)| {
        vec![("column_name", text(&table.columns[*at].name)), ("ordinal_position", Value::Int(i as i64 + 1))]
    };
    table.key.iter().enumerate().map(entry).collect()
}
