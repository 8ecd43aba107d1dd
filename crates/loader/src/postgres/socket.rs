//! The byte stream below a connection: TCP or Unix socket, counted.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use sawmill_profile::WireCounters;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, lookup_host};

use super::server::Endpoint;

/// A connected stream.
pub(crate) struct Socket {
    stream: Stream,
    wire: WireCounters,
}

enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
}

impl Socket {
    /// Connects; a name with several addresses is tried address by address. Its bytes, protocol and all, are
    /// counted on `wire`.
    pub(crate) async fn connect(endpoint: &Endpoint, wire: WireCounters) -> io::Result<Self> {
        let stream = match endpoint {
            Endpoint::Tcp { host, port } => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                let mut connected = None;
                for address in lookup_host((host.as_str(), *port)).await? {
                    match TcpStream::connect(address).await {
                        Ok(stream) => {
                            connected = Some(stream);
                            break;
                        }
                        Err(error) => last = error,
                    }
                }
                let stream = connected.ok_or(last)?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
            #[cfg(unix)]
            Endpoint::Unix(path) => Stream::Unix(tokio::net::UnixStream::connect(path).await?),
            #[cfg(not(unix))]
            Endpoint::Unix(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        Ok(Self { stream, wire })
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            #[cfg(unix)]
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        };
        self.wire.add_received((buf.filled().len() - before) as u64);
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            #[cfg(unix)]
            Stream::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
        };
        if let Poll::Ready(Ok(bytes)) = written {
            self.wire.add_sent(bytes as u64);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            #[cfg(unix)]
            Stream::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            #[cfg(unix)]
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
