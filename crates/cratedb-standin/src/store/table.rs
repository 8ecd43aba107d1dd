//! One table: its columns, its rows, and what happens to a row on its way in.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use super::condition::{holds, names_key};
use super::{Error, RowResult, error};
use crate::json::Json;
use crate::sql::{Column, Condition, CreateTable, Name, OnConflict};
use crate::types::{Refused, Type, Value, date_trunc, name_quoted, to_json, to_text};

static NUMBER: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) values: Vec<Value>,
    visible: bool,
    /// Deleted; searches find it until the next refresh.
    deleted: bool,
    /// Survives a crash.
    durable: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) columns: Vec<Column>,
    pub(super) key: Vec<usize>,
    pub(super) shards: usize,
    most_columns: usize,
    /// `translog.durability` is `ASYNC`.
    pub(super) asynchronous: bool,
    pub(super) rows: Vec<Row>,
    by_id: HashMap<String, usize>,
    next: u64,
    /// Its number among all tables, which no rename changes.
    pub(super) number: u64,
}

/// The effect of a new row on an existing row with its key.
pub(super) enum Existing {
    /// The new row is an error.
    Refuses,
    /// The new row is ignored.
    Stays,
    /// It takes the new row's values of these columns.
    Takes(Vec<usize>),
}

/// How a row ends that is not inserted.
enum Stop {
    /// The whole request is rejected.
    Request(Error),
    /// Only the row is rejected, or ignored.
    Row(RowResult),
}

pub(super) fn columns_of(columns: &[Column]) -> usize {
    columns.iter().map(|column| column.data_type.columns()).sum()
}

pub(super) fn too_many_columns(most: usize, name: &Name) -> String {
    format!("SQLParseException[Limit of total columns [{most}] in table [{}.{}] exceeded]", name.0, name.1)
}

impl Table {
    pub(super) fn new(create: CreateTable) -> Result<Self, Error> {
        let mut table = Table {
            columns: create.columns,
            shards: create.shards.max(1),
            most_columns: create.most_columns,
            asynchronous: create.asynchronous,
            number: NUMBER.fetch_add(1, Relaxed),
            ..Table::default()
        };
        table.key = create.key.iter().map(|name| table.position(name)).collect::<Result<_, _>>()?;
        if let Some(partition) = create.partitioned {
            table.position(&partition)?;
        }
        Ok(table)
    }

    /// The number of rows that are not deleted.
    pub(super) fn len(&self) -> usize {
        self.rows.iter().filter(|row| !row.deleted).count()
    }

    /// The values of a column, as JSON.
    pub(super) fn values(&self, column: &str) -> Option<Vec<String>> {
        let at = self.position(column).ok()?;
        let kept = self.rows.iter().filter(|row| !row.deleted);
        Some(kept.map(|row| to_json(&row.values[at])).collect())
    }

    pub(super) fn position(&self, name: &str) -> Result<usize, Error> {
        let found = self.columns.iter().position(|column| column.name == name);
        found.ok_or_else(|| error(404, 4043, format!("ColumnUnknownException[Column {name} unknown]")))
    }

    /// Adds a column that is NULL in all rows.
    pub(super) fn add(&mut self, name: &Name, columns: Vec<Column>) -> Result<(), Error> {
        let is_known = |column: &&Column| self.columns.iter().any(|known| known.name == column.name);
        if let Some(known) = columns.iter().find(is_known) {
            let what = format!("The table {}.{} already has a column named {}", name.0, name.1, known.name);
            return Err(error(400, 4000, format!("SQLParseException[{what}]")));
        }
        self.rows.iter_mut().for_each(|row| row.values.extend(columns.iter().map(|_| Value::Null)));
        self.columns.extend(columns);
        Ok(())
    }

    /// Removes a column with its values.
    pub(super) fn drop_column(&mut self, name: &str) -> Result<(), Error> {
        let at = self.position(name)?;
        if self.key.contains(&at) {
            let what = format!("Dropping column: {name} which is part of the PRIMARY KEY is not allowed");
            return Err(error(400, 4000, what));
        }
        if self.columns.len() == 1 {
            return Err(error(400, 4000, "Dropping all columns of a table is not allowed"));
        }
        self.columns.remove(at);
        self.key.iter_mut().filter(|key| **key > at).for_each(|key| *key -= 1);
        self.rows.iter_mut().for_each(|row| drop(row.values.remove(at)));
        Ok(())
    }

    pub(super) fn refresh(&mut self) {
        self.rows.retain(|row| !row.deleted);
        self.rows.iter_mut().for_each(|row| row.visible = true);
        self.reindex();
    }

    pub(super) fn flush(&mut self, flush: bool) {
        self.rows.iter_mut().for_each(|row| row.durable |= flush);
    }

    /// Loses the rows that are not yet on disk.
    pub(super) fn crash(&mut self) {
        self.rows.retain(|row| row.durable && !row.deleted);
        // A shard that starts is searched with all of its rows.
        self.rows.iter_mut().for_each(|row| row.visible = true);
        self.reindex();
    }

    /// Keeps only the first rows.
    pub(super) fn truncate(&mut self, rows: usize) {
        self.rows.truncate(rows);
        self.reindex();
    }

    /// Deletes rows; returns how many were not deleted before.
    pub(super) fn remove(&mut self, gone: &[usize]) -> usize {
        let mut count = 0;
        for at in gone {
            let row = &mut self.rows[*at];
            if !std::mem::replace(&mut row.deleted, true) {
                self.by_id.remove(&row.id);
                count += 1;
            }
        }
        count
    }

    fn reindex(&mut self) {
        let kept = self.rows.iter().enumerate().filter(|(_, row)| !row.deleted);
        self.by_id = kept.map(|(i, row)| (row.id.clone(), i)).collect();
    }

    /// The positions of the visible rows for which a condition is true.
    pub(super) fn matching(&self, condition: Option<&Condition>, arguments: &[Json]) -> Vec<usize> {
        let key: Vec<&str> = self.key.iter().map(|at| self.columns[*at].name.as_str()).collect();
        let realtime = condition.is_some_and(|condition| names_key(condition, &key));
        let matches = |row: &Row| {
            let get = |name: &str| match name {
                "_id" => Some(Value::Text(row.id.clone())),
                name => self.columns.iter().position(|c| c.name == name).map(|at| row.values[at].clone()),
            };
            (if realtime { !row.deleted } else { row.visible })
                && condition.is_none_or(|condition| holds(condition, arguments, &get))
        };
        let found = self.rows.iter().enumerate().filter(|(_, row)| matches(row));
        found.map(|(at, _)| at).collect()
    }

    /// The table as `SHOW CREATE TABLE` writes it.
    pub(super) fn ddl(&self, name: &Name) -> String {
        let lines = self
            .columns
            .iter()
            .map(|column| format!("   {} {}", name_quoted(&column.name), column.data_type.shown_column(1)));
        let lines = lines.collect::<Vec<_>>().join(",\n");
        format!("CREATE TABLE IF NOT EXISTS \"{}\".\"{}\" (\n{lines}\n)", name.0, name.1)
    }

    /// The effect of a statement on rows whose key exists.
    pub(super) fn existing(&self, conflict: &OnConflict) -> Result<Existing, Error> {
        let OnConflict::Update { key, set } = conflict else {
            return Ok(if *conflict == OnConflict::Ignore { Existing::Stays } else { Existing::Refuses });
        };
        let named: Vec<&String> = self.key.iter().map(|at| &self.columns[*at].name).collect();
        let wrong = |what: String| error(400, 4000, format!("IllegalArgumentException[{what}]"));
        if named.len() != key.len() {
            let what = format!("Number of conflict targets ([{}]) did not match", key.join(", "));
            return Err(wrong(format!("{what} the number of primary key columns ([{}])", joined(&named))));
        }
        if !key.iter().all(|column| named.contains(&column)) {
            let what = format!("Conflict target ([{}]) did not match", key.join(", "));
            return Err(wrong(format!("{what} the primary key columns ([{}])", joined(&named))));
        }
        set.iter().map(|column| self.position(column)).collect::<Result<_, _>>().map(Existing::Takes)
    }

    /// Inserts one row; `Err` rejects the whole request.
    pub(super) fn insert(
        &mut self,
        name: &Name,
        columns: &[usize],
        values: &[Json],
        existing: &Existing,
    ) -> Result<RowResult, Error> {
        match self.row(name, columns, values).and_then(|row| self.place(row, existing)) {
            Ok(()) => Ok(RowResult::Count(1)),
            Err(Stop::Row(result)) => Ok(result),
            Err(Stop::Request(error)) => Err(error),
        }
    }

    /// The values of a new row, converted and checked.
    fn row(&mut self, name: &Name, columns: &[usize], values: &[Json]) -> Result<Vec<Value>, Stop> {
        if !self.learn(columns, values) {
            return Err(Stop::Row(RowResult::Refused(4000, too_many_columns(self.most_columns, name))));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64;
        let first = |column: &Column| if column.stamped { Value::Int(now) } else { Value::Null };
        let mut row: Vec<Value> = self.columns.iter().map(first).collect();
        for (at, json) in columns.iter().zip(values) {
            row[*at] = converted(&self.columns[*at], json)?;
        }
        self.generate(&mut row);
        if self.key.iter().any(|at| row[*at] == Value::Null) {
            let what = "SQLParseException[Primary key value must not be NULL]";
            return Err(Stop::Request(error(400, 4000, what)));
        }
        let mut cells = self.columns.iter().zip(&row);
        if let Some((column, _)) = cells.find(|(column, value)| column.not_null && **value == Value::Null) {
            return Err(Stop::Row(RowResult::Refused(4000, format!("\"{}\" must not be null", column.name))));
        }
        Ok(row)
    }

    /// Adds the fields that a row adds to dynamic objects; returns `false`, without adding any, if there
    /// would be too many.
    fn learn(&mut self, columns: &[usize], values: &[Json]) -> bool {
        if !columns.iter().any(|at| self.columns[*at].data_type.has_dynamic()) {
            return true;
        }
        let mut learned = self.columns.clone();
        for (at, json) in columns.iter().zip(values) {
            learned[*at].data_type.learn(json);
        }
        let fits = columns_of(&learned) <= self.most_columns;
        if fits {
            self.columns = learned;
        }
        fits
    }

    /// Fills in the generated columns.
    fn generate(&self, row: &mut [Value]) {
        for (i, column) in self.columns.iter().enumerate() {
            if let Some((part, source)) = &column.generated
                && let Some(Value::Int(millis)) =
                    self.columns.iter().position(|c| c.name == *source).map(|at| &row[at])
            {
                row[i] = Value::Int(date_trunc(part, *millis));
            }
        }
    }

    /// Stores a row. If its key exists, `existing` decides.
    fn place(&mut self, values: Vec<Value>, existing: &Existing) -> Result<(), Stop> {
        self.next += 1;
        let id = match self.key.as_slice() {
            [] => format!("{:020}", self.next.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            key => key.iter().map(|at| to_text(&values[*at])).collect::<Vec<_>>().join("\u{1}"),
        };
        if let Some(row) = self.by_id.get(&id) {
            match existing {
                Existing::Refuses => {
                    let what = "DuplicateKeyException[A document with the same primary key exists already]";
                    return Err(Stop::Row(RowResult::Refused(4091, what.into())));
                }
                Existing::Stays => return Err(Stop::Row(RowResult::Count(0))),
                Existing::Takes(columns) => {
                    let row = &mut self.rows[*row];
                    columns.iter().for_each(|at| row.values[*at].clone_from(&values[*at]));
                    return Ok(());
                }
            }
        }
        self.by_id.insert(id.clone(), self.rows.len());
        self.rows.push(Row { id, values, visible: false, deleted: false, durable: !self.asynchronous });
        Ok(())
    }
}

fn joined(names: &[&String]) -> String {
    names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
}

/// A value converted to its column's type.
fn converted(column: &Column, json: &Json) -> Result<Value, Stop> {
    match column.data_type.cast(json) {
        Ok(value) if !column.plain && Type::too_long(&value) => {
            let what = "IllegalArgumentException[Document contains at least one immense term]";
            Err(Stop::Row(RowResult::Refused(5000, what.into())))
        }
        Ok(value) => Ok(value),
        Err(Refused::Request(message)) => Err(Stop::Request(error(400, 4000, message))),
        Err(Refused::Row(code, message)) => {
            let named = format!("strict object `{}`]", column.name);
            Err(Stop::Row(RowResult::Refused(code, message.replace("strict object]", &named))))
        }
    }
}
