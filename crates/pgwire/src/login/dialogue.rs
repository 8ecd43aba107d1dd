//! The bytes of a login: cut into messages, counted, and kept as the session's greeting.

use std::io;

use rustls::pki_types::CertificateDer;
use sawmill_profile::{Error, Kind, Result};
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use crate::address::server::Server;
use crate::login::certificate::end_point;
use crate::login::session_start::{Login, out_of_order, refused};
use crate::messages::{HEAD, kind_and_length_at_login};
use crate::server_error::{lost, unreachable};

/// `SSLRequest`: length and code.
pub(crate) const ASK_FOR_TLS: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
/// All that a server may say during a login.
const MAX_LOGIN: usize = 1 << 20;

/// A login over a connection that others read and write.
pub(crate) struct Dialogue<'a> {
    server: &'a Server,
    place: &'a str,
    login: Login<'a>,
    input: Vec<u8>,
    at: usize,
    received: usize,
    /// The messages that the session begins with, after the authentication.
    pub greeting: Vec<u8>,
}

/// The caller's next step.
pub(crate) enum Step {
    /// Send these bytes, if there are any, and read.
    Read(Vec<u8>),
    /// The session has begun.
    Done,
}

impl<'a> Dialogue<'a> {
    /// A login at `place` with these parameters, and with the server's certificate, if the connection is encrypted.
    pub(crate) fn new(
        server: &'a Server,
        config: &'a Config,
        place: &'a str,
        certificate: Option<&CertificateDer<'_>>,
    ) -> Self {
        let end_point = certificate.and_then(|certificate| end_point(certificate));
        let (requirements, scram) = (&server.requirements, None);
        let login = Login { config, requirements, end_point, scram, asked: false, is_in: false };
        let (input, greeting) = (Vec::new(), Vec::new());
        Self { server, place, login, input, at: 0, received: 0, greeting }
    }

    /// The first bytes to send.
    pub(crate) fn start(&self) -> Vec<u8> {
        self.login.start()
    }

    /// Takes bytes of the server. Empty `bytes` mean that the server has closed the connection.
    ///
    /// # Errors
    /// The connection is lost, the server is not PostgreSQL, refuses the session, or does not meet a
    /// requirement.
    pub(crate) fn received(&mut self, bytes: &[u8]) -> Result<Step> {
        if bytes.is_empty() {
            return Err(self.lost(io::ErrorKind::UnexpectedEof.into()));
        }
        self.received += bytes.len();
        if self.received > MAX_LOGIN {
            return Err(Error::new(Kind::Server, "the server's greeting does not end").at(self.place));
        }
        self.input.extend_from_slice(bytes);
        let mut out = Vec::new();
        while let Some((kind, body)) = self.next()? {
            let answer = match kind {
                b'R' if self.login.is_in => Err(out_of_order()),
                b'R' => self.login.prove(&body),
                b'E' => Err(refused(&body)),
                b'N' | b'v' => Ok(Vec::new()),
                _ if !self.login.is_in => Err(out_of_order()),
                _ => {
                    self.keep(kind, &body);
                    if kind == b'Z' {
                        return Ok(Step::Done);
                    }
                    Ok(Vec::new())
                }
            };
            out.extend(answer.map_err(|error| error.at(self.place))?);
        }
        Ok(Step::Read(out))
    }

    /// The next message, if all of it has come.
    fn next(&mut self) -> Result<Option<(u8, Vec<u8>)>> {
        let there = self.input.get(self.at..).unwrap_or_default();
        // An incomplete head is completed as for a short message.
        let mut head = [0, 0, 0, 0, 8];
        let known = there.len().min(HEAD);
        head[..known].copy_from_slice(&there[..known]);
        if known == 0 {
            return Ok(None);
        }
        let (kind, length) = kind_and_length_at_login(head).map_err(|_| self.not_postgres())?;
        self.server.was_reached();
        let end = HEAD + length.get();
        if known < HEAD || there.len() < end {
            return Ok(None);
        }
        let body = there.get(HEAD..end).unwrap_or_default().to_vec();
        self.at += end;
        Ok(Some((kind, body)))
    }

    fn keep(&mut self, kind: u8, body: &[u8]) {
        self.greeting.push(kind);
        self.greeting.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        self.greeting.extend_from_slice(body);
    }

    /// The parameters that the server has reported.
    pub(crate) fn parameters(&self) -> Vec<(String, String)> {
        let mut parameters = Vec::new();
        let mut rest = self.greeting.as_slice();
        while let Some((&[kind, a, b, c, d], after)) = rest.split_first_chunk::<HEAD>() {
            let length = (u32::from_be_bytes([a, b, c, d]) as usize).saturating_sub(4).min(after.len());
            let (body, next) = after.split_at(length);
            rest = next;
            if kind == b'S' {
                let mut texts =
                    body.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
                parameters.extend(texts.next().zip(texts.next()));
            }
        }
        parameters
    }

    /// The bytes received after the greeting.
    pub(crate) fn rest(&self) -> &[u8] {
        self.input.get(self.at..).unwrap_or_default()
    }

    /// A connection that broke during the login.
    pub(crate) fn lost(&self, error: io::Error) -> Error {
        lost(&error, self.place)
    }

    fn not_postgres(&self) -> Error {
        not_postgres(self.place)
    }
}

/// Whether TLS begins after this answer to the question for it.
///
/// # Errors
/// The server has no TLS although it is required, or is not PostgreSQL.
pub(crate) fn begins_tls(answer: u8, server: &Server, place: &str) -> Result<bool> {
    match (answer, server.config.get_ssl_mode()) {
        (b'S', _) => {
            server.was_reached();
            Ok(true)
        }
        (b'N', SslMode::Require) => {
            Err(tls_failed(&io::Error::other("the server does not support TLS"), place))
        }
        (b'N', _) => {
            server.was_reached();
            Ok(false)
        }
        // A server that cannot begin a process says so before it knows which version of the protocol is spoken.
        (b'E', _) => Err(lost(&io::Error::other("the server cannot begin a session"), place)),
        _ => Err(not_postgres(place)),
    }
}

/// TLS that cannot be begun.
pub(crate) fn tls_failed(error: &io::Error, place: &str) -> Error {
    let text = error.to_string();
    if text.contains("does not support TLS") || text.contains("certificate") {
        return Error::new(Kind::Server, format!("cannot encrypt the connection: {text}")).at(place).advise(
            "see what sslmode asks for, in the address or PGSSLMODE, and what the server offers (ssl = on)",
        );
    }
    unreachable(format!("the TLS handshake failed: {text}"), place.to_owned())
}

fn not_postgres(place: &str) -> Error {
    Error::new(Kind::Config, "the server does not speak the PostgreSQL protocol").at(place).advise(
        "check the port; the HTTP endpoint of CrateDB, at port 4200, has addresses that begin with crate://",
    )
}
