//! Messages of the protocol (<https://www.postgresql.org/docs/current/protocol-message-formats.html>).

use std::io;
use std::time::{Duration, Instant};

use sawmill_source::{Error, Kind, LOOK, Result};

use crate::address::server::{Endpoint, Server};
use crate::address::session_kind::SessionKind;
use crate::blocking::login;
use crate::blocking::stream::Stream;
use crate::server_error::unreachable;

/// Bytes that are read at once.
const PIECE: usize = 16 * 1024;

/// A connection that blocks its thread.
pub struct BlockingConnection {
    pub(super) stream: Stream,
    /// Bytes that came and were not used yet: `input[at..filled]`.
    input: Vec<u8>,
    at: usize,
    filled: usize,
    /// What [`send`](Self::send) sends: whole messages.
    pub out: Vec<u8>,
    /// Parameters that the server reported, such as `server_version`.
    pub parameters: Vec<(String, String)>,
    place: String,
}

/// A message of the server.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Its type, such as `D` for a row.
    pub tag: u8,
    /// What follows its length.
    pub body: &'a [u8],
}

/// An error that the server reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerReport {
    /// The SQLSTATE: five characters.
    pub code: String,
    /// The message.
    pub message: String,
    /// The session has ended.
    pub fatal: bool,
}

impl BlockingConnection {
    /// Connects to the first endpoint that answers and is what is looked for, and logs in.
    ///
    /// # Errors
    /// No endpoint answers or suits, or a server refuses the session.
    pub fn open(server: &Server) -> Result<Self> {
        let mut last = Error::new(Kind::Config, "the address names no host").at(server.place());
        for wanted in server.session.rounds() {
            for endpoint in &server.endpoints {
                match Self::to(endpoint, server) {
                    Ok(mut connection) => match connection.objection(server, *wanted)? {
                        None => {
                            connection.apply(server)?;
                            return Ok(connection);
                        }
                        Some(objection) => last = unreachable(objection, connection.place),
                    },
                    // A server that refuses the user ends the search, as in libpq.
                    Err(error) if error.kind() == Kind::Connection => last = error,
                    Err(error) => return Err(error),
                }
            }
        }
        Err(last)
    }

    fn to(endpoint: &Endpoint, server: &Server) -> Result<Self> {
        let place = match server.config.get_dbname() {
            Some(database) => format!("{endpoint}, database {database:?}"),
            None => endpoint.to_string(),
        };
        let mode = server.config.get_ssl_mode();
        let stream = Stream::connect(endpoint, server.tls.as_ref(), mode, server.timeout, LOOK);
        let stream = stream.map_err(|error| unreachable(error, place.clone()))?;
        let (input, out) = (vec![0; PIECE], Vec::new());
        let mut connection = Self { stream, input, at: 0, filled: 0, out, parameters: Vec::new(), place };
        login::log_in(&mut connection, &server.config_for(endpoint), server.timeout)?;
        Ok(connection)
    }

    /// Why this server does not suit, where not any will do. Another product than the expected one is an error.
    fn objection(&mut self, server: &Server, wanted: SessionKind) -> Result<Option<&'static str>> {
        let crate_version = self.parameters.iter().find(|(name, _)| name == "crate_version");
        if let Some(error) = server.product.objection(crate_version.map(|(_, version)| version.as_str())) {
            return Err(error.at(self.place.clone()));
        }
        if wanted == SessionKind::Any {
            return Ok(None);
        }
        let sql = "SELECT pg_catalog.pg_is_in_recovery(), \
                   pg_catalog.current_setting('transaction_read_only') = 'on'";
        let rows = self.simple(sql, server.timeout)?;
        let flag = |column: usize| rows.first().and_then(|row| row.get(column)?.as_deref()) == Some("t");
        Ok(wanted.objection(flag(0), flag(1)))
    }

    fn apply(&mut self, server: &Server) -> Result<()> {
        for (name, value) in &server.settings {
            let literal = value.replace('\'', "''");
            self.simple(&format!("SET {name} = '{literal}'"), server.timeout)?;
        }
        Ok(())
    }

    /// Host, port and database, for errors.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Sends what is in `out`.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send(&mut self) -> io::Result<()> {
        let sent = self.stream.send(&self.out);
        self.out.clear();
        sent
    }

    /// Waits for the next message. `given_up` is asked every 100 ms whether to stop waiting.
    ///
    /// # Errors
    /// The connection is lost, or, as `TimedOut`, waiting was given up.
    pub fn message(&mut self, given_up: &mut dyn FnMut() -> bool) -> io::Result<Message<'_>> {
        let whole = loop {
            match self.whole()? {
                Some(whole) => break whole,
                None => self.more(given_up)?,
            }
        };
        Ok(self.take(whole))
    }

    /// The next message, if it has been read. Reads nothing.
    ///
    /// # Errors
    /// What was read is not the protocol.
    pub fn message_read(&mut self) -> io::Result<Option<Message<'_>>> {
        let whole = self.whole()?;
        Ok(whole.map(|whole| self.take(whole)))
    }

    /// Reads once what has come. It waits if nothing has: call it when [`descriptor`](Self::descriptor) is readable.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn read(&mut self) -> io::Result<()> {
        self.read_once(Stream::read_readable).map(|_| ())
    }

    /// The socket, to wait for an answer of several connections at once. `None` if the connection is encrypted: what
    /// is readable then may be less than a message.
    #[cfg(unix)]
    pub fn descriptor(&self) -> Option<std::os::fd::RawFd> {
        self.stream.descriptor()
    }

    /// The length of the next message, if all of it has been read; otherwise makes room for it.
    fn whole(&mut self) -> io::Result<Option<usize>> {
        let there = self.input.get(self.at..self.filled).unwrap_or_default();
        let Some(&[_, a, b, c, d]) = there.first_chunk::<5>() else { return Ok(None) };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if !(4..=1 << 30).contains(&length) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not the PostgreSQL protocol"));
        }
        if there.len() > length {
            return Ok(Some(length + 1));
        }
        self.make_room(length + 1);
        Ok(None)
    }

    /// The message of this length, which has been read.
    fn take(&mut self, length: usize) -> Message<'_> {
        let start = self.at;
        self.at += length;
        let message = self.input.get(start..start + length).unwrap_or_default();
        let (head, body) = message.split_at(message.len().min(5));
        Message { tag: head.first().copied().unwrap_or_default(), body }
    }

    fn make_room(&mut self, whole: usize) {
        self.input.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        if self.input.len() < whole {
            self.input.resize(whole.next_power_of_two(), 0);
        }
    }

    fn make_room_for_more(&mut self) {
        if self.at == self.filled {
            (self.at, self.filled) = (0, 0);
        } else if self.filled == self.input.len() {
            self.make_room(PIECE);
        }
    }

    fn more(&mut self, given_up: &mut dyn FnMut() -> bool) -> io::Result<()> {
        while !self.read_once(Stream::read)? {
            if given_up() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }

    /// Reads once, by `read`. Returns whether anything came before the stream's own timeout.
    fn read_once(&mut self, read: fn(&mut Stream, &mut [u8]) -> io::Result<usize>) -> io::Result<bool> {
        self.make_room_for_more();
        loop {
            let room = self.input.get_mut(self.filled..).unwrap_or_default();
            match read(&mut self.stream, room) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => {
                    self.filled += bytes;
                    return Ok(true);
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => return Ok(false),
                    _ => return Err(error),
                },
            }
        }
    }

    /// Runs a statement by the simple protocol; returns the fields of its rows as text.
    ///
    /// # Errors
    /// The server refuses it, the connection is lost, or it takes longer than `timeout`.
    pub fn simple(&mut self, sql: &str, timeout: Duration) -> Result<Vec<Vec<Option<String>>>> {
        self.out.clear();
        push(&mut self.out, b'Q', |out| {
            out.extend_from_slice(sql.as_bytes());
            out.push(0);
        });
        let place = self.place.clone();
        let lost = |error: io::Error| {
            Error::new(Kind::Connection, format!("the connection was lost: {error}")).at(place.clone())
        };
        self.send().map_err(lost)?;
        let end = Instant::now() + timeout;
        let (mut rows, mut refused) = (Vec::new(), None);
        loop {
            let message = self.message(&mut || Instant::now() >= end).map_err(lost)?;
            match message.tag {
                b'D' => rows.push(
                    fields(message.body)
                        .map(|field| field.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
                        .collect(),
                ),
                b'E' => {
                    let report = ServerReport::of(message.body);
                    let ended = report.fatal;
                    refused = Some(
                        Error::new(
                            Kind::Server,
                            format!("the server says: {} [{}]", report.message, report.code),
                        )
                        .at(place.clone()),
                    );
                    if ended {
                        break;
                    }
                }
                b'Z' => break,
                _ => {}
            }
        }
        refused.map_or(Ok(rows), Err)
    }
}

/// Appends a message.
pub(super) fn push(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = (out.len() - at) as u32;
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// The fields of a row.
fn fields(body: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = body.get(2..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = i32::from_be_bytes(*length);
        let Ok(length) = usize::try_from(length) else {
            rest = after;
            return Some(None);
        };
        let (field, after) = after.split_at(length.min(after.len()));
        rest = after;
        Some(Some(field))
    })
}

impl ServerReport {
    /// Reads the body of an error.
    pub fn of(body: &[u8]) -> Self {
        let mut report = Self { code: String::new(), message: String::new(), fatal: false };
        for field in body.split(|byte| *byte == 0).filter(|field| !field.is_empty()) {
            let (kind, text) = field.split_at(1);
            let text = String::from_utf8_lossy(text);
            match kind {
                b"C" => report.code = text.into_owned(),
                b"M" => report.message = text.into_owned(),
                b"V" => report.fatal = text == "FATAL" || text == "PANIC",
                _ => {}
            }
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_server_has_its_code_and_whether_the_session_has_ended() {
        let report = ServerReport::of(b"SFATAL\0VFATAL\0C57P01\0Mterminating\0\0");
        assert_eq!(report, ServerReport { code: "57P01".into(), message: "terminating".into(), fatal: true });
        assert!(!ServerReport::of(b"VERROR\0C23505\0Mduplicate\0\0").fatal);
        assert_eq!(ServerReport::of(b"").code, "");
    }

    #[test]
    fn a_row_has_its_fields_and_nulls_and_a_cut_one_does_not_panic() {
        let body = [0, 2, 0, 0, 0, 1, b'x', 255, 255, 255, 255];
        assert_eq!(fields(&body).collect::<Vec<_>>(), [Some(b"x".as_slice()), None]);
        for end in 0..body.len() {
            let _ = fields(&body[..end]).count();
        }
    }
}
