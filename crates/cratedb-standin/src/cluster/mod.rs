//! The nodes of the cluster and the state that they share.

mod nodes;
mod recovery;

use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::fault::Faults;
use crate::row_cost::RowCost;
use crate::store::Engine;

use nodes::Node;
pub(crate) use nodes::bind;
pub(crate) use recovery::Recovery;

/// State shared by all threads.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) faults: Faults,
    pub(crate) pg_faults: Faults,
    pub(crate) max_content_length: AtomicUsize,
    pub(crate) bulks: AtomicU64,
    pub(crate) unnests: AtomicU64,
    pub(crate) compressed: AtomicU64,
    pub(crate) largest: AtomicUsize,
    pub(crate) row_cost: RowCost,
    /// When a restart began to recover, and when it will have finished.
    recovering: Mutex<Option<(Instant, Instant)>>,
    /// Part of the statement before which the server restarts, and how long it is then away and recovering.
    restart_before: Mutex<Option<(String, Duration, Duration)>>,
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
            engine: Engine::default(),
            faults: Faults::default(),
            pg_faults: Faults::default(),
            max_content_length: AtomicUsize::new(104_857_600),
            bulks: AtomicU64::new(0),
            unnests: AtomicU64::new(0),
            compressed: AtomicU64::new(0),
            largest: AtomicUsize::new(0),
            row_cost: RowCost::default(),
            recovering: Mutex::default(),
            restart_before: Mutex::default(),
            own: Weak::clone(own),
            credentials: Mutex::new(None),
            nodes: Mutex::new(Vec::new()),
            tls,
        })
    }

    pub(crate) fn credentials(&self) -> Option<(String, String)> {
        self.credentials.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Requires a user and a password for every request.
    pub(crate) fn require(&self, user: &str, password: &str) {
        let credentials = Some((user.to_owned(), password.to_owned()));
        *self.credentials.lock().unwrap_or_else(PoisonError::into_inner) = credentials;
    }

    /// Does work that outlives the request.
    pub(crate) fn later(&self, work: impl FnOnce(&Shared) + Send + 'static) {
        let Some(shared) = self.own.upgrade() else { return };
        std::thread::spawn(move || work(&shared));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
