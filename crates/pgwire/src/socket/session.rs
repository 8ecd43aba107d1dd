//! A connection from its first byte to the greeting: TLS, if the server has it
//! (<https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-SSL>), and the login. The
//! configuration says how to check the server's certificate.
//!
//! tokio-postgres gets a session that has begun: [`LoggedIn`] answers its login with the greeting of the server.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::pki_types::{CertificateDer, ServerName};
use sawmill_profile::{Result, WireCounters};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_rustls::TlsConnector;

use crate::address::server::{Endpoint, Server};
use crate::login::dialogue::{ASK_FOR_TLS, Dialogue, Step, begins_tls, tls_failed};
use crate::messages::Limits;
use crate::server_error::{lost, unreachable};
use crate::socket::stream::{CopyStream, Progress, Socket};

/// The bytes of a connection, encrypted or not.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A connection to a server, on which no session has begun.
pub(crate) struct Wire {
    pub stream: Box<dyn Stream>,
    progress: Progress,
    /// The way of rows past the client, where nothing encrypts them.
    copy_stream: Option<CopyStream>,
    /// The server's certificate, if the connection is encrypted.
    certificate: Option<CertificateDer<'static>>,
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
        let (progress, copy_stream) = (socket.progress(), Some(socket.copy_stream()));
        let plain = |socket: Socket, progress| Self {
            stream: Box::new(socket),
            progress,
            copy_stream,
            certificate: None,
        };
        let Some((host, config)) = tls else { return Ok(plain(socket, progress)) };
        let name = ServerName::try_from(host.clone()).map_err(io::Error::other).map_err(no_way)?;
        let broken = |error: io::Error| lost(&error, place);
        socket.write_all(&ASK_FOR_TLS).await.map_err(broken)?;
        let answer = socket.read_u8().await.map_err(broken)?;
        if !begins_tls(answer, server, place)? {
            return Ok(plain(socket, progress));
        }
        let shaking = TlsConnector::from(Arc::clone(config)).connect(name, socket);
        let stream = shaking.await.map_err(|error| tls_failed(&error, place))?;
        let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first).cloned();
        Ok(Self { stream: Box::new(stream), progress, copy_stream: None, certificate })
    }

    /// Logs in.
    pub(crate) async fn log_in(
        self,
        endpoint: &Endpoint,
        server: &Server,
        place: &str,
    ) -> Result<(LoggedIn, Option<CopyStream>)> {
        let config = server.config_for(endpoint);
        let Self { mut stream, progress, copy_stream, certificate } = self;
        let mut dialogue = Dialogue::new(server, &config, place, certificate.as_ref());
        let mut next = Step::Read(dialogue.start());
        let mut piece = vec![0; 8 * 1024];
        while let Step::Read(out) = next {
            stream.write_all(&out).await.map_err(|error| dialogue.lost(error))?;
            stream.flush().await.map_err(|error| dialogue.lost(error))?;
            let bytes = stream.read(&mut piece).await.map_err(|error| dialogue.lost(error))?;
            next = dialogue.received(piece.get(..bytes).unwrap_or_default())?;
        }
        // AuthenticationOk, and what followed it.
        let greeting = [b"R\0\0\0\x08\0\0\0\0", dialogue.greeting.as_slice(), dialogue.rest()].concat();
        let limits = Limits::default();
        Ok((LoggedIn { stream, greeting, at: 0, limits, progress }, copy_stream))
    }
}

/// A connection on which a session has begun, for a client that expects to begin it.
pub(crate) struct LoggedIn {
    stream: Box<dyn Stream>,
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
        let Self { stream, greeting, at, limits, progress } = self.get_mut();
        let had = buf.filled().len();
        match greeting.get(*at..) {
            Some(left @ [_, ..]) => {
                let bytes = left.len().min(buf.remaining());
                buf.put_slice(left.get(..bytes).unwrap_or_default());
                *at += bytes;
            }
            _ => ready!(Pin::new(stream).poll_read(cx, buf))?,
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
            _ => Pin::new(&mut this.stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
