//! Statements to a cluster, and their answers.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use sawmill_profile::{Phase, Profile, turns};
use sawmill_source::{Control, Error, Kind, Result};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::connect::address::CrateServer;
use crate::connect::client::{Attempt, Client, Cluster, clip};
use crate::connect::http::TransportError;
use crate::table::names::CrateTable;

/// A client's statements, under the control of one caller.
pub(crate) struct Sql<'c> {
    pub(crate) client: &'c mut Client,
    pub(crate) control: &'c Control<'c>,
}

/// Why a statement failed.
pub(crate) enum Failed {
    /// The same request may succeed a little later.
    Passing(Error),
    Lost(TransportError),
    Refused(Error),
}

impl Client {
    /// Its statements, under this control.
    pub(crate) fn on<'c>(&'c mut self, control: &'c Control<'_>) -> Sql<'c> {
        Sql { client: self, control }
    }
}

impl Sql<'_> {
    /// The same client and control.
    pub(crate) fn again(&mut self) -> Sql<'_> {
        Sql { client: self.client, control: self.control }
    }

    pub(crate) fn cluster(&self) -> &Arc<Cluster> {
        &self.client.cluster
    }

    /// The place for errors.
    pub(crate) fn place(&self) -> String {
        self.client.place()
    }

    /// The tries of one request.
    pub(crate) fn waiting(&self) -> Waiting {
        Waiting::new(self.client.retries)
    }

    /// Waits before the next try after a failure that passes.
    ///
    /// # Errors
    /// As [`Waiting::pause`].
    pub(crate) fn pause(&self, waiting: &mut Waiting, error: Error) -> Result<()> {
        waiting.pause(error, &self.client.cluster, self.control)
    }

    /// Runs a statement that may be run twice, and tries again when the connection is lost or the server
    /// is busy.
    pub(crate) fn run(&mut self, statement: &str, arguments: &[Value]) -> Result<Answer> {
        self.unless_refused(statement, arguments)?
    }

    /// As [`run`](Self::run), but returns the server's refusal as the inner error, so that the caller can handle
    /// it.
    pub(crate) fn unless_refused(&mut self, statement: &str, arguments: &[Value]) -> Result<Result<Answer>> {
        let (mut waiting, mut tries) = (self.waiting(), 0);
        loop {
            let error = match self.once(statement, arguments) {
                Ok(answer) => return Ok(Ok(answer)),
                Err(Failed::Passing(error)) => error,
                Err(Failed::Lost(broken)) => {
                    tries += 1;
                    if self.client.cluster.never_there(tries) {
                        return Err(self.client.no_contact(broken)?);
                    }
                    self.client.lost(broken)?
                }
                Err(Failed::Refused(error)) => return Ok(Err(error)),
            };
            self.pause(&mut waiting, error)?;
            self.client.retried += 1;
        }
    }

    /// Runs a statement once.
    pub(crate) fn once(&mut self, statement: &str, arguments: &[Value]) -> Result<Answer, Failed> {
        let body = serde_json::json!({ "stmt": statement, "args": arguments }).to_string();
        let mut text = String::new();
        let mut keep = |bytes: &[u8]| text = String::from_utf8_lossy(bytes).into_owned();
        let gzip = std::mem::replace(&mut self.client.gzip, false);
        let attempt = self.client.attempt(&[body.as_bytes()], &mut keep, self.control);
        self.client.gzip = gzip;
        match attempt {
            Attempt::Done => Ok(Answer { text }),
            Attempt::ServerError(refusal) if self.client.cluster.passes(&refusal) => {
                Err(Failed::Passing(self.client.explain(&refusal)))
            }
            Attempt::ServerError(refusal) => Err(Failed::Refused(self.client.explain(&refusal))),
            Attempt::TransportError(broken) => Err(Failed::Lost(broken)),
        }
    }

    /// The number that a statement returns.
    pub(crate) fn number(&mut self, statement: &str, arguments: &[Value]) -> Result<u64> {
        let answer = self.run(statement, arguments)?.all::<(u64,)>()?;
        Ok(answer.first().map_or(0, |(number,)| *number))
    }

    /// Makes all rows of a table visible that were acknowledged.
    pub(crate) fn refresh(&mut self, table: &CrateTable) -> Result<()> {
        self.run(&format!("REFRESH TABLE {}", table.quoted()), &[]).map(drop)
    }

    /// Makes all rows of a table visible that were acknowledged, and counts them.
    pub(crate) fn count(&mut self, table: &CrateTable) -> Result<u64> {
        self.refresh(table)?;
        self.number(&format!("SELECT count(*) FROM {}", table.quoted()), &[])
    }
}

/// A successful answer.
pub(crate) struct Answer {
    text: String,
}

#[derive(Deserialize)]
struct Rows<'a> {
    #[serde(borrow, default)]
    rows: Vec<Vec<&'a RawValue>>,
    #[serde(default)]
    rowcount: i64,
}

impl Answer {
    /// Length of the answer.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// The rows' values as JSON text.
    pub(crate) fn rows(&self) -> Result<Vec<Vec<&RawValue>>> {
        Ok(self.parse::<Rows<'_>>()?.rows)
    }

    /// Rows that a statement changed.
    pub(crate) fn count(&self) -> Result<i64> {
        Ok(self.parse::<Rows<'_>>()?.rowcount)
    }

    /// All rows, deserialized as `T`.
    pub(crate) fn all<T: serde::de::DeserializeOwned>(&self) -> Result<Vec<T>> {
        #[derive(Deserialize)]
        struct Typed<T> {
            rows: Vec<T>,
        }
        Ok(self.parse::<Typed<T>>()?.rows)
    }

    fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        serde_json::from_str(&self.text).map_err(|error| {
            Error::new(Kind::Server, format!("cannot read the answer: {error}: {}", clip(&self.text)))
        })
    }
}

/// One thread's connections to a cluster.
pub struct CrateStatements {
    client: Client,
    phase: Phase,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrateReply {
    /// Status 200: the body.
    Done(Vec<u8>),
    /// The server refused it: CrateDB's code, and its message.
    Refused(u32, String),
    /// The server cannot have acted on it.
    NotSent(String),
    /// The server may have acted on it.
    Unknown(String),
}

impl CrateStatements {
    /// Connections to this cluster, opened when they are needed. An answer may take `timeout`, and have at most
    /// `max_answer` bytes: as values they take many times as much.
    ///
    /// # Errors
    /// Certificates that cannot be read.
    pub fn new(server: &CrateServer, timeout: Duration, max_answer: usize) -> Result<Self> {
        let server = CrateServer { timeout: Some(timeout), ..server.clone() };
        let cluster: Arc<Cluster> = Cluster::new(&server, Duration::ZERO, 0)?;
        let mut client = Client::new(&cluster);
        client.max_answer = max_answer;
        Ok(Self { client, phase: Profile::new().phase("statements") })
    }

    /// Sends a request for `/_sql`, once.
    pub fn send(&mut self, body: &[u8], cancel: &AtomicBool) -> CrateReply {
        let control = Control::new(cancel, &self.phase);
        let mut answer = Vec::new();
        match self.client.attempt(&[body], &mut |bytes| answer = bytes.to_vec(), &control) {
            Attempt::Done => CrateReply::Done(answer),
            Attempt::ServerError(refusal) => CrateReply::Refused(refusal.code, refusal.message),
            Attempt::TransportError(TransportError::NotSent(what)) => CrateReply::NotSent(what),
            Attempt::TransportError(TransportError::Unknown(what)) => CrateReply::Unknown(what),
            // Cancelled while it waited: it may have been sent.
            Attempt::TransportError(TransportError::Cancelled(error)) => CrateReply::Unknown(error.what()),
        }
    }
}

/// Report waits longer than this.
const SHORT: Duration = Duration::from_secs(1);

/// The state of the cluster as a whole.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    /// Whether any node has ever answered.
    pub reached: bool,
    /// Whether the load has made or found its table: from then on an unknown one is not recovered yet.
    pub table_known: bool,
    /// When a connection was lost last.
    pub lost: Option<Instant>,
    /// Start of the outage that was reported.
    reported: Option<Instant>,
}

impl Outage {
    /// The message for the end of an outage that was reported.
    pub(crate) fn over(&mut self) -> Option<String> {
        let began = self.reported.take()?;
        Some(format!(
            "the server answers again after {:.0} s; the load continues",
            turns::now().saturating_duration_since(began).as_secs_f64()
        ))
    }
}

/// The tries of one request.
pub(crate) struct Waiting {
    retries: u32,
    tries: u32,
    since: Instant,
}

impl Waiting {
    /// Starts without failures. [`pause`](Self::pause) allows at least `retries` new tries, and further ones until
    /// the cluster's patience runs out.
    pub(crate) fn new(retries: u32) -> Self {
        Self { retries, tries: 0, since: turns::now() }
    }

    /// Waits before the next try after a failure that passes.
    ///
    /// # Errors
    /// The failure, once the patience has run out; a raised cancel flag.
    pub(crate) fn pause(&mut self, error: Error, cluster: &Cluster, control: &Control<'_>) -> Result<()> {
        if self.tries == 0 {
            self.since = turns::now();
        }
        let waited = turns::now().saturating_duration_since(self.since);
        if self.tries >= self.retries && waited >= cluster.patience {
            return Err(error);
        }
        if waited >= SHORT && control.has_notices() {
            let mut outage = cluster.outage();
            if outage.reported.is_none() {
                outage.reported = Some(self.since);
                let most = cluster.patience.as_secs();
                control.notice(&format!("{}: waiting for the server, up to {most} s", error.what()));
            }
        }
        control.sleep(cluster.pause(self.tries))?;
        self.tries += 1;
        Ok(())
    }
}
