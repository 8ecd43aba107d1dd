//! Asks over another connection whether a silent server still works on a request.
//!
//! Lost packets, a firewall that has forgotten a connection, and a machine without power close no connection.
//! Only the server knows the state of the other end.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use sawmill_profile::{Error, Kind, LOOK};

use crate::address::server::{Endpoint, Product, Server};
use crate::blocking::BlockingConnection;
use crate::server_error::is_full;

/// A server's statement about one of its processes.
pub(crate) enum Activity {
    /// It works, has answered within the patience, or cannot be asked although it answers: why to go on waiting.
    Working(String),
    /// The server does not work on the request, but does this instead.
    None(String),
}

/// A process of the server that owes an answer.
pub(crate) struct Asked<'a> {
    pub server: &'a Server,
    pub endpoint: &'a Endpoint,
    pub process: Option<&'a str>,
}

impl Asked<'_> {
    /// Asks the server. If a process waits for its client while the client waits for it, ends the process, which
    /// frees its locks. Leaves a process alone that has answered within the patience: the answer may be on its way.
    pub(crate) fn ask(&self, cancelled: &dyn Fn() -> bool) -> Activity {
        let (Product::PostgreSql, Some(process)) = (self.server.product, self.process) else {
            return Activity::None("it cannot be asked whether it works on it".to_owned());
        };
        let began = Instant::now();
        let end = began + self.server.timeout;
        let mut given_up = || cancelled() || Instant::now() >= end;
        let asked = BlockingConnection::to(self.endpoint, self.server, &mut given_up).and_then(|mut other| {
            // The client does not read its socket while it asks, so an answer may have arrived in that time.
            let patience = (self.server.patience + began.elapsed()).as_secs_f64();
            let sql = format!(
                "SELECT works OR coalesce(since < {patience}, false), \
                        concat_ws(', ', nullif(state, '') || ' for ' || round(since::numeric, 1) || ' s', waits) \
                 FROM (SELECT coalesce(state, '') NOT LIKE 'idle%' AND coalesce(wait_event_type, '') <> 'Client', \
                              state, extract(epoch FROM pg_catalog.clock_timestamp() - state_change), \
                              wait_event_type || ': ' || wait_event \
                       FROM pg_catalog.pg_stat_activity WHERE pid = {process}) AS process(works, state, since, waits)"
            );
            let rows = other.ask(&sql, &mut given_up)?;
            Ok((other, rows))
        });
        let (mut other, rows) = match asked {
            Ok(asked) => asked,
            Err(error) if is_full(&error) => {
                return Activity::Working(format!(
                    "whether the server works on it cannot be asked: {}",
                    error.what()
                ));
            }
            Err(error) => {
                return Activity::None(format!("another connection cannot ask it: {}", error.what()));
            }
        };
        let mut fields = rows.into_iter().flatten();
        match (fields.next().flatten().as_deref(), fields.next().flatten()) {
            (Some("t"), how) => {
                let how = how.unwrap_or_default();
                Activity::Working(format!(
                    "the server works on it, or has just answered (process {process}, {how})"
                ))
            }
            (Some(_), how) => {
                let application = self.server.config.get_application_name().unwrap_or_default();
                let end = format!(
                    "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity \
                     WHERE pid = {process} AND usename = current_user AND application_name = '{}'",
                    application.replace('\'', "''")
                );
                // If it may not be ended, it ends when the system of the server finds the connection dead.
                let _ = other.ask(&end, &mut given_up);
                Activity::None(format!(
                    "its process {process} does not work on it ({})",
                    how.unwrap_or_default()
                ))
            }
            (None, _) => Activity::None(format!("it has no process {process} any more")),
        }
    }

    /// The notice about an answer that is waited for.
    pub(crate) fn still_waiting(&self, place: &str, why: &str) -> String {
        let seconds = self.server.patience.as_secs_f64();
        format!("{place}: no answer for {seconds} s; {why}")
    }

    /// The error about an answer that will not come.
    pub(crate) fn gone(&self, place: &str, why: &str) -> Error {
        let seconds = self.server.patience.as_secs_f64();
        Error::new(Kind::Connection, format!("the connection is dead: no answer for {seconds} s, and {why}"))
            .at(place)
            .advise("run the same command again: what was committed stays and is not loaded twice")
    }
}

/// How long to wait for an answer over a connection that hands out messages.
pub struct Patience<'a> {
    server: &'a Server,
    endpoint: Endpoint,
    process: Option<String>,
    cancel: &'a AtomicBool,
    since: Instant,
    asked: Option<Instant>,
}

impl<'a> Patience<'a> {
    /// Patience with what will be asked over this connection to the server.
    pub fn new(server: &'a Server, connection: &mut BlockingConnection, cancel: &'a AtomicBool) -> Self {
        let process = connection.simple("SELECT pg_catalog.pg_backend_pid()", server.timeout);
        let process = process.ok().and_then(|rows| rows.into_iter().flatten().next().flatten());
        Self {
            server,
            endpoint: connection.endpoint().clone(),
            process,
            cancel,
            since: Instant::now(),
            asked: None,
        }
    }

    /// Something has come.
    pub fn came(&mut self) {
        self.asked = None;
    }

    /// Whether to give up waiting: the caller cancels, or nothing has arrived for too long and the server no longer
    /// works on the request.
    pub fn given_up(&mut self) -> bool {
        // A wait asks all the time, so a pause means that another wait has begun.
        if self.asked.is_none_or(|asked| asked.elapsed() > LOOK * 5) {
            self.since = Instant::now();
        }
        self.asked = Some(Instant::now());
        if self.cancel.load(Relaxed) {
            return true;
        }
        if self.since.elapsed() < self.server.patience {
            return false;
        }
        self.asked = None;
        let Self { server, endpoint, process, cancel, .. } = self;
        let asked = Asked { server, endpoint, process: process.as_deref() };
        matches!(asked.ask(&|| cancel.load(Relaxed)), Activity::None(_))
    }
}
