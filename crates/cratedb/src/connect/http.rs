//! One HTTP/1.1 connection that is kept open: requests out of several pieces of memory, answers into a
//! buffer that is used again.
//!
//! The loader has to know, and client libraries do not report, whether a whole request had been sent when
//! the connection broke. If not, the server cannot have acted on it; if so, it may have. Every wait checks
//! the cancel flag.

use std::cell::{Cell, RefCell};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use sawmill_pgwire::{KeepAlive, UntrustedLength, append};
use sawmill_profile::turns::{self, Socket};
use sawmill_profile::{WaitKind, wait};
use sawmill_source::{Control, Error, LOOK};

use crate::connect::address::Node;

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// Bytes of an error's body that are kept: errors can echo the whole request.
const ERROR_BODY: usize = 64 * 1024;
/// Bytes of an answer to a load: rows are asked for in pages that are shorter by far.
pub(crate) const MAX_BODY: usize = 512 << 20;
/// Bytes of headers that an answer may have.
const MAX_HEADERS: usize = 64 * 1024;
/// Bytes of the line before a chunk.
const MAX_CHUNK_LINE: usize = 1024;
/// Interim answers before the answer.
const MAX_INTERIM: usize = 16;
/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum TransportError {
    /// The server cannot have acted on the request.
    NotSent(String),
    /// The server may have acted on it, or may still do so.
    Unknown(String),
    /// The caller wants to stop.
    Cancelled(Error),
}

/// An open connection to a node.
pub(crate) struct HttpConnection {
    stream: Stream,
    /// Bytes that have arrived and are not used yet: `input[at..]`.
    input: Vec<u8>,
    at: usize,
    /// Where bytes arrive: zeros are written once a connection.
    piece: Box<[u8]>,
    body: Vec<u8>,
    /// Whether the connection can take another request.
    open: bool,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<ClientConnection>, TcpStream),
    Simulated(Box<dyn Socket>),
}

/// Where an answer's body ends.
enum Length {
    Known(u64),
    Chunked,
    Close,
}

impl HttpConnection {
    /// Connects to a node.
    pub(crate) fn open(
        node: &Node,
        tls: Option<&Arc<ClientConfig>>,
        control: &Control<'_>,
    ) -> Result<Self, TransportError> {
        let not_sent =
            |error: &dyn std::fmt::Display| TransportError::NotSent(format!("cannot connect: {error}"));
        let _connecting = wait(WaitKind::Network);
        control.check().map_err(TransportError::Cancelled)?;
        if let Some(connected) = turns::connect(&node.host, node.port) {
            let stream = Stream::Simulated(connected.map_err(|error| not_sent(&error))?);
            return Ok(Self::new(stream));
        }
        let mut addresses =
            (node.host.as_str(), node.port).to_socket_addrs().map_err(|error| not_sent(&error))?;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let connect =
            |address| TcpStream::connect_timeout(&address, CONNECT).map_err(|error| last = error).ok();
        let connected = addresses.find_map(connect);
        let Some(stream) = connected else { return Err(not_sent(&last)) };
        let prepared = stream
            .set_nodelay(true)
            .and_then(|()| KeepAlive::default().apply(&stream))
            .and_then(|()| stream.set_read_timeout(Some(LOOK)))
            .and_then(|()| stream.set_write_timeout(Some(LOOK)));
        prepared.map_err(|error| not_sent(&error))?;
        let stream = match tls {
            None => Stream::Plain(stream),
            Some(config) => {
                let name = ServerName::try_from(node.host.clone()).map_err(|error| not_sent(&error))?;
                let connection =
                    ClientConnection::new(Arc::clone(config), name).map_err(|error| not_sent(&error))?;
                let mut stream = Stream::Tls(Box::new(connection), stream);
                stream.shake_hands(&End::within(CONNECT), control)?;
                stream
            }
        };
        Ok(Self::new(stream))
    }

    fn new(stream: Stream) -> Self {
        Self { stream, input: Vec::new(), at: 0, piece: vec![0; PIECE].into(), body: Vec::new(), open: true }
    }

    /// Whether the server still keeps the connection open, so that another request can be sent.
    pub(crate) fn is_open(&self) -> bool {
        let stream = match &self.stream {
            Stream::Plain(stream) | Stream::Tls(_, stream) => stream,
            Stream::Simulated(socket) => return self.open && socket.is_open(),
        };
        if !self.open || stream.set_nonblocking(true).is_err() {
            return false;
        }
        let peeked = stream.peek(&mut [0]);
        let quiet = matches!(&peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        // A TLS session ticket may have arrived after the last answer.
        let tls = matches!(self.stream, Stream::Tls(..)) && matches!(peeked, Ok(1..));
        stream.set_nonblocking(false).is_ok() && (quiet || tls)
    }

    /// Sends a request, given piece by piece, and waits for its answer: status and body.
    pub(crate) fn request(
        &mut self,
        pieces: &[&[u8]],
        limit: &Limit<'_>,
        control: &Control<'_>,
    ) -> Result<(u16, &[u8]), TransportError> {
        let asking = wait(WaitKind::Network);
        asking.add_bytes(pieces.iter().map(|piece| piece.len() as u64).sum());
        let was_open = std::mem::replace(&mut self.open, false);
        if !was_open {
            return Err(TransportError::NotSent("the connection is closed".to_owned()));
        }
        for (i, piece) in pieces.iter().enumerate() {
            let last = i + 1 == pieces.len();
            if let Err(failure) = self.stream.send(piece, last, limit.silence, control) {
                return match failure {
                    Failure::Cancelled(error) => Err(TransportError::Cancelled(error)),
                    // A server that refuses a body for its length answers before it has read it all.
                    Failure::Io(error) => {
                        match self.answer(&End::within(LOOK * 10), control) {
                            Ok(status) => Ok((status, &self.body)),
                            Err(failure) => Err(failure
                                .or(TransportError::NotSent, |_| format!("the connection broke: {error}"))),
                        }
                    }
                };
            }
        }
        let answered = self.answer(&End::new(limit), control);
        let unknown = |error: io::Error| format!("the server did not answer: {error}");
        let status = answered.map_err(|failure| failure.or(TransportError::Unknown, unknown))?;
        Ok((status, &self.body))
    }

    /// Reads an answer; its body is in `self.body`.
    fn answer(&mut self, end: &End<'_>, control: &Control<'_>) -> Result<u16, Failure> {
        let mut interim = 0;
        let (status, length, keep) = loop {
            let head = self.until(b"\r\n\r\n", (MAX_HEADERS, "its headers do not end"), end, control)? + 4;
            let parsed =
                parse_head(&self.input[self.at..self.at + head]).ok_or_else(|| invalid("it is not HTTP"))?;
            self.at += head;
            // 1xx responses precede the answer.
            if parsed.0 >= 200 {
                break parsed;
            }
            interim += 1;
            if interim > MAX_INTERIM {
                return Err(invalid("only interim answers come"));
            }
        };
        self.body.clear();
        // More of an error is not read, and the connection closed.
        let whole = status == 200;
        let most = if whole { end.limit.map_or(MAX_BODY, |limit| limit.most) } else { ERROR_BODY };
        match length {
            Length::Known(length) => self.take(length, most, whole, end, control)?,
            Length::Chunked => loop {
                let line = self.until(b"\r\n", (MAX_CHUNK_LINE, "a chunk has no length"), end, control)?;
                let text = String::from_utf8_lossy(&self.input[self.at..self.at + line]).into_owned();
                let size = text.split(';').next().unwrap_or_default().trim();
                let size = u64::from_str_radix(size, 16).map_err(|_| invalid("a chunk has no length"))?;
                self.at += line + 2;
                self.take(size, most, whole, end, control)?;
                if !whole && self.body.len() >= most {
                    break;
                }
                // The line break after a chunk; after the last one trailers are not expected.
                while self.input.len() - self.at < 2 {
                    self.more(end, control)?;
                }
                self.at += 2;
                if size == 0 {
                    break;
                }
            },
            Length::Close => {
                while self.body.len() < most {
                    append(&mut self.body, &self.input[self.at..]).map_err(Failure::Io)?;
                    self.at = self.input.len();
                    match self.more(end, control) {
                        Ok(()) => {}
                        Err(Failure::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                        Err(failure) => return Err(failure),
                    }
                }
                if whole && self.body.len() >= most {
                    return Err(invalid("it does not end"));
                }
            }
        }
        if self.at == self.input.len() {
            self.input.clear();
            self.at = 0;
        }
        let cut = !whole && self.body.len() >= most;
        self.open = keep && !cut && !matches!(length, Length::Close);
        Ok(status)
    }

    /// Reads input until it has these bytes, and returns the number of bytes before them.
    fn until(
        &mut self,
        wanted: &[u8],
        (most, what): (usize, &str),
        end: &End<'_>,
        control: &Control<'_>,
    ) -> Result<usize, Failure> {
        loop {
            match memchr::memmem::find(&self.input[self.at..], wanted) {
                Some(at) => return Ok(at),
                None if self.input.len() - self.at > most => return Err(invalid(what)),
                None => self.more(end, control)?,
            }
        }
    }

    /// Moves `length` bytes of input to the body. If there are more than `most` together, they are refused, or, if
    /// not the whole is wanted, left.
    fn take(
        &mut self,
        length: u64,
        most: usize,
        whole: bool,
        end: &End<'_>,
        control: &Control<'_>,
    ) -> Result<(), Failure> {
        let room = most.saturating_sub(self.body.len());
        let wanted = if whole { length } else { length.min(room as u64) };
        let mut left = UntrustedLength::new(wanted, room, "an answer").map_err(Failure::Io)?.get();
        while left > 0 {
            if self.at == self.input.len() {
                self.more(end, control)?;
            }
            let here = left.min(self.input.len() - self.at);
            append(&mut self.body, &self.input[self.at..self.at + here]).map_err(Failure::Io)?;
            self.at += here;
            left -= here;
        }
        Ok(())
    }

    /// Reads some more input.
    fn more(&mut self, end: &End<'_>, control: &Control<'_>) -> Result<(), Failure> {
        // The time limit is for the whole answer, however fast it arrives.
        pause(end, control)?;
        self.input.drain(..self.at);
        self.at = 0;
        let read = self.stream.receive(&mut self.piece, end, control)?;
        self.input.extend_from_slice(&self.piece[..read]);
        let closed = || io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed");
        if read > 0 { Ok(()) } else { Err(Failure::Io(closed())) }
    }
}

#[derive(Debug)]
enum Failure {
    Io(io::Error),
    Cancelled(Error),
}

impl Failure {
    /// The failure of a request: a cancel is passed on.
    fn or(self, of: fn(String) -> TransportError, what: impl FnOnce(io::Error) -> String) -> TransportError {
        match self {
            Self::Cancelled(error) => TransportError::Cancelled(error),
            Self::Io(error) => of(what(error)),
        }
    }
}

fn invalid(what: &str) -> Failure {
    Failure::Io(io::Error::new(io::ErrorKind::InvalidData, format!("cannot read the answer: {what}")))
}

/// Status, length of the body, and whether the connection stays open (RFC 9112).
fn parse_head(head: &[u8]) -> Option<(u16, Length, bool)> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n");
    let mut words = lines.next()?.splitn(3, ' ');
    let version = words.next()?.strip_prefix("HTTP/1.")?;
    let status: u16 = words.next()?.parse().ok()?;
    let mut length = None;
    let mut chunked = false;
    let mut keep = version == "1";
    for line in lines.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':')?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = Some(value.parse().ok()?),
            "transfer-encoding" => chunked = value.to_ascii_lowercase().ends_with("chunked"),
            "connection" => {
                keep = match value.to_ascii_lowercase().as_str() {
                    "close" => false,
                    "keep-alive" => true,
                    _ => keep,
                }
            }
            _ => {}
        }
    }
    let length = match (chunked, length) {
        (true, _) => Length::Chunked,
        (false, Some(length)) => Length::Known(length),
        (false, None) if status == 204 || status == 304 => Length::Known(0),
        (false, None) => Length::Close,
    };
    Some((status, length, keep))
}

/// Whether an error only says that it is time to check the cancel flag.
fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

fn pause(end: &End<'_>, control: &Control<'_>) -> Result<(), Failure> {
    control.check().map_err(Failure::Cancelled)?;
    match turns::now() > end.at.get() {
        true => end.go_on().map_err(|why| Failure::Io(io::Error::new(io::ErrorKind::TimedOut, why))),
        false => Ok(()),
    }
}

/// How long an answer may be, and how long to wait for it.
pub(crate) struct Limit<'a> {
    /// The most bytes of an answer's body.
    pub most: usize,
    /// The silence after which `goes_on` is asked.
    pub silence: Duration,
    /// Whether to wait for as long again; otherwise the reason.
    pub goes_on: &'a dyn Fn() -> Result<(), String>,
}

/// The end of a wait, which may be put off.
struct End<'a> {
    at: Cell<Instant>,
    limit: Option<&'a Limit<'a>>,
    /// Why it is not put off any more.
    gone: RefCell<Option<String>>,
}

impl<'a> End<'a> {
    fn within(time: Duration) -> Self {
        Self { at: Cell::new(turns::now() + time), limit: None, gone: RefCell::default() }
    }

    fn new(limit: &'a Limit<'a>) -> Self {
        Self { limit: Some(limit), ..Self::within(limit.silence) }
    }

    /// Puts the end off, or returns why not.
    fn go_on(&self) -> Result<(), String> {
        let Some(Limit { silence, goes_on, .. }) = self.limit else {
            return Err("the server took too long".to_owned());
        };
        if let Some(why) = self.gone.take() {
            return Err(format!("no answer for {} s, and {why}", silence.as_secs_f64()));
        }
        let more = match goes_on() {
            Ok(()) => *silence,
            // The answer may have arrived while the server was asked.
            Err(why) => {
                self.gone.replace(Some(why));
                LOOK
            }
        };
        self.at.set(turns::now() + more);
        Ok(())
    }
}

impl Stream {
    fn shake_hands(&mut self, end: &End<'_>, control: &Control<'_>) -> Result<(), TransportError> {
        let Self::Tls(connection, socket) = self else { return Ok(()) };
        let failed = |error: io::Error| format!("the TLS handshake failed: {error}");
        while connection.is_handshaking() {
            match connection.complete_io(socket) {
                Ok(_) => {}
                Err(error) if is_pause(&error) => {
                    pause(end, control).map_err(|failure| failure.or(TransportError::NotSent, failed))?;
                }
                Err(error) => return Err(TransportError::NotSent(failed(error))),
            }
        }
        Ok(())
    }

    /// Sends all bytes, and flushes after the last piece. Each progress restarts the time limit.
    fn send(
        &mut self,
        mut bytes: &[u8],
        last: bool,
        timeout: Duration,
        control: &Control<'_>,
    ) -> Result<(), Failure> {
        let mut end = End::within(timeout);
        let wire = control.phase().wire();
        match self {
            Self::Plain(_) | Self::Simulated(_) => {
                while !bytes.is_empty() {
                    let written = match self {
                        Self::Simulated(socket) => socket.write(bytes),
                        Self::Plain(socket) | Self::Tls(_, socket) => socket.write(bytes),
                    };
                    match written {
                        Ok(0) => return Err(Failure::Io(io::ErrorKind::WriteZero.into())),
                        Ok(written) => {
                            wire.add_sent(written as u64);
                            bytes = &bytes[written..];
                            end = End::within(timeout);
                        }
                        Err(error) if is_pause(&error) => pause(&end, control)?,
                        Err(error) => return Err(Failure::Io(error)),
                    }
                }
            }
            Self::Tls(connection, socket) => {
                while !bytes.is_empty() || (last && connection.wants_write()) {
                    // Takes what fits its buffer; the rest when the socket took that.
                    let taken = connection.writer().write(bytes).map_err(Failure::Io)?;
                    bytes = &bytes[taken..];
                    while connection.wants_write() {
                        match connection.write_tls(socket) {
                            Ok(0) => return Err(Failure::Io(io::ErrorKind::WriteZero.into())),
                            Ok(written) => {
                                wire.add_sent(written as u64);
                                end = End::within(timeout);
                            }
                            Err(error) if is_pause(&error) => pause(&end, control)?,
                            Err(error) => return Err(Failure::Io(error)),
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn receive(&mut self, into: &mut [u8], end: &End<'_>, control: &Control<'_>) -> Result<usize, Failure> {
        let wire = control.phase().wire();
        loop {
            let read = match self {
                Self::Plain(socket) => socket.read(into).inspect(|read| wire.add_received(*read as u64)),
                Self::Simulated(socket) => socket.read(into),
                Self::Tls(connection, socket) => match connection.reader().read(into) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        match connection.read_tls(socket) {
                            Ok(0) => Ok(0),
                            Ok(read) => {
                                wire.add_received(read as u64);
                                let processed = connection.process_new_packets();
                                processed.map_err(|error| Failure::Io(io::Error::other(error)))?;
                                continue;
                            }
                            Err(error) => Err(error),
                        }
                    }
                    // A close without close_notify counts as the end of the stream.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
                    read => read,
                },
            };
            match read {
                Err(error) if is_pause(&error) => pause(end, control)?,
                other => return other.map_err(Failure::Io),
            }
        }
    }
}
