//! One statement with its arguments.

use std::sync::atomic::Ordering::Relaxed;

use super::condition::argument;
use super::unnest::unnested;
use super::{Answer, Engine, Error, RowResult, error, parsed};
use crate::json::{Json, quoted};
use crate::sql::{Condition, Expression, Name, Select, Statement};

impl Engine {
    /// Runs one statement with its arguments.
    pub(crate) fn run(&self, sql: &str, schema: &str, arguments: &[Json]) -> Result<Answer, Error> {
        match parsed(sql, schema)? {
            Statement::Nothing(_) => Answer::done(0),
            Statement::Create(table) => self.create(table),
            Statement::Drop { name, if_exists } => self.drop_table(&name, if_exists),
            Statement::AddColumns { name, columns } => self.with(&name, |table| {
                table.add(&name, columns)?;
                Answer::done(-1)
            }),
            Statement::DropColumn { name, column } => self.with(&name, |table| {
                table.drop_column(&column)?;
                Answer::done(-1)
            }),
            Statement::Kill(job) => Answer::done(self.jobs().kill(&job).into()),
            Statement::Rename { name, to } => self.rename(name, to),
            Statement::Swap { source, target, drop_source } => self.swap(source, target, drop_source),
            Statement::Refresh(name) => self.with(&name, |table| {
                table.refresh();
                Answer::done(1)
            }),
            Statement::Optimize { name, flush } => self.with(&name, |table| {
                table.flush(flush);
                Answer::done(1)
            }),
            Statement::Insert { name, columns, rows, conflict } => {
                let rows =
                    rows.iter().map(|row| row.iter().map(|value| argument(value, arguments)).collect());
                let rows = rows.collect::<Result<Vec<Vec<Json>>, Error>>()?;
                let results = self.insert(&name, &columns, &rows, &conflict, usize::MAX)?;
                match results.iter().find(|result| matches!(result, RowResult::Refused(..))) {
                    Some(RowResult::Refused(code, message)) => Err(error(409, *code, message.clone())),
                    _ => {
                        let inserted = results.iter().filter(|result| **result == RowResult::Count(1));
                        Answer::done(inserted.count() as i64)
                    }
                }
            }
            Statement::Unnest { name, columns, sources, conflict } => {
                let arrays = arguments.iter().map(|argument| match argument {
                    Json::Array(array) => array.clone(),
                    other => vec![other.clone()],
                });
                let rows = unnested(&arrays.collect::<Vec<_>>(), &sources);
                let rows = rows.map_err(|what| error(400, 4000, what))?;
                // Rows that are refused vanish: the answer counts the others.
                let results = self.insert(&name, &columns, &rows, &conflict, usize::MAX)?;
                Answer::done(results.iter().filter(|result| **result == RowResult::Count(1)).count() as i64)
            }
            Statement::Select(select) => match (select.name.0.as_str(), select.name.1.as_str()) {
                ("information_schema", _) => self.catalogue(&select, arguments),
                ("sys", _) if self.denies_sys.load(Relaxed) => {
                    Err(error(404, 4045, "SchemaUnknownException[Schema 'sys' unknown]"))
                }
                ("sys", "nodes") => {
                    let known = [
                        ("name", quoted("standin")),
                        ("version['number']", quoted(&self.version())),
                        ("heap['max']", (1u64 << 29).to_string()),
                    ];
                    one_row(select, &known)
                }
                ("sys", "jobs") => self.jobs().list(select),
                ("sys", "cluster") => {
                    let lists_jobs = !self.jobs().hidden.load(Relaxed);
                    one_row(select, &[("settings['stats']['enabled']", lists_jobs.to_string())])
                }
                ("sys", "checks" | "node_checks") => checks(&select),
                ("sys", "shards") => Ok(self.shards()),
                _ => self.select(&select, arguments),
            },
            Statement::Update { name, set, condition } => {
                self.update(&name, &set, condition.as_ref(), arguments)
            }
            Statement::Delete { name, condition } => self.with(&name, |table| {
                let gone = table.matching(condition.as_ref(), arguments);
                Answer::done(table.remove(&gone) as i64)
            }),
            Statement::ShowCreate(name) => self.with(&name, |table| {
                let rows = vec![vec![quoted(&table.ddl(&name))]];
                Ok(Answer { columns: vec!["SHOW CREATE TABLE".into()], rows, count: 1 })
            }),
        }
    }

    /// `sys.shards` by their state: four shards of each table.
    fn shards(&self) -> Answer {
        let count = 4 * self.table_names().len();
        let rows = vec![vec![quoted("STARTED"), count.to_string()]];
        Answer { columns: vec!["routing_state".into(), "count".into()], count: 1, rows }
    }

    fn update(
        &self,
        name: &Name,
        set: &[(String, Expression)],
        condition: Option<&Condition>,
        arguments: &[Json],
    ) -> Result<Answer, Error> {
        self.with(name, |table| {
            let mut changes = Vec::new();
            for (column, expression) in set {
                let at = table.position(column)?;
                let value = table.columns[at].data_type.cast(&argument(expression, arguments)?);
                changes.push((at, value.map_err(|refused| error(400, 4000, format!("{refused:?}")))?));
            }
            let found = table.matching(condition, arguments);
            for row in &found {
                for (at, value) in &changes {
                    table.rows[*row].values[*at] = value.clone();
                }
            }
            Answer::done(found.len() as i64)
        })
    }
}

/// A table of `sys` with one row and only these known columns. Values are JSON.
fn one_row(select: Select, known: &[(&str, String)]) -> Result<Answer, Error> {
    let value =
        |column: &String| known.iter().find(|(name, _)| name == column).map(|(_, value)| value.clone());
    match select.columns.iter().map(value).collect::<Option<Vec<String>>>() {
        Some(row) => Ok(Answer { columns: select.columns, count: 1, rows: vec![row] }),
        None => Err(error(404, 4043, format!("Columns {:?} unknown", select.columns))),
    }
}

/// `sys.checks` and `sys.node_checks`: one that passes and one that fails.
fn checks(select: &Select) -> Result<Answer, Error> {
    let of = |passed: bool| {
        let known = [
            ("severity", "3".to_owned()),
            (
                "description",
                quoted("The low disk watermark is exceeded on the node. https://cr8.is/d-node-check-6"),
            ),
            ("passed", passed.to_string()),
        ];
        one_row(select.clone(), &known)
    };
    let (mut passes, fails) = (of(true)?, of(false)?);
    passes.rows.extend(fails.rows);
    Ok(Answer { count: 2, ..passes })
}
