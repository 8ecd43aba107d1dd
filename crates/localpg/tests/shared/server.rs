//! One PostgreSQL for all tests of a program, with a database for each. `initdb` and the start of a server cost ten
//! times as much as most tests.

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use postgres::{Client, NoTls};
use sawmill_localpg::LocalPg;

static SHARED: Mutex<Option<Shared>> = Mutex::new(None);

// Statics are not dropped when a program ends.
unsafe extern "C" {
    safe fn atexit(handler: extern "C" fn()) -> c_int;
}

struct Shared {
    /// Creates and drops databases; one session for all, because the password exchange costs more than both.
    client: Client,
    server: LocalPg,
    databases: u32,
}

/// An empty database, which is dropped with this value.
pub struct SharedDatabase {
    name: String,
    /// The server's addresses and the directory of its socket.
    url: String,
    socket_url: String,
    socket_dir: PathBuf,
}

impl SharedDatabase {
    pub fn new() -> Self {
        let mut shared = shared();
        let shared = shared.get_or_insert_with(Shared::start);
        shared.databases += 1;
        let name = format!("t{}", shared.databases);
        shared.client.batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        let server = &shared.server;
        Self {
            name,
            url: server.url(),
            socket_url: server.socket_url(),
            socket_dir: server.socket_dir().to_owned(),
        }
    }

    pub fn url(&self) -> String {
        self.url.replace("/postgres", &format!("/{}", self.name))
    }

    pub fn socket_url(&self) -> String {
        self.socket_url.replace("/postgres?", &format!("/{}?", self.name))
    }

    /// The directory of the server's socket.
    pub fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }
}

impl Drop for SharedDatabase {
    fn drop(&mut self) {
        if let Some(shared) = shared().as_mut() {
            // Servers before version 13 cannot end the sessions of processes that were killed, and keep the database.
            let _ = shared.client.batch_execute(&format!("DROP DATABASE {} WITH (FORCE)", self.name));
        }
    }
}

impl Shared {
    fn start() -> Self {
        // Tests that run at the same time share its connections.
        let mut server = LocalPg::builder().setting("max_connections", "400");
        if let Some(memory) = memory() {
            server = server.parent_dir(memory);
        }
        let server = server.start().expect("a server starts");
        let client = Client::connect(&server.url(), NoTls).unwrap();
        assert_eq!(atexit(end), 0);
        Self { client, server, databases: 0 }
    }
}

/// A file system in memory that has room for all tests, unless a folder is named. A database is created there in a
/// tenth of the time.
fn memory() -> Option<&'static str> {
    const FOLDER: &str = "/dev/shm";
    if std::env::var_os("SAWMILL_PG_DIR").is_some() {
        return None;
    }
    let found = Command::new("df").args(["--output=avail", "-m", FOLDER]).output().ok()?;
    let megabytes: u64 = String::from_utf8(found.stdout).ok()?.lines().last()?.trim().parse().ok()?;
    (megabytes > 8000).then_some(FOLDER)
}

fn shared() -> MutexGuard<'static, Option<Shared>> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn end() {
    drop(shared().take());
}
