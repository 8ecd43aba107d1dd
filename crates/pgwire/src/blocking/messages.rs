//! Messages of the protocol (<https://www.postgresql.org/docs/current/protocol-message-formats.html>).

use std::io;
use std::time::{Duration, Instant};

use sawmill_profile::{Error, Kind, LOOK, Result};

use crate::address::server::{Endpoint, Server};
use crate::address::session_kind::SessionKind;
use crate::blocking::stream::{Stream, is_pause};
use crate::login::dialogue::{Dialogue, Step};
use crate::messages::{HEAD, OVERHEAD, kind_and_length};
use crate::server_error::{from_report, lost, unreachable};
use crate::server_report::ServerReport;
use crate::untrusted::{UntrustedLength, invalid};

/// Bytes that are read at once.
const PIECE: usize = 16 * 1024;
/// After this many reads, or after [`LOOK`], a caller is asked whether to continue, even if each of them returned bytes.
const READS: u32 = 16;
/// Bytes that an answer of [`BlockingConnection::ask`] may have, all rows together.
const MAX_ANSWER: usize = 64 << 20;

/// A connection that blocks its thread.
pub struct BlockingConnection {
    stream: Stream,
    /// Received bytes that were not used yet: `input[at..filled]`.
    input: Vec<u8>,
    at: usize,
    filled: usize,
    /// The whole messages that [`send`](Self::send) sends.
    pub out: Vec<u8>,
    /// Parameters that the server reported, such as `server_version`.
    pub parameters: Vec<(String, String)>,
    endpoint: Endpoint,
    place: String,
    reads: u32,
    /// When a caller was asked whether to go on.
    asked: Instant,
}

/// A message of the server.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Its type, such as `D` for a row.
    pub tag: u8,
    /// The rest of the message after its length.
    pub body: &'a [u8],
}

impl BlockingConnection {
    /// Connects to the first endpoint that answers and suits, and logs in, unless `cancelled`.
    ///
    /// # Errors
    /// No endpoint answers or suits, or a server refuses the session.
    pub fn open(server: &Server, cancelled: &dyn Fn() -> bool) -> Result<Self> {
        let mut last = Error::new(Kind::Config, "the address names no host").at(server.place());
        for wanted in server.session.rounds() {
            for endpoint in &server.endpoints {
                let end = Instant::now() + server.timeout;
                let mut given_up = || cancelled() || Instant::now() >= end;
                match Self::to(endpoint, server, &mut given_up) {
                    Ok(mut connection) => match connection.objection(server, *wanted, &mut given_up)? {
                        None => {
                            connection.apply(server, &mut given_up)?;
                            return Ok(connection);
                        }
                        Some(objection) => last = unreachable(objection, connection.place),
                    },
                    // A server that refuses the user ends the search, as in libpq.
                    Err(error) if error.kind() == Kind::Connection && !cancelled() => last = error,
                    Err(error) => return Err(error),
                }
            }
        }
        Err(last)
    }

    /// Connects to an endpoint, and logs in.
    pub(crate) fn to(
        endpoint: &Endpoint,
        server: &Server,
        given_up: &mut dyn FnMut() -> bool,
    ) -> Result<Self> {
        let place = match server.config.get_dbname() {
            Some(database) => format!("{endpoint}, database {database:?}"),
            None => endpoint.to_string(),
        };
        let mut stream = Stream::connect(endpoint, server, &place, LOOK, given_up)?;
        let config = server.config_for(endpoint);
        let certificate = stream.certificate().cloned();
        let mut dialogue = Dialogue::new(server, &config, &place, certificate.as_ref());
        let mut next = Step::Read(dialogue.start());
        let mut piece = vec![0; PIECE];
        while let Step::Read(out) = next {
            stream.send(&out).map_err(|error| dialogue.lost(error))?;
            let bytes = loop {
                match stream.read(&mut piece) {
                    Err(error) if is_pause(&error) => {}
                    read => break read.map_err(|error| dialogue.lost(error))?,
                }
                if given_up() {
                    return Err(late(server, &place));
                }
            };
            next = dialogue.received(piece.get(..bytes).unwrap_or_default())?;
            if given_up() {
                return Err(late(server, &place));
            }
        }
        let (parameters, rest) = (dialogue.parameters(), dialogue.rest());
        let (at, filled) = (0, rest.len());
        let mut input = rest.to_vec();
        input.resize(PIECE.max(filled), 0);
        let (out, endpoint) = (Vec::new(), endpoint.clone());
        Ok(Self {
            stream,
            input,
            at,
            filled,
            out,
            parameters,
            endpoint,
            place,
            reads: 0,
            asked: Instant::now(),
        })
    }

    /// The reason why this server does not suit, if any. Another product than the expected one is an error.
    fn objection(
        &mut self,
        server: &Server,
        wanted: SessionKind,
        given_up: &mut dyn FnMut() -> bool,
    ) -> Result<Option<&'static str>> {
        let crate_version = self.parameters.iter().find(|(name, _)| name == "crate_version");
        if let Some(error) = server.product.objection(crate_version.map(|(_, version)| version.as_str())) {
            return Err(error.at(self.place.clone()));
        }
        if wanted == SessionKind::Any {
            return Ok(None);
        }
        let sql = "SELECT pg_catalog.pg_is_in_recovery(), \
                   pg_catalog.current_setting('transaction_read_only') = 'on'";
        let rows = self.ask(sql, given_up)?;
        let flag = |column: usize| rows.first().and_then(|row| row.get(column)?.as_deref()) == Some("t");
        Ok(wanted.objection(flag(0), flag(1)))
    }

    fn apply(&mut self, server: &Server, given_up: &mut dyn FnMut() -> bool) -> Result<()> {
        for (name, value) in &server.settings {
            let literal = value.replace('\'', "''");
            self.ask(&format!("SET {name} = '{literal}'"), given_up)?;
        }
        Ok(())
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Host, port and database, for errors.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Sends the bytes in `out`.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send(&mut self) -> io::Result<()> {
        let sent = self.stream.send(&self.out);
        self.out.clear();
        sent
    }

    /// Waits for the next message. `given_up` is asked every 100 ms whether to stop waiting, and now and then while
    /// more comes.
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

    /// The length of the next message, if all of it has been read; otherwise makes room for it.
    fn whole(&mut self) -> io::Result<Option<usize>> {
        let there = self.input.get(self.at..self.filled).unwrap_or_default();
        let Some(head) = there.first_chunk::<HEAD>() else { return Ok(None) };
        let (_, length) = kind_and_length(*head)?;
        if there.len() >= HEAD + length.get() {
            return Ok(Some(HEAD + length.get()));
        }
        self.make_room(length)?;
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

    fn make_room(&mut self, length: UntrustedLength) -> io::Result<()> {
        if self.at > 0 {
            self.input.copy_within(self.at..self.filled, 0);
        }
        self.filled -= self.at;
        self.at = 0;
        // The received bytes include a head.
        if self.filled + PIECE / 2 > self.input.len() {
            length.make_room(&mut self.input, self.filled)?;
        }
        Ok(())
    }

    fn more(&mut self, given_up: &mut dyn FnMut() -> bool) -> io::Result<()> {
        loop {
            let came = self.read_once()?;
            self.reads += 1;
            if !came || self.reads.is_multiple_of(READS) || self.asked.elapsed() >= LOOK {
                let given_up = given_up();
                self.asked = Instant::now();
                // The answer may have come while the caller thought about it.
                if given_up && (came || !self.read_once()?) {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            if came {
                return Ok(());
            }
        }
    }

    /// Reads once. Returns whether any bytes arrived before the stream's own timeout.
    fn read_once(&mut self) -> io::Result<bool> {
        if self.at == self.filled {
            (self.at, self.filled) = (0, 0);
        } else if self.filled == self.input.len() {
            let length = UntrustedLength::new(0, 0, "a message")?;
            self.make_room(length)?;
        }
        loop {
            let room = self.input.get_mut(self.filled..).unwrap_or_default();
            match self.stream.read(room) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => {
                    self.filled += bytes;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_pause(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Runs a statement by the simple protocol; returns the fields of its rows as text.
    ///
    /// # Errors
    /// The server refuses it, the connection is lost, or it takes longer than `timeout`.
    pub fn simple(&mut self, sql: &str, timeout: Duration) -> Result<Vec<Vec<Option<String>>>> {
        let end = Instant::now() + timeout;
        self.ask(sql, &mut || Instant::now() >= end)
    }

    /// The same until it is given up.
    ///
    /// # Errors
    /// The server refuses it, or the connection is lost or given up.
    pub fn ask(&mut self, sql: &str, given_up: &mut dyn FnMut() -> bool) -> Result<Vec<Vec<Option<String>>>> {
        self.out.clear();
        push(&mut self.out, b'Q', |out| {
            out.extend_from_slice(sql.as_bytes());
            out.push(0);
        });
        let place = self.place.clone();
        let broken = |error: io::Error| lost(&error, &place);
        self.send().map_err(broken)?;
        let (mut rows, mut refused, mut bytes) = (Vec::new(), None, 0);
        loop {
            let message = self.message(given_up).map_err(broken)?;
            bytes += message.body.len() + OVERHEAD;
            if bytes > MAX_ANSWER {
                return Err(lost(&invalid("the server's answer does not end"), &place));
            }
            match message.tag {
                b'D' => rows.push(
                    fields(message.body)
                        .map(|field| field.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
                        .collect(),
                ),
                b'E' => {
                    let report = ServerReport::new(message.body);
                    refused = Some(from_report(&report, &place));
                    if report.fatal {
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

/// A server that did not answer in time.
pub(super) fn late(server: &Server, place: &str) -> Error {
    unreachable(format!("no answer within {} s", server.timeout.as_secs_f64()), place.to_owned())
}

/// Appends a message.
fn push(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_fields_and_nulls_and_a_cut_one_does_not_panic() {
        let body = [0, 2, 0, 0, 0, 1, b'x', 255, 255, 255, 255];
        assert_eq!(fields(&body).collect::<Vec<_>>(), [Some(b"x".as_slice()), None]);
        for end in 0..body.len() {
            let _ = fields(&body[..end]).count();
        }
    }
}
