//! Requests to a cluster over HTTP: nodes in turn, a dead one left out for a while, and what the answers mean.
//!
//! The endpoint: <https://cratedb.com/docs/crate/reference/en/latest/interfaces/http.html>.

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use rustls::ClientConfig;
use sawmill_loader::backoff;
use sawmill_profile::turns;
use sawmill_source::{Control, Error, Kind, Result};
use serde::Deserialize;

use crate::connect::address::{CrateServer, Node};
use crate::connect::http::{HttpConnection, Limit, MAX_BODY, TransportError};
use crate::connect::sql::Outage;
use crate::connect::{activity, tls};

/// A cluster and the health of its nodes, shared by all connections of a load.
pub(crate) struct Cluster {
    pub server: CrateServer,
    pub tls: Option<Arc<ClientConfig>>,
    authorization: Option<String>,
    health: Mutex<Vec<Health>>,
    turn: AtomicUsize,
    /// How long to wait for a cluster that has answered before.
    pub(crate) patience: Duration,
    /// How often a request is tried again at least.
    pub(crate) retries: u32,
    outage: Mutex<Outage>,
}

/// The health of a node.
#[derive(Clone, Copy, Debug, Default)]
struct Health {
    failures: u32,
    /// Requests skip the node until then.
    dead_until: Option<Instant>,
}

impl Cluster {
    /// Reads certificates; connects to nothing yet.
    pub(crate) fn new(server: &CrateServer, patience: Duration, retries: u32) -> Result<Arc<Self>> {
        let authorization = (server.password.is_some() || server.user != "crate").then(|| {
            let credentials = format!("{}:{}", server.user, server.password.as_deref().unwrap_or_default());
            format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(credentials))
        });
        Ok(Arc::new(Self {
            tls: server.tls.as_ref().map(tls::configure).transpose()?,
            authorization,
            health: Mutex::new(vec![Health::default(); server.nodes.len()]),
            turn: AtomicUsize::new(0),
            patience,
            retries,
            outage: Mutex::default(),
            server: server.clone(),
        }))
    }

    /// How long an answer may stay silent before the server is asked whether it still works on the request.
    pub(crate) fn silence(&self) -> Duration {
        self.server.timeout.unwrap_or(if self.patience.is_zero() { SILENCE } else { self.patience })
    }

    pub(crate) fn outage(&self) -> MutexGuard<'_, Outage> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection to a node was lost, or could not be made.
    pub(crate) fn connection_lost(&self) {
        self.outage().lost = Some(turns::now());
    }

    /// The load has its table: when the server does not know it after a lost connection, it has not recovered
    /// it yet.
    pub(crate) fn table_is_known(&self) {
        self.outage().table_known = true;
    }

    /// Whether the same request may succeed a little later: the server is busy, or lacks a node, shard or
    /// table right now.
    pub(crate) fn passes(&self, refusal: &ServerError) -> bool {
        let outage = self.outage();
        let since = |lost| turns::now().saturating_duration_since(lost);
        let restarted = || outage.lost.is_some_and(|lost| since(lost) <= self.patience.max(RECOVERY));
        // `sys` always exists, so "unknown schema" means a missing privilege.
        let is_lacking = || {
            matches!(refusal.code, 4041 | 4045)
                && !["'sys'", "'sys."].iter().any(|sys| refusal.message.contains(sys))
        };
        refusal.is_passing() || is_lacking() && outage.table_known && restarted()
    }

    /// Whether a failure ends the attempts: no node has ever answered, and all were tried.
    pub(super) fn never_there(&self, tries: usize) -> bool {
        tries >= self.server.nodes.len() && !self.outage().reached
    }

    /// The next node in turn that is not known to be dead; of dead ones the one whose time is up first.
    fn next(&self) -> usize {
        let health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        let first = self.turn.fetch_add(1, Relaxed);
        let now = turns::now();
        let order = (0..health.len()).map(|i| (first + i) % health.len());
        let alive = order.clone().find(|i| health[*i].dead_until.is_none_or(|until| until <= now));
        alive.or_else(|| order.min_by_key(|i| health[*i].dead_until)).unwrap_or(0)
    }

    fn report(&self, node: usize, alive: bool) {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(health) = health.get_mut(node) {
            if alive {
                *health = Health::default();
            } else {
                health.dead_until = Some(turns::now() + backoff(health.failures + 2));
                health.failures += 1;
            }
        }
    }

    /// A node cannot be reached, or its connection broke.
    fn node_lost(&self, node: usize) {
        self.report(node, false);
        self.connection_lost();
    }

    /// Notes that a node has answered, and reports the end of an outage that was reported.
    fn answered(&self, control: &Control<'_>) {
        let mut outage = self.outage();
        outage.reached = true;
        if control.has_notices()
            && let Some(line) = outage.over()
        {
            control.notice(&line);
        }
    }

    /// Whether more than one node is worth a try.
    fn others_alive(&self) -> bool {
        let health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        let now = turns::now();
        health.iter().any(|health| health.dead_until.is_none_or(|until| until <= now))
    }

    /// How long to wait before the n-th new attempt: not at all while another node is alive.
    pub(crate) fn pause(&self, attempt: u32) -> Duration {
        match self.server.nodes.len() > 1 && self.others_alive() {
            true => Duration::from_millis(10),
            false => backoff(attempt),
        }
    }
}

/// One thread's connections to a cluster, one a node.
pub(crate) struct Client {
    pub cluster: Arc<Cluster>,
    connections: Vec<Option<HttpConnection>>,
    pub(super) gzip: bool,
    /// It asks about the requests of another client, and is not asked about.
    asks: bool,
    /// How often a statement is tried again at least.
    pub(super) retries: u32,
    /// The most bytes of an answer.
    pub(super) max_answer: usize,
    compressed: Vec<u8>,
    head: Vec<u8>,
    /// Statements tried again so far.
    pub retried: u64,
}

/// An error that the server reported.
#[derive(Clone, Debug)]
pub(crate) struct ServerError {
    pub status: u16,
    pub code: u32,
    pub message: String,
}

/// The silence that is borne where no patience is given.
const SILENCE: Duration = Duration::from_secs(300);

/// How long the answer may take to the question whether the server works on a request.
const ASKING: Duration = Duration::from_secs(10);

/// How long a server that was lost may at least take until it knows its tables.
const RECOVERY: Duration = Duration::from_secs(60);

/// The result of one attempt.
pub(crate) enum Attempt {
    /// Status 200.
    Done,
    ServerError(ServerError),
    TransportError(TransportError),
}

impl Client {
    pub(crate) fn new(cluster: &Arc<Cluster>) -> Self {
        let connections = cluster.server.nodes.iter().map(|_| None).collect();
        Self {
            cluster: Arc::clone(cluster),
            connections,
            gzip: false,
            asks: false,
            retries: cluster.retries,
            max_answer: MAX_BODY,
            compressed: Vec::new(),
            head: Vec::new(),
            retried: 0,
        }
    }

    /// A client that compresses rows, if `gzip` says so.
    pub(crate) fn of_rows(cluster: &Arc<Cluster>, gzip: bool) -> Self {
        Self { gzip, ..Self::new(cluster) }
    }

    /// A client that tries nothing again.
    pub(crate) fn at_once(cluster: &Arc<Cluster>) -> Self {
        Self { retries: 0, ..Self::new(cluster) }
    }

    /// A client that asks what became of other clients' requests.
    pub(crate) fn asking(cluster: &Arc<Cluster>) -> Self {
        Self { asks: true, ..Self::new(cluster) }
    }

    /// Sends one request to the next node, once. `answer` gets the body of a success.
    pub(crate) fn attempt(
        &mut self,
        pieces: &[&[u8]],
        answer: &mut dyn FnMut(&[u8]),
        control: &Control<'_>,
    ) -> Attempt {
        let (cluster, asks) = (Arc::clone(&self.cluster), self.asks);
        let not_sent = |what: String| Attempt::TransportError(TransportError::NotSent(what));
        let node = cluster.next();
        let Some(place) = cluster.server.nodes.get(node) else {
            return not_sent("the address names no host".to_owned());
        };
        if self.gzip
            && let Err(error) = self.compress(pieces)
        {
            return not_sent(error.to_string());
        }
        if let Err(broken) = self.connect(node, place, control) {
            return Attempt::TransportError(broken);
        }
        let compressed = [self.compressed.as_slice()];
        let body: &[&[u8]] = if self.gzip { &compressed } else { pieces };
        write_head(&mut self.head, &cluster, place, self.gzip, body.iter().map(|piece| piece.len()).sum());
        let whole: Vec<&[u8]> = std::iter::once(self.head.as_slice()).chain(body.iter().copied()).collect();
        let Some(slot) = self.connections.get_mut(node) else {
            return not_sent("the node is not known".to_owned());
        };
        let Some(connection) = slot else { return not_sent("the client has no connection".to_owned()) };
        let goes_on = || {
            if asks || cluster.server.timeout.is_some() {
                return Err("that is the limit".to_owned());
            }
            let statement = activity::statement_of(pieces);
            activity::goes_on(&cluster, &|job| job == statement, control)
        };
        let silence = if asks { cluster.silence().min(ASKING) } else { cluster.silence() };
        let attempt = match connection.request(
            &whole,
            &Limit { most: self.max_answer, silence, goes_on: &goes_on },
            control,
        ) {
            Ok((200, body)) => {
                cluster.answered(control);
                answer(body);
                Attempt::Done
            }
            Ok((status, body)) => {
                cluster.outage().reached = true;
                Attempt::ServerError(server_error(status, body))
            }
            Err(broken) => {
                *slot = None;
                cluster.node_lost(node);
                return Attempt::TransportError(broken);
            }
        };
        let down = matches!(&attempt, Attempt::ServerError(refusal) if matches!(refusal.status, 502..=504));
        cluster.report(node, !down);
        attempt
    }

    /// Compresses a body into the room for it.
    fn compress(&mut self, pieces: &[&[u8]]) -> std::io::Result<()> {
        let mut room = std::mem::take(&mut self.compressed);
        room.clear();
        let mut encoder = GzEncoder::new(room, Compression::fast());
        pieces.iter().try_for_each(|piece| encoder.write_all(piece))?;
        self.compressed = encoder.finish()?;
        Ok(())
    }

    /// Makes sure that a connection to a node is open.
    fn connect(&mut self, node: usize, place: &Node, control: &Control<'_>) -> Result<(), TransportError> {
        let Some(slot) = self.connections.get_mut(node) else { return Ok(()) };
        if slot.as_ref().is_some_and(HttpConnection::is_open) {
            return Ok(());
        }
        *slot = None;
        match HttpConnection::open(place, self.cluster.tls.as_ref(), control) {
            Ok(connection) => {
                *slot = Some(connection);
                Ok(())
            }
            Err(broken) => {
                self.cluster.node_lost(node);
                Err(broken)
            }
        }
    }

    /// The place for errors.
    pub(crate) fn place(&self) -> String {
        self.cluster.server.to_string()
    }

    /// The server's error, with the place and advice.
    pub(crate) fn explain(&self, refusal: &ServerError) -> Error {
        let of_columns = refusal.status == 400 && is_about_columns(&refusal.message);
        let advice = match refusal.status {
            400 if of_columns => MORE_COLUMNS,
            401 => "check the user and password in the address",
            403 => "ask for the privileges DQL, DML and DDL on the schemas of the table and of sawmill",
            404 | 429 | 502..=504 if refusal.is_passing() => {
                "wait until the cluster has recovered and run the same command again"
            }
            404 if refusal.code == 4041 && self.cluster.outage().table_known => {
                "the table was dropped or renamed while the load ran: run the same command again"
            }
            404 => "check the names of schema, table and columns",
            413 => "raise http.max_content_length, or load smaller batches (--batch-bytes)",
            _ => "",
        };
        let kind = if of_columns { Kind::Schema } else { Kind::Server };
        Error::new(kind, format!("the server says: {}", refusal.message)).at(self.place()).advise(advice)
    }

    /// A server that has never answered, as an error; a cancel is passed on.
    pub(super) fn no_contact(&self, broken: TransportError) -> Result<Error> {
        match broken {
            TransportError::Unknown(what) => {
                let what = format!("the server does not answer as CrateDB's HTTP endpoint does: {what}");
                Ok(Error::new(Kind::Server, what).at(self.place()).advise(
                    "give the port of the HTTP endpoint, 4200 by default; the port of the PostgreSQL wire goes into ?pg_port=N",
                ))
            }
            other => self.lost(other),
        }
    }

    /// A lost connection as an error; a cancel is passed on.
    pub(crate) fn lost(&self, broken: TransportError) -> Result<Error> {
        match broken {
            TransportError::Cancelled(error) => Err(error),
            TransportError::NotSent(what) | TransportError::Unknown(what) => Ok(Error::new(
                Kind::Server,
                format!("the request failed: {what}"),
            )
            .at(self.place())
            .advise(
                "check that the server is running and that host and port are right; then run the same command again to continue",
            )),
        }
    }
}

/// The lines before a request's body.
fn write_head(head: &mut Vec<u8>, cluster: &Cluster, place: &Node, gzip: bool, length: usize) {
    head.clear();
    // Writing to a Vec cannot fail.
    let _ = write!(
        head,
        "POST /_sql HTTP/1.1\r\nHost: {place}\r\nContent-Type: application/json\r\nAccept: application/json\r\n\
         User-Agent: sawmill\r\nDefault-Schema: {}\r\nContent-Length: {length}\r\n",
        cluster.server.schema
    );
    if let Some(authorization) = &cluster.authorization {
        let _ = write!(head, "Authorization: {authorization}\r\n");
    }
    if gzip {
        head.extend_from_slice(b"Content-Encoding: gzip\r\n");
    }
    head.extend_from_slice(b"\r\n");
}

/// Advice for a table with more columns than `mapping.total_fields.limit`, 1,000 by default.
pub(crate) const MORE_COLUMNS: &str = "fields of objects count too: allow more with --with \
     'mapping.total_fields.limit=3000' for a new table, or with ALTER TABLE ... SET \
     (\"mapping.total_fields.limit\" = 3000) for one that exists";

/// Whether the server says that a table would have too many columns.
pub(crate) fn is_about_columns(message: &str) -> bool {
    message.contains("Limit of total columns")
}

impl ServerError {
    /// Whether the same request may succeed a little later: the server is busy, or lacks a node right now.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self.status, 429 | 502..=504) || is_passing_code(self.code)
    }
}

/// Codes of errors that are about the cluster and not about a row: lost tasks and shards, shards that are not
/// started (4040), no master, no node. 5000, "unhandled", is not among them: a row may be its reason
/// (<https://cratedb.com/docs/crate/reference/en/latest/interfaces/http.html#error-codes>).
pub(crate) fn is_passing_code(code: u32) -> bool {
    matches!(code, 4040 | 4290 | 5001..=5003 | 5030..=5032)
}

/// The longest part of a server's message that an error shows, in characters.
const SHOWN: usize = 400;

/// A message short enough to be shown.
pub(crate) fn clip(message: &str) -> String {
    let mut clipped: String =
        message.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if message.chars().nth(SHOWN).is_some() {
        clipped.push('…');
    }
    clipped
}

fn server_error(status: u16, body: &[u8]) -> ServerError {
    #[derive(Deserialize)]
    struct Body {
        error: Inner,
    }
    #[derive(Deserialize)]
    struct Inner {
        message: String,
        code: u32,
    }
    if let Ok(Body { error }) = serde_json::from_slice(body) {
        return ServerError { status, code: error.code, message: clip(&error.message) };
    }
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    // A clipped error is not valid JSON.
    let text = text.strip_prefix("{\"error\":{\"message\":\"").unwrap_or(text);
    let message = match (status, text) {
        (413, "") => "the request is longer than http.max_content_length allows".to_owned(),
        (_, "") => format!("status {status}"),
        (_, text) => clip(text),
    };
    ServerError { status, code: 0, message }
}
