//! Statements to a cluster, and their answers.

use std::sync::Arc;

use sawmill_source::{Control, Error, Kind, Result};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::connect::client::{Attempt, Client, Cluster, clip};
use crate::connect::http::TransportError;
use crate::connect::waiting::Waiting;
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

    pub(crate) fn drop_table(&mut self, table: &CrateTable) -> Result<()> {
        self.run(&format!("DROP TABLE IF EXISTS {}", table.quoted()), &[]).map(drop)
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
