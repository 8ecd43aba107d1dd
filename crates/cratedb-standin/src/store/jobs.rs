//! `sys.jobs`: the statements that run, among them those whose connection is gone.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{Answer, Error, error};
use crate::json::quoted;
use crate::sql::Select;

/// The jobs of all nodes.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    running: Mutex<BTreeMap<String, Running>>,
    number: AtomicU64,
    user: Mutex<Option<String>>,
    /// The list stays empty.
    pub(super) hidden: AtomicBool,
    /// Jobs run to their end.
    pub(super) unstoppable: AtomicBool,
    /// Milliseconds since 1970, if not by the system's clock.
    clock: AtomicU64,
}

#[derive(Debug)]
struct Running {
    statement: String,
    /// Milliseconds since 1970.
    started: u64,
    killed: bool,
}

/// A job that is in the list until this is dropped.
pub(crate) struct Job<'j> {
    jobs: &'j Jobs,
    id: String,
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        self.jobs.remove(&self.id);
    }
}

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists a statement that begins.
    pub(crate) fn begin(&self, statement: &str) -> Job<'_> {
        Job { jobs: self, id: self.list_one(statement) }
    }

    /// Lists a statement until [`remove`](Self::remove), and returns its ID.
    pub(crate) fn list_one(&self, statement: &str) -> String {
        let number = self.number.fetch_add(1, Relaxed);
        let id = format!("{:08x}-0000-4000-8000-{number:012x}", std::process::id());
        let started = match self.clock.load(Relaxed) {
            0 => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64),
            clock => clock,
        };
        let running = Running { statement: statement.to_owned(), started, killed: false };
        self.lock().insert(id.clone(), running);
        id
    }

    pub(crate) fn remove(&self, id: &str) {
        self.lock().remove(id);
    }

    pub(crate) fn is_killed(&self, id: &str) -> bool {
        self.lock().get(id).is_some_and(|running| running.killed)
    }

    pub(crate) fn set_clock(&self, since_1970: Duration) {
        self.clock.store(since_1970.as_millis() as u64, Relaxed);
    }

    /// Lists a statement for a while; returns whether it was killed in that time.
    pub(crate) fn run_for(&self, statement: &str, time: Duration) -> bool {
        let job = self.begin(statement);
        let end = Instant::now() + time;
        while Instant::now() < end && !self.is_killed(&job.id) {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.is_killed(&job.id)
    }

    /// Ends a job; returns whether it did.
    pub(super) fn kill(&self, id: &str) -> bool {
        match self.lock().get_mut(id) {
            Some(running) if !self.unstoppable.load(Relaxed) => {
                running.killed = true;
                true
            }
            _ => false,
        }
    }

    pub(super) fn end_all(&self) {
        self.lock().values_mut().for_each(|running| running.killed = true);
    }

    /// The user whose jobs these are.
    pub(crate) fn run_as(&self, user: &str) {
        *self.user.lock().unwrap_or_else(PoisonError::into_inner) = Some(user.to_owned());
    }

    /// The jobs, among them the statement that asks for them.
    pub(super) fn list(&self, select: Select) -> Result<Answer, Error> {
        let unknown = |what: String| Err(error(404, 4043, format!("ColumnUnknownException[{what}]")));
        if select.condition.is_some() {
            return unknown("conditions on sys.jobs are not supported here".to_owned());
        }
        let known = ["id", "node", "started", "stmt", "username"];
        if let Some(column) = select.columns.iter().find(|column| !known.contains(&column.as_str())) {
            return unknown(format!("Column {column} unknown"));
        }
        let user = self.user.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let user = quoted(user.as_deref().unwrap_or("crate"));
        let mut rows = Vec::new();
        if !self.hidden.load(Relaxed) {
            for (id, Running { statement, started, .. }) in self.lock().iter() {
                let cell = |column: &String| match column.as_str() {
                    "id" => quoted(id),
                    "node" => "{\"id\":\"standin\",\"name\":\"standin\"}".to_owned(),
                    "started" => started.to_string(),
                    "stmt" => quoted(statement),
                    _ => user.clone(),
                };
                rows.push(select.columns.iter().map(cell).collect());
            }
        }
        Ok(Answer { columns: select.columns, count: rows.len() as i64, rows })
    }
}
