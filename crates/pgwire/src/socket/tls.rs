//! TLS below the PostgreSQL protocol: the server is asked for it before any other message
//! (<https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-SSL>), and a server that has
//! none is not talked to where TLS is required. What is checked of the server's certificate is the
//! configuration's to say.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use crate::address::server::Endpoint;
use crate::socket::stream::Socket;

/// How connections to a server are encrypted.
#[derive(Clone)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    /// Whether a server has agreed to it.
    begun: Arc<AtomicBool>,
}

impl Tls {
    /// TLS to this endpoint, whose host is the name to be held against the certificate; none to a Unix
    /// socket, as libpq has it.
    pub(crate) fn to(endpoint: &Endpoint, config: &Arc<ClientConfig>) -> io::Result<Option<Self>> {
        let Endpoint::Tcp { host, .. } = endpoint else { return Ok(None) };
        let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
        Ok(Some(Self { config: Arc::clone(config), name, begun: Arc::default() }))
    }

    /// Whether the server has agreed to encrypt the connection that was last opened with this.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.load(Relaxed)
    }
}

impl TlsConnect<Socket> for Tls {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        self.begun.store(true, Relaxed);
        let shaking = TlsConnector::from(self.config).connect(self.name, socket);
        Box::pin(async { shaking.await.map(Encrypted) })
    }
}

/// An encrypted stream over a counted one.
pub(crate) struct Encrypted(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
