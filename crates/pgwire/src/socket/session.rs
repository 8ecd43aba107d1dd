//! A connection from its first byte to the greeting: TLS, if the server has it
//! (<https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-SSL>), and the login. The
//! configuration says how to check the server's certificate.
//!
//! tokio-postgres gets a session that has begun: [`LoggedIn`] answers its login with the greeting of the server.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::pki_types::ServerName;
use sawmill_profile::{Result, WireCounters};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::address::server::{Endpoint, Server};
use crate::login::dialogue::{ASK_FOR_TLS, Dialogue, Step, begins_tls, tls_failed};
use crate::messages::Limits;
use crate::server_error::{lost, unreachable};
use crate::socket::stream::{CopyStream, Progress, Socket};

/// A connection to a server, encrypted or not.
pub(crate) enum Wire {
    Plain(Socket),
    Encrypted(Box<TlsStream<Socket>>),
}

impl Wire {
    /// Connects, and begins TLS if the server has it.
    pub(crate) async fn connect(
        endpoint: &Endpoint,
        server: &Server,
        place: &str,
        counters: WireCounters,
    ) -> Result<Self> {
        let no_way = |error: io::Error| unreachable(error, place.to_owned());
        // A Unix socket is never encrypted, as libpq has it.
        let tls = match endpoint {
            Endpoint::Tcp { host, .. } => server.tls.as_ref().map(|config| (host, config)),
            Endpoint::Unix(_) => None,
        };
        let connecting = Socket::connect(endpoint, &server.keep_alive, tls.is_some(), counters);
        let mut socket = connecting.await.map_err(no_way)?;
        let Some((host, config)) = tls else { return Ok(Self::Plain(socket)) };
        let name = ServerName::try_from(host.clone()).map_err(io::Error::other).map_err(no_way)?;
        let broken = |error: io::Error| lost(&error, place);
        socket.write_all(&ASK_FOR_TLS).await.map_err(broken)?;
        let answer = socket.read_u8().await.map_err(broken)?;
        if !begins_tls(answer, server, place)? {
            return Ok(Self::Plain(socket));
        }
        let shaking = TlsConnector::from(Arc::clone(config)).connect(name, socket);
        let stream = shaking.await.map_err(|error| tls_failed(&error, place))?;
        Ok(Self::Encrypted(Box::new(stream)))
    }

    /// Logs in. Rows can pass the client where nothing encrypts them.
    pub(crate) async fn log_in(
        mut self,
        endpoint: &Endpoint,
        server: &Server,
        place: &str,
    ) -> Result<(LoggedIn, Option<CopyStream>)> {
        let config = server.config_for(endpoint);
        let certificate = match &self {
            Self::Plain(_) => None,
            Self::Encrypted(stream) => stream.get_ref().1.peer_certificates().and_then(<[_]>::first).cloned(),
        };
        let mut dialogue = Dialogue::new(server, &config, place, certificate.as_ref());
        let mut next = Step::Read(dialogue.start());
        let mut piece = vec![0; 8 * 1024];
        while let Step::Read(out) = next {
            self.write_all(&out).await.map_err(|error| dialogue.lost(error))?;
            self.flush().await.map_err(|error| dialogue.lost(error))?;
            let bytes = self.read(&mut piece).await.map_err(|error| dialogue.lost(error))?;
            next = dialogue.received(piece.get(..bytes).unwrap_or_default())?;
        }
        // AuthenticationOk, and what followed it.
        let greeting = [b"R\0\0\0\x08\0\0\0\0", dialogue.greeting.as_slice(), dialogue.rest()].concat();
        let (copy_stream, progress) = match &self {
            Self::Plain(socket) => (Some(socket.copy_stream()), socket.progress()),
            Self::Encrypted(stream) => (None, stream.get_ref().0.progress()),
        };
        let limits = Limits::default();
        Ok((LoggedIn { wire: self, greeting, at: 0, limits, progress }, copy_stream))
    }
}

/// A connection on which a session has begun, for a client that expects to begin it.
pub(crate) struct LoggedIn {
    wire: Wire,
    greeting: Vec<u8>,
    /// How much of the greeting the client has read.
    at: usize,
    limits: Limits,
    progress: Progress,
}

impl LoggedIn {
    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }
}

impl AsyncRead for LoggedIn {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { wire, greeting, at, limits, progress } = self.get_mut();
        let had = buf.filled().len();
        match greeting.get(*at..) {
            Some(left @ [_, ..]) => {
                let bytes = left.len().min(buf.remaining());
                buf.put_slice(left.get(..bytes).unwrap_or_default());
                *at += bytes;
            }
            _ => ready!(Pin::new(wire).poll_read(cx, buf))?,
        }
        limits.pass(buf.filled().get(had..).unwrap_or_default())?;
        progress.received(limits.moved());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for LoggedIn {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        // The client's own login ends here: it sends nothing else before it has read the greeting.
        match this.at {
            0 => Poll::Ready(Ok(buf.len())),
            _ => Pin::new(&mut this.wire).poll_write(cx, buf),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(cx)
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Encrypted(stream) => Pin::new(stream.as_mut()).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write(cx, buf),
            Self::Encrypted(stream) => Pin::new(stream.as_mut()).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Self::Encrypted(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Encrypted(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }
}
