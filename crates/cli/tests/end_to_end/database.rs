//! Tests that run at the same time share a PostgreSQL; each has its own database.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use postgres::{Client, NoTls};
use sawmill_localpg::LocalPg;

static SHARED: Mutex<Weak<LocalPg>> = Mutex::new(Weak::new());
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// An empty database.
pub struct Database {
    url: String,
    server: Arc<LocalPg>,
}

impl Database {
    pub fn new() -> Self {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let server = shared.upgrade().unwrap_or_else(|| Arc::new(LocalPg::start().expect("a server starts")));
        *shared = Arc::downgrade(&server);
        let name = format!("t{}", NUMBER.fetch_add(1, Relaxed));
        let address = server.url();
        let mut client = Client::connect(&address, NoTls).unwrap();
        client.batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        let (host, _) = address.rsplit_once('/').unwrap();
        Self { url: format!("{host}/{name}"), server }
    }

    pub fn url(&self) -> String {
        self.url.clone()
    }

    pub fn socket_dir(&self) -> &Path {
        self.server.socket_dir()
    }
}
