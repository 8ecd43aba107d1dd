//! The nodes of the cluster and the state that they share.

mod batch;
mod nodes;
mod recovery;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::fault::Faults;
use crate::row_cost::RowCost;
use crate::store::Engine;

pub(crate) use batch::{Batch, End};
use nodes::Node;
pub(crate) use nodes::bind;
pub(crate) use recovery::Recovery;

/// State shared by all threads.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) faults: Faults,
    pub(crate) pg_faults: Faults,
    pub(crate) max_content_length: AtomicUsize,
    pub(crate) bulks: AtomicU64,
    pub(crate) statements: AtomicU64,
    /// Requests that run on after their connections.
    pub(crate) running_on: AtomicU64,
    pub(crate) unnests: AtomicU64,
    pub(crate) compressed: AtomicU64,
    pub(crate) largest: AtomicUsize,
    pub(crate) row_cost: RowCost,
    /// When a restart began to recover, and when it will have finished.
    recovering: Mutex<Option<(Instant, Instant)>>,
    /// Part of the statement before which the server restarts, and how long it is then away and recovering.
    restart_before: Mutex<Option<(String, Duration, Duration)>>,
    /// Part of the statement that loses its connection, and how long it then runs.
    orphan: Mutex<Option<(String, Duration)>>,
    /// A reference to this value, for threads that outlive a request.
    own: Weak<Shared>,
    credentials: Mutex<Option<(String, String)>>,
    nodes: Mutex<Vec<Node>>,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
}

impl Shared {
    /// The state of a cluster without nodes.
    pub(crate) fn new(tls: Option<Arc<rustls::ServerConfig>>) -> Arc<Self> {
        Arc::new_cyclic(|own| Shared {
            max_content_length: AtomicUsize::new(104_857_600),
            own: Weak::clone(own),
            tls,
            ..Shared::default()
        })
    }

    pub(crate) fn credentials(&self) -> Option<(String, String)> {
        self.credentials.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Requires a user and a password for every request.
    pub(crate) fn require(&self, user: &str, password: &str) {
        self.engine.jobs().run_as(user);
        let credentials = Some((user.to_owned(), password.to_owned()));
        *self.credentials.lock().unwrap_or_else(PoisonError::into_inner) = credentials;
    }

    /// Does work that outlives the request.
    pub(crate) fn later(&self, work: impl FnOnce(&Shared) + Send + 'static) {
        let Some(shared) = self.own.upgrade() else { return };
        shared.running_on.fetch_add(1, Relaxed);
        std::thread::spawn(move || {
            work(&shared);
            shared.running_on.fetch_sub(1, Relaxed);
        });
    }

    /// Plans that a statement that contains this text loses its connection, and runs on for so long.
    pub(crate) fn plan_orphan(&self, text: &str, time: Duration) {
        *self.orphan.lock().unwrap_or_else(PoisonError::into_inner) = Some((text.to_owned(), time));
    }

    /// How long this statement runs on without its connection, if that is planned.
    pub(crate) fn orphans(&self, statement: &str) -> Option<Duration> {
        let mut planned = self.orphan.lock().unwrap_or_else(PoisonError::into_inner);
        planned.take_if(|(text, _)| statement.contains(text.as_str())).map(|(_, time)| time)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
