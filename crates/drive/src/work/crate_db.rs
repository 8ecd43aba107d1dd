//! CrateDB as a target, over HTTP.

mod arguments;
mod json;
mod session;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sawmill_cratedb::{CrateReply, CrateServer, CrateStatements};
use sawmill_source::{Error, Kind, Result};
use serde_json::Value;

use crate::plan::pooling::{Away, Reconnect};
use crate::plan::types::{Plan, PlanTable};
use crate::proof::check::Check;
use crate::result::proof::Proof;
use crate::work::rows::{Rows, SharedTable};
use crate::work::statements;
use crate::work::target::{Session, Target, TextRows};

/// How long a statement outside of operations may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// Rows that are read back at once.
const PAGE: usize = 10_000;
/// The most bytes and values of an answer outside of operations, and how many bytes a page of rows should have.
const MAX_ANSWER: usize = 64 << 20;
const MAX_VALUES: usize = 1 << 20;
const PAGE_BYTES: usize = 8 << 20;

/// Rows, and how many bytes the answer has.
type Answer = (Vec<Vec<Value>>, usize);

pub(crate) struct CrateTarget {
    server: CrateServer,
    version: String,
    reconnect: Reconnect,
    /// One wait for all reading after the run.
    away: Mutex<Away>,
}

impl CrateTarget {
    pub(crate) fn new(server: &CrateServer, plan: &Plan, cancel: &AtomicBool) -> Result<Self> {
        if let Some(operation) = plan.operations.iter().find(|operation| operation.transaction) {
            return Err(Error::new(Kind::Config, "CrateDB has no transactions")
                .at(format!("operation {:?}", operation.name))
                .advise("write `steps` instead: statements one after the other"));
        }
        if plan.isolation.is_some() {
            return Err(Error::new(Kind::Config, "CrateDB has no isolation levels")
                .at(plan.name.clone())
                .advise("leave `isolation` out"));
        }
        let (server, version) = (server.clone(), String::new());
        let mut target = Self { server, version, reconnect: plan.reconnect, away: Mutex::default() };
        let (rows, _) = target.ask("SELECT version['number'] FROM sys.nodes LIMIT 1", &[], cancel)?;
        let version = rows.first().and_then(|row| row.first()).and_then(Value::as_str);
        target.version = version.unwrap_or_default().to_owned();
        Ok(target)
    }

    /// Runs a statement outside of operations; returns its rows, and the length of the answer.
    fn ask(&self, sql: &str, arguments: &[Value], cancel: &AtomicBool) -> Result<Answer> {
        let mut statements = CrateStatements::new(&self.server, PATIENCE, MAX_ANSWER)?;
        let body = serde_json::json!({ "stmt": sql, "args": arguments }).to_string();
        let body = self.body(statements.send(body.as_bytes(), cancel), self.server.to_string())?;
        let rows = json::rows(&body, MAX_VALUES).ok_or_else(|| {
            let what = format!("the answer is not one of CrateDB, or has more than {MAX_VALUES} values");
            Error::new(Kind::Server, what)
                .at(self.server.to_string())
                .advise("let no proxy answer in its place, and ask for fewer rows")
        })?;
        Ok((rows, body.len()))
    }

    /// Reads over a connection, and over others if it is lost, as operations do.
    fn read(&self, sql: &str, arguments: &[Value], cancel: &AtomicBool) -> Result<Answer> {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match self.ask(sql, arguments, cancel) {
                Err(error)
                    if error.kind() == Kind::Connection
                        && away.wait(&self.reconnect, &|| cancel.load(Relaxed)) => {}
                done => return done,
            }
        }
    }

    /// The body of an answer, or why there is none; a refusal is at `place`.
    fn body(&self, reply: CrateReply, place: String) -> Result<Vec<u8>> {
        match reply {
            CrateReply::Done(body) => Ok(body),
            CrateReply::Refused(code, message) => {
                let kind = if code == 4093 { Kind::Exists } else { Kind::Server };
                Err(Error::new(kind, format!("the server says: {message} [{code}]")).at(place))
            }
            CrateReply::NotSent(what) | CrateReply::Unknown(what) => Err(Error::new(Kind::Connection, what)
                .at(self.server.to_string())
                .advise("check the address, and whether the server is running")),
        }
    }

    /// Inserts the rows that a table has before the run.
    fn fill(&self, table: &SharedTable, rows: u64, cancel: &AtomicBool) -> Result<()> {
        let sql = statements::bulk(table);
        let types: Vec<_> = table.maker.column_types().map(|(_, pg_type)| pg_type).collect();
        let mut statements = CrateStatements::new(&self.server, PATIENCE, MAX_ANSWER)?;
        table.fill(rows, cancel, |rows| {
            let mut body = format!("{{\"stmt\":{},\"bulk_args\":[", Value::from(sql.as_str()));
            for row in rows {
                if !body.ends_with('[') {
                    body.push(',');
                }
                json::write_row(row, &types, &mut body);
            }
            body.push_str("]}");
            let answer = self.body(statements.send(body.as_bytes(), cancel), table.name.clone())?;
            let failure = json::bulk_failure(&answer, rows.len() as u64);
            failure.map_or(Ok(()), |what| {
                let what = format!("the server says: {what}");
                Err(Error::new(Kind::Server, what).at(table.name.clone()))
            })
        })
    }
}

impl Target for CrateTarget {
    fn set_up(&self, plan: &Plan, tables: &Arc<Vec<Arc<SharedTable>>>, cancel: &AtomicBool) -> Result<()> {
        if plan.overwrite {
            self.tear_down(tables, cancel)?;
        }
        for (table, PlanTable { rows, with, .. }) in tables.iter().zip(&plan.tables) {
            let sql = statements::create(table, plan.part.1 > 1, with.as_deref(), &json::type_of, false);
            self.ask(&sql, &[], cancel).map_err(|error| {
                error.at(format!("table {}", table.name)).advise("if it exists: --overwrite drops it first")
            })?;
            if plan.part.1 > 1 && !self.ask(&statements::first_row(table, false), &[], cancel)?.0.is_empty() {
                return Err(statements::used(table));
            }
            self.fill(table, *rows, cancel)?;
            self.ask(&format!("REFRESH TABLE {}", statements::quoted(&table.name)), &[], cancel)?;
        }
        Ok(())
    }

    fn session<'a>(
        &'a self,
        plan: &'a Plan,
        rows: Rows,
        cancel: &'a AtomicBool,
    ) -> Result<Box<dyn Session + 'a>> {
        Ok(Box::new(session::CrateSession::new(&self.server, plan, rows, cancel)?))
    }

    fn prove(&self, table: &SharedTable, cancel: &AtomicBool) -> Result<Proof> {
        let name = statements::quoted(&table.name);
        self.read(&format!("REFRESH TABLE {name}"), &[], cancel)?;
        let columns = statements::columns(table);
        let key = statements::quoted(crate::mix::block::NUMBER);
        let types: Vec<_> = table.maker.column_types().map(|(_, pg_type)| pg_type).collect();
        let mut check = Check::new(table);
        let mut after = i64::MIN;
        let most = (MAX_VALUES / types.len().max(1)).clamp(1, PAGE);
        // The first page shows how long the rows are.
        let mut page = most.min(100);
        loop {
            if cancel.load(Relaxed) {
                return Err(Error::cancelled());
            }
            let sql = format!("SELECT {columns} FROM {name} WHERE {key} > ? ORDER BY {key} LIMIT {page}");
            let (rows, bytes) = self.read(&sql, &[after.into()], cancel)?;
            for row in &rows {
                after = row.first().and_then(Value::as_i64).unwrap_or(i64::MAX);
                match u64::try_from(after) {
                    Ok(number) => {
                        let version = row.get(1).and_then(Value::as_i64);
                        check.found(number, version, |expected| json::is_equal(expected, &types, row))?;
                    }
                    Err(_) => check.foreign(),
                }
            }
            if rows.len() < page {
                return check.end();
            }
            page = (PAGE_BYTES / (bytes / rows.len()).max(1)).clamp(1, most);
        }
    }

    fn query(&self, sql: &str, cancel: &AtomicBool) -> Result<TextRows> {
        let text = |value: Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text),
            Value::Array(nested) => nested.first().and_then(Value::as_str).map(str::to_owned),
            other => Some(other.to_string()),
        };
        let (rows, _) = self.read(sql, &[], cancel)?;
        Ok(rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect())
    }

    fn tear_down(&self, tables: &[Arc<SharedTable>], cancel: &AtomicBool) -> Result<()> {
        tables.iter().try_for_each(|table| {
            let sql = format!("DROP TABLE IF EXISTS {}", statements::quoted(&table.name));
            self.ask(&sql, &[], cancel).map(drop)
        })
    }

    fn versions(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("cratedb".to_owned(), self.version.clone())])
    }

    fn name(&self) -> String {
        self.server.to_string()
    }

    fn listener(&self) -> Option<sawmill_profile::Target> {
        self.server.local_listener()
    }
}
