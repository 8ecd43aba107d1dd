//! `sys.jobs`: the statements that run, among them those whose connection is gone.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Answer, Error, error};
use crate::json::quoted;
use crate::sql::Select;

/// The jobs that run on after their connections.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    running: Mutex<BTreeMap<String, Running>>,
    hidden: AtomicBool,
    unstoppable: AtomicBool,
}

#[derive(Debug)]
struct Running {
    statement: String,
    killed: Arc<AtomicBool>,
}

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists a statement for a while; returns whether it was killed in that time.
    pub(crate) fn run_for(&self, statement: &str, time: Duration) -> bool {
        let killed = Arc::new(AtomicBool::new(false));
        let id = format!(
            "{:08x}-0000-4000-8000-{:012x}",
            std::process::id(),
            Arc::as_ptr(&killed) as usize as u64 & 0xFFFF_FFFF_FFFF
        );
        let running = Running { statement: statement.to_owned(), killed: Arc::clone(&killed) };
        self.lock().insert(id.clone(), running);
        let end = Instant::now() + time;
        while Instant::now() < end && !killed.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.lock().remove(&id);
        killed.load(Relaxed)
    }

    /// Ends a job; returns whether it did.
    pub(super) fn kill(&self, id: &str) -> bool {
        match self.lock().get(id) {
            Some(running) if !self.unstoppable.load(Relaxed) => {
                running.killed.store(true, Relaxed);
                true
            }
            _ => false,
        }
    }

    /// From now on jobs run to their end.
    pub(super) fn end_none(&self) {
        self.unstoppable.store(true, Relaxed);
    }

    pub(super) fn end_all(&self) {
        self.lock().values().for_each(|running| running.killed.store(true, Relaxed));
    }

    pub(super) fn hide(&self) {
        self.hidden.store(true, Relaxed);
    }

    /// The jobs and the statement that asks for them.
    pub(super) fn list(&self, select: Select, asking: &str) -> Result<Answer, Error> {
        if select.columns != ["id", "stmt"] || select.condition.is_some() {
            return Err(error(404, 4043, format!("Columns {:?} unknown", select.columns)));
        }
        let mut rows = Vec::new();
        if !self.hidden.load(Relaxed) {
            let jobs = self.lock();
            let listed = jobs.iter().map(|(id, running)| (id.as_str(), running.statement.as_str()));
            let asking = ("00000000-0000-4000-8000-000000000000", asking);
            rows.extend(listed.chain([asking]).map(|(id, text)| vec![quoted(id), quoted(text)]));
        }
        Ok(Answer { columns: select.columns, count: rows.len() as i64, rows })
    }
}
