//! A restarting server, and its answers until it has recovered.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::Shared;
use super::nodes::bind;
use crate::store::{Error, error};

/// The progress of a restarting server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    NoTables,
    NoShards,
    Over,
}

impl Shared {
    /// Plans a restart before a statement that contains this text.
    pub(crate) fn plan_restart(&self, text: &str, away: Duration, recovering: Duration) {
        let planned = Some((text.to_owned(), away, recovering));
        *self.restart_before.lock().unwrap_or_else(PoisonError::into_inner) = planned;
    }

    /// Ends a node as in a crash, and starts it again.
    pub(crate) fn restart(&self, node: usize, away: Duration, recovering: Duration) {
        self.stop(node);
        self.engine.crash();
        let Some(shared) = self.own.upgrade() else { return };
        std::thread::spawn(move || {
            std::thread::sleep(away);
            let now = Instant::now();
            *shared.recovering.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, now + recovering));
            let port = shared.port(node);
            shared.listen(node, bind(port));
        });
    }

    /// Whether the planned restart comes before this statement; if so, starts it.
    pub(crate) fn restarts_before(&self, node: usize, statement: &str) -> bool {
        let mut planned = self.restart_before.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, away, recovering)) = planned.take_if(|(text, ..)| statement.contains(text.as_str()))
        else {
            return false;
        };
        drop(planned);
        self.restart(node, away, recovering);
        true
    }

    /// How far a restarting server has come: at first it knows no tables, then all, but has not started their
    /// shards.
    pub(crate) fn recovery(&self) -> Recovery {
        let Some((began, end)) = *self.recovering.lock().unwrap_or_else(PoisonError::into_inner) else {
            return Recovery::Over;
        };
        let now = Instant::now();
        match now {
            now if now >= end => Recovery::Over,
            now if now < began + (end - began) / 2 => Recovery::NoTables,
            _ => Recovery::NoShards,
        }
    }

    /// The answer of a server that has not recovered to a statement about a table.
    pub(crate) fn not_recovered(&self, statement: &str) -> Option<Error> {
        if statement.contains("information_schema") || statement.contains("FROM sys.") {
            return None;
        }
        match self.recovery() {
            Recovery::Over => None,
            Recovery::NoTables if statement.contains("\"doc\".") => {
                Some(error(404, 4041, "RelationUnknown[Relation 'doc.t' unknown]"))
            }
            Recovery::NoTables => {
                Some(error(404, 4045, "SchemaUnknownException[Schema 'checkpoints' unknown]"))
            }
            Recovery::NoShards => Some(error(
                404,
                4040,
                "IllegalIndexShardStateException[CurrentState[RECOVERING] operations only allowed when shard state is one \
                 of [POST_RECOVERY, STARTED]]",
            )),
        }
    }
}
