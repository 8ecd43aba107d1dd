//! Requests that the caller has the engine work on, step by step and without a socket. A simulation decides when each
//! begins, how far it comes, and when it ends.
//!
//! ```
//! use sawmill_cratedb_standin::{Engine, Request};
//!
//! let engine = Engine::default();
//! let body = br#"{"stmt":"CREATE TABLE doc.t (x BIGINT)","args":[]}"#;
//! let request = Request::read(body, "doc").unwrap();
//! let work = engine.begin(request);
//! assert_eq!(engine.end(work).0, 200);
//! assert_eq!(engine.values("doc", "t", "x"), Some(Vec::new()));
//! ```

use std::time::Duration;

use crate::http::{Payload, answered, payload, refused, results};
use crate::store::{Engine, Error, Planned, RowResult, error};

/// Status and body of an answer.
pub type Served = (u16, String);

/// A request for `/_sql`.
#[derive(Clone, Debug)]
pub struct Request {
    payload: Payload,
    schema: String,
}

impl Request {
    /// Reads a body as strictly as the real server.
    ///
    /// # Errors
    /// The answer to a body that it refuses.
    pub fn read(body: &[u8], schema: &str) -> Result<Self, Served> {
        let payload = payload(body).map_err(|error| refused(&error))?;
        Ok(Self { payload, schema: schema.to_owned() })
    }

    /// Its statement.
    pub fn statement(&self) -> &str {
        &self.payload.statement
    }

    /// Rows of its `bulk_args`; `None` without them.
    pub fn rows(&self) -> Option<usize> {
        self.payload.rows.as_ref().map(Vec::len)
    }

    /// Whether a text is among its arguments.
    pub fn has_argument(&self, text: &str) -> bool {
        self.payload.arguments.iter().any(|argument| argument.is_text(text))
    }
}

/// A request that the server works on. `sys.jobs` lists it until it ends.
#[derive(Debug)]
pub struct Work {
    request: Request,
    job: String,
    /// The table that its rows go into.
    planned: Option<Result<Planned, Error>>,
    inserted: Vec<RowResult>,
}

impl Work {
    /// Its request.
    pub fn request(&self) -> &Request {
        &self.request
    }
}

impl Engine {
    /// Begins a request.
    pub fn begin(&self, request: Request) -> Work {
        let Request { payload, schema } = &request;
        let job = self.jobs().list_one(&payload.statement);
        let planned = payload.rows.as_ref().map(|_| self.planned(&payload.statement, schema));
        Work { job, planned, inserted: Vec::new(), request }
    }

    /// Inserts some more rows of a batch. Any other statement waits for [`end`](Self::end).
    pub fn insert_some(&self, work: &mut Work, rows: usize) {
        let Some(Ok(planned)) = &work.planned else { return };
        let Request { payload, schema } = &work.request;
        let all = payload.rows.as_deref().unwrap_or_default();
        let begun = work.inserted.len();
        let some = &all[begun..all.len().min(begun.saturating_add(rows))];
        match self.bulk_planned(&payload.statement, schema, some, planned) {
            Ok(results) => work.inserted.extend(results),
            Err(error) => work.planned = Some(Err(error)),
        }
    }

    /// Whether `KILL` has ended a request.
    pub fn is_killed(&self, work: &Work) -> bool {
        self.jobs().is_killed(&work.job)
    }

    /// Does the rest of a request, unless it was killed, and returns its answer.
    pub fn end(&self, mut work: Work) -> Served {
        let killed = self.is_killed(&work);
        if !killed {
            self.insert_some(&mut work, usize::MAX);
        }
        // It is one of the jobs that a question for them lists.
        let Request { payload, schema } = &work.request;
        let answer = match &work.planned {
            _ if killed => refused(&error(500, 5030, "JobKilledException[Job killed by KILL]")),
            Some(Ok(_)) => results(&work.inserted),
            Some(Err(error)) => refused(error),
            None => answered(self.run(&payload.statement, schema, &payload.arguments)),
        };
        self.abandon(work);
        answer
    }

    /// Ends a request where it is, as a crash does.
    pub fn abandon(&self, work: Work) {
        self.jobs().remove(&work.job);
    }

    /// Sets the server's clock: the time since 1970.
    pub fn set_clock(&self, since_1970: Duration) {
        self.jobs().set_clock(since_1970);
    }

    /// Runs a statement at once, as another client.
    pub fn execute(&self, statement: &str) -> Served {
        answered(self.run(statement, "doc", &[]))
    }

    /// The answer of every row of a request whose shards are lost.
    pub fn lost_shards(request: &Request) -> Served {
        let lost = RowResult::Refused(5002, "One or more shards are not available".to_owned());
        results(&vec![lost; request.rows().unwrap_or_default()])
    }
}
