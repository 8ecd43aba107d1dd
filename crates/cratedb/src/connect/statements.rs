//! Statements that are sent once each, for load tests: what a retry would hide is the caller's to count.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sawmill_profile::{Phase, Profile};
use sawmill_source::{Control, Result};

use crate::connect::address::CrateServer;
use crate::connect::client::{Attempt, Client, Cluster};
use crate::connect::http::TransportError;

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
    /// Connections to this cluster, opened when they are needed. An answer may take `timeout`.
    ///
    /// # Errors
    /// Certificates that cannot be read.
    pub fn new(server: &CrateServer, timeout: Duration) -> Result<Self> {
        let server = CrateServer { timeout: Some(timeout), ..server.clone() };
        let cluster: Arc<Cluster> = Cluster::new(&server, Duration::ZERO, 0)?;
        Ok(Self { client: Client::new(&cluster), phase: Profile::new().phase("statements") })
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
