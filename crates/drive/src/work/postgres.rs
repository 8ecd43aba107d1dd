//! PostgreSQL as a target.

mod arguments;
mod messages;
mod proof;
mod session;
mod watch;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sawmill_pgcopy::{HEADER, TRAILER};
use sawmill_pgwire::{BlockingConnection, COMMIT_DURABLY, Patience, Server, ServerReport};
use sawmill_source::{Error, Kind, LOOK, Result};

use crate::plan::pooling::{Away, Reconnect};
use crate::plan::types::{Plan, PlanTable};
use crate::proof::check::Check;
use crate::result::proof::Proof;
use crate::result::second::ServerSample;
use crate::work::rows::{Rows, SharedTable};
use crate::work::statements;
use crate::work::target::{Session, Target, TextRows};

pub(crate) struct PgTarget {
    /// For operations: with the isolation level and the time limit of the plan.
    server: Server,
    /// For everything else.
    plain: Server,
    version: String,
    reconnect: Reconnect,
    /// One wait for all reading after the run.
    away: Mutex<Away>,
    /// The object identifiers of the tables, by their names.
    tables: Mutex<BTreeMap<String, String>>,
}

impl PgTarget {
    pub(crate) fn new(server: &Server, plan: &Plan, cancel: &AtomicBool) -> Result<Self> {
        let is_cancelled = || cancel.load(Relaxed);
        let pause = |_: &Error| {
            std::thread::sleep(LOOK);
            if is_cancelled() { Err(Error::cancelled()) } else { Ok(()) }
        };
        let open = || BlockingConnection::open(server, &is_cancelled);
        let connection = server.once_it_takes_connections(pause, open)?;
        let version = connection.parameters.iter().find(|(name, _)| name == "server_version");
        let version = version.map(|(_, version)| version.clone()).unwrap_or_default();
        let timeout = plan.timeout.as_millis().to_string();
        let mut operations = server.clone().setting("statement_timeout", timeout);
        if let Some(level) = &plan.isolation {
            operations = operations.setting("default_transaction_isolation", level);
        }
        Ok(Self {
            server: operations,
            plain: server.clone(),
            version,
            reconnect: plan.reconnect,
            away: Mutex::default(),
            tables: Mutex::default(),
        })
    }

    fn tables(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(&self, cancel: &AtomicBool) -> Result<BlockingConnection> {
        BlockingConnection::open(&self.plain, &|| cancel.load(Relaxed))
    }

    /// Reads over a connection, and over others if it is lost, as operations do.
    fn again_if_lost<T>(
        &self,
        cancel: &AtomicBool,
        mut read: impl FnMut(&mut BlockingConnection, &mut Patience<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut connected = self.connect(cancel);
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let done = connected.and_then(|mut connection| {
                let mut patience = Patience::new(&self.plain, &mut connection, cancel);
                read(&mut connection, &mut patience)
            });
            match done {
                Err(error)
                    if error.kind() == Kind::Connection
                        && away.wait(&self.reconnect, &|| cancel.load(Relaxed)) =>
                {
                    connected = self.connect(cancel);
                }
                done => return done,
            }
        }
    }
}

impl Target for PgTarget {
    fn set_up(&self, plan: &Plan, tables: &Arc<Vec<Arc<SharedTable>>>, cancel: &AtomicBool) -> Result<()> {
        if plan.overwrite {
            self.tear_down(tables, cancel)?;
        }
        let mut connection = self.connect(cancel)?;
        let mut patience = Patience::new(&self.plain, &mut connection, cancel);
        let mut given_up = || patience.given_up();
        let several = plan.part.1 > 1;
        for (table, PlanTable { rows, with, .. }) in tables.iter().zip(&plan.tables) {
            let sql =
                statements::create(table, several, with.as_deref(), &|pg_type| pg_type.to_string(), true);
            // A crash must not take the table with the rows that the run looks for.
            let sql = format!("{sql}; {COMMIT_DURABLY}");
            let created = match connection.ask(&sql, &mut given_up) {
                // IF NOT EXISTS looks before another part commits its table, and fails after that.
                Err(error) if several && error.what().contains("23505") => {
                    connection.ask(&sql, &mut given_up)
                }
                created => created,
            };
            created.map_err(|error| {
                let advice = match error.what().contains("42P07") {
                    true => {
                        "the table exists: choose another name, or have it dropped first with --overwrite"
                    }
                    false => "see what the server says",
                };
                Error::new(Kind::Exists, error.what()).at(format!("table {}", table.name)).advise(advice)
            })?;
            let used = statements::first_row(table, true);
            if several && !connection.ask(&used, &mut given_up)?.is_empty() {
                return Err(statements::used(table));
            }
            if let Some(oid) = oid(&mut connection, &table.name, &mut given_up)? {
                self.tables().insert(table.name.clone(), oid);
            }
            fill(&mut connection, table, *rows, cancel, &mut given_up)?;
        }
        Ok(())
    }

    fn session<'a>(
        &'a self,
        plan: &'a Plan,
        rows: Rows,
        cancel: &'a AtomicBool,
    ) -> Result<Box<dyn Session + 'a>> {
        Ok(Box::new(session::PgSession::new(&self.server, plan, rows, cancel)?))
    }

    fn watch(&self) -> Option<Box<dyn FnMut() -> Option<ServerSample> + Send + '_>> {
        let mut watch = watch::Watch::new(&self.plain);
        Some(Box::new(move || watch.sample()))
    }

    fn prove(&self, table: &SharedTable, cancel: &AtomicBool) -> Result<Proof> {
        let mut check = Check::new(table);
        let now = self.again_if_lost(cancel, |connection, patience| {
            let now = oid(connection, &table.name, &mut || patience.given_up())?;
            proof::prove(connection, table, &mut check, cancel, patience).map(|()| now)
        })?;
        let mut proof = check.end()?;
        proof.replaced = now.as_ref() != self.tables().get(&table.name);
        Ok(proof)
    }

    fn query(&self, sql: &str, cancel: &AtomicBool) -> Result<TextRows> {
        self.again_if_lost(cancel, |connection, patience| connection.ask(sql, &mut || patience.given_up()))
    }

    fn tear_down(&self, tables: &[Arc<SharedTable>], cancel: &AtomicBool) -> Result<()> {
        let mut connection = self.connect(cancel)?;
        let mut patience = Patience::new(&self.plain, &mut connection, cancel);
        tables.iter().try_for_each(|table| {
            let sql = format!("DROP TABLE IF EXISTS {}", statements::quoted(&table.name));
            patience.came();
            connection.ask(&sql, &mut || patience.given_up()).map(drop)
        })
    }

    fn versions(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("postgresql".to_owned(), self.version.clone())])
    }

    fn name(&self) -> String {
        self.plain.to_string()
    }

    fn listener(&self) -> Option<sawmill_profile::Target> {
        self.plain.local_listener()
    }
}

/// The object identifier of a table: a new table of the same name has another one.
fn oid(
    connection: &mut BlockingConnection,
    table: &str,
    given_up: &mut dyn FnMut() -> bool,
) -> Result<Option<String>> {
    let name = statements::quoted(table).replace('\'', "''");
    let sql = format!("SELECT to_regclass('{name}')::oid");
    let rows = connection.ask(&sql, given_up)?;
    Ok(rows.into_iter().flatten().next().flatten())
}

/// Inserts the rows that the tables have before the run.
fn fill(
    connection: &mut BlockingConnection,
    table: &SharedTable,
    rows: u64,
    cancel: &AtomicBool,
    given_up: &mut dyn FnMut() -> bool,
) -> Result<()> {
    if rows == 0 {
        return Ok(());
    }
    let place = format!("table {}", table.name);
    let lost = |error: std::io::Error| {
        Error::new(Kind::Connection, format!("the connection was lost: {error}")).at(place.clone())
    };
    let sql = format!(
        "COPY {} ({}) FROM STDIN (FORMAT binary)",
        statements::quoted(&table.name),
        statements::columns(table)
    );
    let refused = |report: ServerReport| {
        Error::new(Kind::Server, format!("the server says: {} [{}]", report.message, report.code))
            .at(place.clone())
    };
    messages::begin_copy(connection, &sql, given_up).map_err(lost)?.map_err(refused)?;
    let mut header = HEADER.to_vec();
    table.fill(rows, cancel, |rows| {
        messages::push(&mut connection.out, b'd', |out| {
            out.append(&mut header);
            rows.iter().for_each(|row| out.extend_from_slice(row));
        });
        connection.send().map_err(lost)
    })?;
    messages::push(&mut connection.out, b'd', |out| out.extend_from_slice(&TRAILER));
    messages::push(&mut connection.out, b'c', |_| {});
    connection.send().map_err(lost)?;
    let answered = messages::answer(connection, given_up).map_err(lost)?;
    answered.map(drop).map_err(refused)
}
