//! A strict stand-in for a CrateDB cluster, inside the process of a test.
//!
//! It supports `POST /_sql` and as much of the PostgreSQL wire protocol as UNNEST needs, keeps rows in
//! memory, and treats them like the real 6.4.3, including silent losses: rows that return -2 with or without
//! a reason, whole requests rejected with 400, numbers that wrap around or are truncated, extra values that
//! are ignored. Unknown statements are syntax errors. Faults are planned batch by batch.
//!
//! ```
//! use sawmill_cratedb_standin::{Fault, StandIn};
//!
//! let cluster = StandIn::start(1);
//! cluster.faults().plan([None, Some(Fault::DropAfter)]);
//! assert!(cluster.url().starts_with("crate://127.0.0.1:"));
//! ```

mod condition;
pub mod engine;
mod fault;
mod http;
pub mod json;
mod parser;
mod pg;
mod tokens;
pub mod value;
mod work;

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

pub use engine::Engine;
pub use fault::{Fault, Faults};

/// State shared by all threads.
pub(crate) struct Shared {
    pub engine: Engine,
    pub faults: Faults,
    pub pg_faults: Faults,
    pub max_content_length: AtomicUsize,
    pub bulks: AtomicU64,
    pub unnests: AtomicU64,
    pub compressed: AtomicU64,
    pub largest: AtomicUsize,
    pub work: work::Work,
    /// When a restart began to recover, and when it will have finished.
    recovering: Mutex<Option<(Instant, Instant)>>,
    /// Part of the statement before which the server restarts, and how long it is then away and recovering.
    restart_before: Mutex<Option<(String, Duration, Duration)>>,
    /// A reference to this value, for threads that outlive a request.
    own: Weak<Shared>,
    credentials: Mutex<Option<(String, String)>>,
    nodes: Mutex<Vec<Node>>,
    tls: Option<Arc<rustls::ServerConfig>>,
}

/// The progress of a restarting server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    NoTables,
    NoShards,
    Over,
}

struct Node {
    port: u16,
    alive: Arc<AtomicBool>,
    requests: u64,
    connections: Vec<TcpStream>,
}

impl Shared {
    pub(crate) fn credentials(&self) -> Option<(String, String)> {
        self.credentials.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn alive(&self, node: usize) -> bool {
        self.lock().get(node).is_some_and(|node| node.alive.load(Relaxed))
    }

    /// Closes a node's connections and accepts no new ones.
    pub(crate) fn stop(&self, node: usize) {
        let mut nodes = self.lock();
        let Some(node) = nodes.get_mut(node) else { return };
        node.alive.store(false, Relaxed);
        for connection in node.connections.drain(..) {
            // It may already be closed.
            let _ = connection.shutdown(Shutdown::Both);
        }
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(("127.0.0.1", node.port));
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
            let port = shared.lock().get(node).map_or(0, |node| node.port);
            listen(&shared, node, bind(port));
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

    /// How a server that restarts comes to know its tables: at first none, then all, but their shards are not started.
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

    /// What a server that has not recovered says to a statement about a table.
    pub(crate) fn not_recovered(&self, statement: &str) -> Option<engine::Error> {
        if statement.contains("information_schema") {
            return None;
        }
        match self.recovery() {
            Recovery::Over => None,
            Recovery::NoTables if statement.contains("\"doc\".") => {
                Some(engine::error(404, 4041, "RelationUnknown[Relation 'doc.t' unknown]"))
            }
            Recovery::NoTables => {
                Some(engine::error(404, 4045, "SchemaUnknownException[Schema 'checkpoints' unknown]"))
            }
            Recovery::NoShards => Some(engine::error(
                404,
                4040,
                "IllegalIndexShardStateException[CurrentState[RECOVERING] operations only allowed when shard state is one \
                 of [POST_RECOVERY, STARTED]]",
            )),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The user and password in an `Authorization` header.
pub(crate) fn password_of(header: &str) -> Option<(String, String)> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = 0u32;
    let mut count = 0;
    let mut bytes = Vec::new();
    for byte in header.strip_prefix("Basic ")?.bytes().take_while(|byte| *byte != b'=') {
        bits = bits << 6 | ALPHABET.iter().position(|c| *c == byte)? as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    text.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned()))
}

/// A cluster that runs until dropped.
pub struct StandIn {
    shared: Arc<Shared>,
    pg_port: u16,
}

impl StandIn {
    /// A cluster of `nodes` nodes with one shared store, at ports chosen by the system.
    pub fn start(nodes: usize) -> Self {
        Self::start_with(nodes, None)
    }

    /// The same with TLS.
    pub fn start_tls(config: Arc<rustls::ServerConfig>) -> Self {
        Self::start_with(1, Some(config))
    }

    fn start_with(nodes: usize, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let shared = Arc::new_cyclic(|own| Shared {
            engine: Engine::default(),
            faults: Faults::default(),
            pg_faults: Faults::default(),
            max_content_length: AtomicUsize::new(104_857_600),
            bulks: AtomicU64::new(0),
            unnests: AtomicU64::new(0),
            compressed: AtomicU64::new(0),
            largest: AtomicUsize::new(0),
            work: work::Work::default(),
            recovering: Mutex::default(),
            restart_before: Mutex::default(),
            own: Weak::clone(own),
            credentials: Mutex::new(None),
            nodes: Mutex::new(Vec::new()),
            tls,
        });
        for node in 0..nodes {
            let listener = bind(0);
            let port = port_of(&listener);
            shared.lock().push(Node { port, alive: Arc::default(), requests: 0, connections: Vec::new() });
            listen(&shared, node, listener);
        }
        let listener = bind(0);
        let pg_port = port_of(&listener);
        let wire = Arc::clone(&shared);
        // Ends with the test's process; no thread joins it.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&wire);
                if shared.alive(0) {
                    if let (Ok(kept), Some(node)) = (stream.try_clone(), shared.lock().first_mut()) {
                        node.connections.push(kept);
                    }
                    std::thread::spawn(move || {
                        let closed = stream.try_clone();
                        pg::serve(stream, &shared, 0);
                        // The node holds another handle to it. It may already be closed.
                        let _ = closed.and_then(|stream| stream.shutdown(Shutdown::Both));
                    });
                }
            }
        });
        Self { shared, pg_port }
    }

    /// The address of all nodes, with the port of the PostgreSQL wire protocol.
    pub fn url(&self) -> String {
        let ports: Vec<String> =
            self.shared.lock().iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        let user = self
            .shared
            .credentials()
            .map(|(user, password)| format!("{user}:{password}@"))
            .unwrap_or_default();
        format!("crate://{user}{}/doc?pg_port={}", ports.join(","), self.pg_port)
    }

    /// The HTTP port of a node.
    pub fn port(&self, node: usize) -> u16 {
        self.shared.lock().get(node).map_or(0, |node| node.port)
    }

    /// The port of the PostgreSQL wire protocol.
    pub fn pg_port(&self) -> u16 {
        self.pg_port
    }

    /// Faults for batches over HTTP.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Faults for batches over the PostgreSQL wire protocol.
    pub fn pg_faults(&self) -> &Faults {
        &self.shared.pg_faults
    }

    /// Restarts the server before it runs a statement that contains this text: the server refuses connections
    /// for the first duration, and has not recovered its tables for the second.
    pub fn restart_before(&self, text: &str, away: Duration, recovering: Duration) {
        let planned = Some((text.to_owned(), away, recovering));
        *self.shared.restart_before.lock().unwrap_or_else(PoisonError::into_inner) = planned;
    }

    /// The store.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// Requires a user and a password for every request.
    pub fn require(&self, user: &str, password: &str) {
        let credentials = Some((user.to_owned(), password.to_owned()));
        *self.shared.credentials.lock().unwrap_or_else(PoisonError::into_inner) = credentials;
    }

    /// Sets `http.max_content_length`.
    pub fn limit(&self, bytes: usize) {
        self.shared.max_content_length.store(bytes, Relaxed);
    }

    /// Makes every row of a batch cost additional CPU time; none by default.
    pub fn work(&self, cost_of_a_row: std::time::Duration) {
        self.shared.work.set(cost_of_a_row);
    }

    /// The number of batches received over HTTP.
    pub fn bulks(&self) -> u64 {
        self.shared.bulks.load(Relaxed)
    }

    /// The number of batches received over the PostgreSQL wire protocol.
    pub fn unnests(&self) -> u64 {
        self.shared.unnests.load(Relaxed)
    }

    /// The number of compressed bodies received.
    pub fn compressed(&self) -> u64 {
        self.shared.compressed.load(Relaxed)
    }

    /// The size of the largest batch in bytes.
    pub fn largest(&self) -> usize {
        self.shared.largest.load(Relaxed)
    }

    /// The number of connections that a node has accepted.
    pub fn connections(&self, node: usize) -> u64 {
        self.shared.lock().get(node).map_or(0, |node| node.requests)
    }

    /// Ends a node: its connections break, and it accepts no new ones.
    pub fn stop(&self, node: usize) {
        self.shared.stop(node);
    }

    /// Starts a node again on its port.
    ///
    /// # Panics
    /// If another process has taken the port: a test without its node has nothing left to show.
    pub fn restart(&self, node: usize) {
        listen(&self.shared, node, bind(self.port(node)));
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        // Counted before the loop: in the loop's head the lock would be held throughout.
        let nodes = self.shared.lock().len();
        (0..nodes).for_each(|node| self.shared.stop(node));
    }
}

/// Binds a local port, retrying because a recently used port may take a while.
///
/// # Panics
/// If the port stays taken for five seconds. The stand-in serves tests only, and a test cannot go on without it.
fn bind(port: u16) -> TcpListener {
    for _ in 0..100 {
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return listener;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("local port {port} cannot be bound, and the test needs it");
}

fn port_of(listener: &TcpListener) -> u16 {
    listener.local_addr().map_or(0, |address| address.port())
}

fn listen(shared: &Arc<Shared>, number: usize, listener: TcpListener) {
    let alive = Arc::new(AtomicBool::new(true));
    if let Some(node) = shared.lock().get_mut(number) {
        node.alive = Arc::clone(&alive);
    }
    let shared = Arc::clone(shared);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if !alive.load(Relaxed) {
                return;
            }
            let Ok(kept) = stream.try_clone() else { continue };
            if let Some(node) = shared.lock().get_mut(number) {
                node.requests += 1;
                node.connections.push(kept);
            }
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                match &shared.tls {
                    None => http::serve(&stream, &shared, number),
                    Some(config) => {
                        if let Ok(connection) = rustls::ServerConnection::new(Arc::clone(config)) {
                            http::serve(rustls::StreamOwned::new(connection, &stream), &shared, number);
                        }
                    }
                }
                // The node holds another handle to it. It may already be closed.
                let _ = stream.shutdown(Shutdown::Both);
            });
        }
    });
}
