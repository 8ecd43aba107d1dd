//! Tables in memory, and statements executed on them by the rules of the real server.
//!
//! A primary key look-up sees rows immediately; everything else sees them after REFRESH.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use crate::condition::{argument, compare, holds, names_key};
use crate::json::{Json, quoted};
use crate::parser::{Column, Condition, Name, Statement, parse};
use crate::value::{Refused, Type, Value, date_trunc, name_quoted, to_json, to_text};

/// The result of a statement.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Names of the columns of `rows`.
    pub columns: Vec<String>,
    /// Values as JSON.
    pub rows: Vec<Vec<String>>,
    /// The number of rows changed or selected.
    pub count: i64,
}

/// The rejection of a whole request.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// HTTP status.
    pub status: u16,
    /// CrateDB's code.
    pub code: u32,
    /// What is wrong.
    pub message: String,
}

/// A row's result.
#[derive(Clone, Debug, PartialEq)]
pub enum RowResult {
    /// 1, or 0 if a conflict was ignored.
    Count(i64),
    /// -2, with error code and message.
    Refused(u32, String),
    /// -2 without an error, after too many others in the shard.
    Bare,
}

#[derive(Clone, Debug)]
struct Row {
    id: String,
    values: Vec<Value>,
    visible: bool,
    /// Survives a crash.
    durable: bool,
}

#[derive(Clone, Debug)]
struct Table {
    columns: Vec<Column>,
    key: Vec<usize>,
    shards: usize,
    most_columns: usize,
    /// `translog.durability` is `ASYNC`.
    asynchronous: bool,
    rows: Vec<Row>,
    by_id: HashMap<String, usize>,
    next: u64,
}

/// All tables.
#[derive(Debug, Default)]
pub struct Engine {
    tables: Mutex<BTreeMap<Name, Table>>,
}

pub(crate) fn error(status: u16, code: u32, message: impl Into<String>) -> Error {
    Error { status, code, message: message.into() }
}

fn columns_of(columns: &[Column]) -> usize {
    columns.iter().map(|column| column.data_type.columns()).sum()
}

fn too_many_columns(most: usize, name: &Name) -> String {
    format!("SQLParseException[Limit of total columns [{most}] in table [{}.{}] exceeded]", name.0, name.1)
}

/// The version whose answers these are.
pub(crate) const VERSION: &str = "6.4.3";

/// `sys.nodes`: one node, of which only the version is known.
fn nodes(columns: Vec<String>) -> Result<Answer, Error> {
    if columns != ["version['number']"] {
        return Err(error(404, 4043, format!("Columns {columns:?} unknown")));
    }
    Ok(Answer { columns, count: 1, rows: vec![vec![quoted(VERSION)]] })
}

fn unknown_table(name: &Name) -> Error {
    error(404, 4041, format!("RelationUnknown[Relation '{}.{}' unknown]", name.0, name.1))
}

impl Table {
    fn position(&self, name: &str) -> Result<usize, Error> {
        let found = self.columns.iter().position(|column| column.name == name);
        found.ok_or_else(|| error(404, 4043, format!("ColumnUnknownException[Column {name} unknown]")))
    }

    fn reindex(&mut self) {
        self.by_id = self.rows.iter().enumerate().map(|(i, row)| (row.id.clone(), i)).collect();
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

    /// Inserts one row; `Err` rejects the whole request.
    fn insert(
        &mut self,
        name: &Name,
        columns: &[usize],
        values: &[Json],
        ignore: bool,
    ) -> Result<RowResult, Error> {
        if !self.learn(columns, values) {
            return Ok(RowResult::Refused(4000, too_many_columns(self.most_columns, name)));
        }
        let mut row = vec![Value::Null; self.columns.len()];
        for (at, json) in columns.iter().zip(values) {
            let Column { data_type, plain, .. } = &self.columns[*at];
            match data_type.cast(json) {
                Ok(value) if !plain && Type::too_long(&value) => {
                    return Ok(RowResult::Refused(
                        5000,
                        "IllegalArgumentException[Document contains at least one immense term]".into(),
                    ));
                }
                Ok(value) => row[*at] = value,
                Err(Refused::Request(message)) => return Err(error(400, 4000, message)),
                Err(Refused::Row(code, message)) => {
                    let column = &self.columns[*at].name;
                    let message = message.replace("strict object]", &format!("strict object `{column}`]"));
                    return Ok(RowResult::Refused(code, message));
                }
            }
        }
        for (i, column) in self.columns.iter().enumerate() {
            if let Some((part, source)) = &column.generated
                && let Some(Value::Int(millis)) =
                    self.columns.iter().position(|c| c.name == *source).map(|at| &row[at])
            {
                row[i] = Value::Int(date_trunc(part, *millis));
            }
        }
        if self.key.iter().any(|at| row[*at] == Value::Null) {
            return Err(error(400, 4000, "SQLParseException[Primary key value must not be NULL]"));
        }
        if let Some((column, _)) =
            self.columns.iter().zip(&row).find(|(column, value)| column.not_null && **value == Value::Null)
        {
            return Ok(RowResult::Refused(4000, format!("\"{}\" must not be null", column.name)));
        }
        self.next += 1;
        let id = match self.key.as_slice() {
            [] => format!("{:020}", self.next.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            key => key.iter().map(|at| to_text(&row[*at])).collect::<Vec<_>>().join("\u{1}"),
        };
        if self.by_id.contains_key(&id) {
            return Ok(match ignore {
                true => RowResult::Count(0),
                false => RowResult::Refused(
                    4091,
                    "DuplicateKeyException[A document with the same primary key exists already]".into(),
                ),
            });
        }
        self.by_id.insert(id.clone(), self.rows.len());
        self.rows.push(Row { id, values: row, visible: false, durable: !self.asynchronous });
        Ok(RowResult::Count(1))
    }
}

impl Engine {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Name, Table>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of rows in a table, visible or not; `None` if the table does not exist.
    pub fn rows_in(&self, schema: &str, table: &str) -> Option<usize> {
        self.lock().get(&(schema.to_owned(), table.to_owned())).map(|table| table.rows.len())
    }

    /// Loses the rows that were acknowledged but not yet on disk.
    pub fn crash(&self) {
        for table in self.lock().values_mut() {
            table.rows.retain(|row| row.durable);
            table.reindex();
        }
    }

    /// Names of all tables.
    pub fn table_names(&self) -> Vec<String> {
        self.lock().keys().map(|(schema, name)| format!("{schema}.{name}")).collect()
    }

    /// Inserts the rows of a statement with parameters. `Err` rejects the whole request and inserts no row.
    /// Inserts at most `most` rows, for a server that dies midway.
    pub fn bulk(
        &self,
        sql: &str,
        schema: &str,
        rows: &[Vec<Json>],
        most: usize,
    ) -> Result<Vec<RowResult>, Error> {
        let statement =
            parse(sql, schema).map_err(|what| error(400, 4000, format!("SQLParseException[{what}]")))?;
        let (name, columns, expressions, ignore) = match statement {
            Statement::Insert { name, columns, rows, ignore } => (name, columns, rows, ignore),
            _ => return Err(error(400, 4000, "SQLParseException[Bulk requests take INSERT only]")),
        };
        let [expressions] = expressions.as_slice() else {
            return Err(error(400, 4000, "SQLParseException[one row of values is expected]"));
        };
        let mut full = Vec::with_capacity(rows.len());
        for arguments in rows {
            let values = expressions.iter().map(|expression| argument(expression, arguments));
            full.push(values.collect::<Result<Vec<Json>, Error>>()?);
        }
        self.insert(&name, &columns, &full, ignore, most)
    }

    /// Inserts rows; all of them are complete.
    pub fn insert(
        &self,
        name: &Name,
        columns: &[String],
        rows: &[Vec<Json>],
        ignore: bool,
        most: usize,
    ) -> Result<Vec<RowResult>, Error> {
        let mut tables = self.lock();
        let table = tables.get_mut(name).ok_or_else(|| unknown_table(name))?;
        let positions = columns.iter().map(|column| table.position(column)).collect::<Result<Vec<_>, _>>()?;
        let before = table.rows.len();
        let mut results = Vec::with_capacity(rows.len());
        let mut explained: HashMap<u64, usize> = HashMap::new();
        // Reject the request before inserting any row.
        for row in rows {
            match table.insert(name, &positions, row, ignore) {
                Ok(RowResult::Refused(code, message)) => {
                    let mut hasher = DefaultHasher::new();
                    format!("{row:?}").hash(&mut hasher);
                    let of_shard = explained.entry(hasher.finish() % table.shards as u64).or_default();
                    *of_shard += 1;
                    results.push(if *of_shard > 10 {
                        RowResult::Bare
                    } else {
                        RowResult::Refused(code, message)
                    });
                }
                Ok(result) => results.push(result),
                Err(refused) => {
                    table.rows.truncate(before);
                    table.reindex();
                    return Err(refused);
                }
            }
        }
        if most < rows.len() {
            table.rows.truncate(before + most.min(table.rows.len() - before));
            table.reindex();
        }
        Ok(results)
    }

    /// Runs one statement with its arguments.
    pub fn run(&self, sql: &str, schema: &str, arguments: &[Json]) -> Result<Answer, Error> {
        let statement =
            parse(sql, schema).map_err(|what| error(400, 4000, format!("SQLParseException[{what}]")))?;
        let done = |count| Ok(Answer { columns: Vec::new(), rows: Vec::new(), count });
        match statement {
            Statement::Nothing(_) => done(0),
            Statement::Create {
                name,
                if_not_exists,
                columns,
                key,
                shards,
                partitioned,
                most_columns,
                asynchronous,
            } => {
                let mut tables = self.lock();
                if tables.contains_key(&name) {
                    return match if_not_exists {
                        true => done(0),
                        false => Err(error(
                            409,
                            4093,
                            format!(
                                "RelationAlreadyExists[Relation '{}.{}' already exists.]",
                                name.0, name.1
                            ),
                        )),
                    };
                }
                if let Some(bad) = columns.iter().find(|c| c.name.contains(['.', '[']) || c.name == "_id") {
                    return Err(error(
                        400,
                        4008,
                        format!("InvalidColumnNameException[\"{}\" is no valid column name]", bad.name),
                    ));
                }
                let mut table = Table {
                    columns,
                    key: Vec::new(),
                    shards: shards.max(1),
                    most_columns,
                    asynchronous,
                    rows: Vec::new(),
                    by_id: HashMap::new(),
                    next: 0,
                };
                if columns_of(&table.columns) > most_columns {
                    return Err(error(400, 4000, too_many_columns(most_columns, &name)));
                }
                table.key = key.iter().map(|name| table.position(name)).collect::<Result<_, _>>()?;
                if let Some(partition) = partitioned {
                    table.position(&partition)?;
                }
                tables.insert(name, table);
                done(1)
            }
            Statement::Drop { name, if_exists } => match self.lock().remove(&name) {
                Some(_) => done(1),
                None if if_exists => done(0),
                None => Err(unknown_table(&name)),
            },
            Statement::AddColumn { name, column } => {
                let mut tables = self.lock();
                let table = tables.get_mut(&name).ok_or_else(|| unknown_table(&name))?;
                if table.columns.iter().any(|there| there.name == column.name) {
                    let what =
                        format!("The table {}.{} already has a column named {}", name.0, name.1, column.name);
                    return Err(error(400, 4000, format!("SQLParseException[{what}]")));
                }
                table.columns.push(column);
                table.rows.iter_mut().for_each(|row| row.values.push(Value::Null));
                done(-1)
            }
            Statement::Rename { name, to } => {
                let mut tables = self.lock();
                let target = (name.0.clone(), to);
                if tables.contains_key(&target) {
                    return Err(error(400, 4093, "Cannot rename table, it exists already"));
                }
                let table = tables.remove(&name).ok_or_else(|| unknown_table(&name))?;
                tables.insert(target, table);
                done(-1)
            }
            Statement::Swap { source, target, drop_source } => {
                let mut tables = self.lock();
                for name in [&source, &target] {
                    if !tables.contains_key(name) {
                        return Err(unknown_table(name));
                    }
                }
                let (Some(new), Some(old)) = (tables.remove(&source), tables.remove(&target)) else {
                    return done(0);
                };
                tables.insert(target, new);
                if !drop_source {
                    tables.insert(source, old);
                }
                done(1)
            }
            Statement::Refresh(name) => {
                let mut tables = self.lock();
                let table = tables.get_mut(&name).ok_or_else(|| unknown_table(&name))?;
                table.rows.iter_mut().for_each(|row| row.visible = true);
                done(1)
            }
            Statement::Optimize { name, flush } => {
                let mut tables = self.lock();
                let table = tables.get_mut(&name).ok_or_else(|| unknown_table(&name))?;
                table.rows.iter_mut().for_each(|row| row.durable |= flush);
                done(1)
            }
            Statement::Insert { name, columns, rows, ignore } => {
                let mut full = Vec::new();
                for row in &rows {
                    full.push(row.iter().map(|e| argument(e, arguments)).collect::<Result<Vec<_>, _>>()?);
                }
                let results = self.insert(&name, &columns, &full, ignore, usize::MAX)?;
                match results.iter().find(|result| matches!(result, RowResult::Refused(..))) {
                    Some(RowResult::Refused(code, message)) => Err(error(409, *code, message.clone())),
                    _ => done(results.iter().filter(|result| **result == RowResult::Count(1)).count() as i64),
                }
            }
            Statement::Unnest { .. } => {
                Err(error(400, 4000, "unnest is taken over the PostgreSQL wire only"))
            }
            Statement::Select { name, columns, condition, order, limit } => {
                if name.0 == "information_schema" {
                    return self.catalogue(&name, &columns, condition.as_ref(), arguments);
                }
                if (name.0.as_str(), name.1.as_str()) == ("sys", "nodes") {
                    return nodes(columns);
                }
                self.select(&name, &columns, condition.as_ref(), (&order, limit), arguments)
            }
            Statement::Update { name, set, condition } => {
                let mut tables = self.lock();
                let table = tables.get_mut(&name).ok_or_else(|| unknown_table(&name))?;
                let mut changes = Vec::new();
                for (column, expression) in &set {
                    let at = table.position(column)?;
                    let value = table.columns[at].data_type.cast(&argument(expression, arguments)?);
                    changes.push((at, value.map_err(|refused| error(400, 4000, format!("{refused:?}")))?));
                }
                let mut count = 0;
                for i in matching(table, condition.as_ref(), arguments)? {
                    for (at, value) in &changes {
                        table.rows[i].values[*at] = value.clone();
                    }
                    count += 1;
                }
                done(count)
            }
            Statement::Delete { name, condition } => {
                let mut tables = self.lock();
                let table = tables.get_mut(&name).ok_or_else(|| unknown_table(&name))?;
                let gone = matching(table, condition.as_ref(), arguments)?;
                for i in gone.iter().rev() {
                    table.rows.remove(*i);
                }
                table.reindex();
                done(gone.len() as i64)
            }
            Statement::ShowCreate(name) => {
                let tables = self.lock();
                let table = tables.get(&name).ok_or_else(|| unknown_table(&name))?;
                let lines = table
                    .columns
                    .iter()
                    .map(|column| format!("   {} {}", name_quoted(&column.name), column.data_type.shown(1)));
                let ddl = format!(
                    "CREATE TABLE IF NOT EXISTS \"{}\".\"{}\" (\n{}\n)",
                    name.0,
                    name.1,
                    lines.collect::<Vec<_>>().join(",\n")
                );
                Ok(Answer {
                    columns: vec!["SHOW CREATE TABLE".into()],
                    rows: vec![vec![quoted(&ddl)]],
                    count: 1,
                })
            }
        }
    }

    fn select(
        &self,
        name: &Name,
        columns: &[String],
        condition: Option<&Condition>,
        (order, limit): (&[String], Option<usize>),
        arguments: &[Json],
    ) -> Result<Answer, Error> {
        let mut tables = self.lock();
        let table = tables.get_mut(name).ok_or_else(|| unknown_table(name))?;
        let mut found = matching(table, condition, arguments)?;
        let id = |name: &String| name == "_id";
        let order = order
            .iter()
            .map(|name| if id(name) { Ok(None) } else { table.position(name).map(Some) })
            .collect::<Result<Vec<_>, _>>()?;
        found.sort_by(|a, b| {
            let (a, b) = (&table.rows[*a], &table.rows[*b]);
            let by = order.iter().map(|at| match at {
                None => a.id.cmp(&b.id),
                Some(at) => compare(&a.values[*at], &b.values[*at]),
            });
            by.into_iter().find(|by| by.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        });
        found.truncate(limit.unwrap_or(usize::MAX));
        if columns.is_empty() {
            let count = found.len();
            return Ok(Answer {
                columns: vec!["count(*)".into()],
                rows: vec![vec![count.to_string()]],
                count: 1,
            });
        }
        let mut names = Vec::new();
        for column in columns {
            match column.as_str() {
                "*" => names.extend(table.columns.iter().map(|column| column.name.clone())),
                name => names.push(name.to_owned()),
            }
        }
        let mut rows = Vec::with_capacity(found.len());
        for i in found {
            let row = &table.rows[i];
            let mut values = Vec::with_capacity(names.len());
            for name in &names {
                values.push(if id(name) {
                    quoted(&row.id)
                } else {
                    to_json(&row.values[table.position(name)?])
                });
            }
            rows.push(values);
        }
        Ok(Answer { columns: names, count: rows.len() as i64, rows })
    }

    /// The tables of `information_schema`, computed on each call.
    fn catalogue(
        &self,
        name: &Name,
        columns: &[String],
        condition: Option<&Condition>,
        arguments: &[Json],
    ) -> Result<Answer, Error> {
        let text = |text: &str| Value::Text(text.to_owned());
        let mut rows: Vec<Vec<(&str, Value)>> = Vec::new();
        for ((schema, table_name), table) in self.lock().iter() {
            let place = || vec![("table_schema", text(schema)), ("table_name", text(table_name))];
            match name.1.as_str() {
                "tables" => {
                    let mut row = place();
                    let durability = if table.asynchronous { "ASYNC" } else { "REQUEST" };
                    row.push(("settings['translog']['durability']", text(durability)));
                    rows.push(row);
                }
                "columns" => {
                    for (i, column) in table.columns.iter().enumerate() {
                        let key = table.key.contains(&i);
                        let mut row = place();
                        row.push(("column_name", text(&column.name)));
                        row.push(("ordinal_position", Value::Int(i as i64 + 1)));
                        row.push(("data_type", text(&column.data_type.catalogue_name())));
                        row.push((
                            "numeric_precision",
                            match &column.data_type {
                                Type::Numeric(Some((precision, _))) => Value::Int((*precision).into()),
                                Type::Integer(bits) => Value::Int((*bits).into()),
                                _ => Value::Null,
                            },
                        ));
                        row.push(("is_nullable", text(if column.not_null || key { "NO" } else { "YES" })));
                        row.push((
                            "is_generated",
                            text(if column.generated.is_some() { "ALWAYS" } else { "NEVER" }),
                        ));
                        row.push(("column_default", Value::Null));
                        rows.push(row);
                        if let Type::Object(_, fields) = &column.data_type {
                            for (field, data_type) in fields {
                                let mut row = place();
                                row.push(("column_name", text(&format!("{}['{field}']", column.name))));
                                row.push(("ordinal_position", Value::Int(i as i64 + 1)));
                                row.push(("data_type", text(&data_type.catalogue_name())));
                                row.push(("numeric_precision", Value::Null));
                                row.push(("is_nullable", text("YES")));
                                row.push(("is_generated", text("NEVER")));
                                row.push(("column_default", Value::Null));
                                rows.push(row);
                            }
                        }
                    }
                }
                "key_column_usage" => {
                    for (i, at) in table.key.iter().enumerate() {
                        let mut row = place();
                        row.push(("column_name", text(&table.columns[*at].name)));
                        row.push(("ordinal_position", Value::Int(i as i64 + 1)));
                        rows.push(row);
                    }
                }
                _ => return Err(unknown_table(name)),
            }
        }
        let mut kept = Vec::new();
        for row in rows {
            let get =
                |name: &str| row.iter().find(|(column, _)| *column == name).map(|(_, value)| value.clone());
            if condition.is_none_or(|condition| holds(condition, arguments, &get)) {
                kept.push(
                    columns.iter().map(|name| to_json(&get(name).unwrap_or(Value::Null))).collect::<Vec<_>>(),
                );
            }
        }
        match columns.is_empty() {
            true => Ok(Answer {
                columns: vec!["count(*)".into()],
                rows: vec![vec![kept.len().to_string()]],
                count: 1,
            }),
            false => Ok(Answer { columns: columns.to_vec(), count: kept.len() as i64, rows: kept }),
        }
    }
}

/// The indices of the visible rows for which a condition is true.
fn matching(table: &Table, condition: Option<&Condition>, arguments: &[Json]) -> Result<Vec<usize>, Error> {
    let key: Vec<&str> = table.key.iter().map(|at| table.columns[*at].name.as_str()).collect();
    let realtime = condition.is_some_and(|condition| names_key(condition, &key));
    let mut found = Vec::new();
    for (i, row) in table.rows.iter().enumerate() {
        let get = |name: &str| match name {
            "_id" => Some(Value::Text(row.id.clone())),
            name => {
                table.columns.iter().position(|column| column.name == name).map(|at| row.values[at].clone())
            }
        };
        if (row.visible || realtime) && condition.is_none_or(|condition| holds(condition, arguments, &get)) {
            found.push(i);
        }
    }
    Ok(found)
}
