//! The byte stream below a connection: TCP or Unix socket, counted.
//!
//! ```text
//! tokio-postgres ─▶ Socket ──┐
//!                            ├─▶ stream
//! rows ──▶ CopyStream ───────┘   while a COPY takes rows, and only without TLS
//! ```
//!
//! The server's bytes pass [`Incoming`] on their way to tokio-postgres.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sawmill_profile::WireCounters;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream, lookup_host};

use crate::address::keep_alive::KeepAlive;
use crate::address::server::Endpoint;
use crate::socket::incoming::Incoming;

/// Bytes that a Unix socket holds until the server reads them; TCP adapts its buffer. The system's default of
/// 208 KiB is too small for a block of rows: each makes the sender wait three times.
const SEND_BUFFER: usize = 1 << 20;

/// Pause for more rows once all received ones are read. The server sends 8 KiB at a time; waking up for each
/// piece would cost the reader and the server a tenth of their time.
const PAUSE: Duration = Duration::from_micros(400);

/// A connected stream.
pub(crate) struct Socket {
    shared: Arc<Shared>,
    incoming: Incoming,
}

/// The shared state of a connection and its [`CopyStream`].
struct Shared {
    stream: Stream,
    wire: WireCounters,
    /// The stream has not taken all bytes of the connection.
    unsent: AtomicBool,
    /// Bytes that the stream took.
    sent: AtomicU64,
    /// Bytes of answers that arrived.
    received: AtomicU64,
}

/// How far the exchange with the server has come.
#[derive(Clone)]
pub(crate) struct Progress(Arc<Shared>);

impl Progress {
    /// Numbers that change with each byte that is sent, and each that comes of an answer.
    pub(crate) fn now(&self) -> (u64, u64) {
        (self.0.sent.load(Relaxed), self.0.received.load(Relaxed))
    }

    /// Sets how many bytes of answers have arrived.
    pub(crate) fn received(&self, bytes: u64) {
        self.0.received.store(bytes, Relaxed);
    }
}

impl Shared {
    fn add_sent(&self, bytes: usize) {
        self.wire.add_sent(bytes as u64);
        self.sent.fetch_add(bytes as u64, Relaxed);
    }
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Runs a method that both kinds of streams have.
macro_rules! either {
    ($either:expr, $stream:ident => $run:expr) => {
        match $either {
            Stream::Tcp($stream) => $run,
            Stream::Unix($stream) => $run,
        }
    };
}

impl Stream {
    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_read_ready(cx))
    }

    fn try_read(&self, into: &mut ReadBuf<'_>) -> io::Result<usize> {
        either!(self, stream => stream.try_read_buf(into))
    }

    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_write_ready(cx))
    }

    async fn writable(&self) -> io::Result<()> {
        either!(self, stream => stream.writable().await)
    }

    fn try_write(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        either!(self, stream => stream.try_write_vectored(bytes))
    }
}

impl Socket {
    /// Connects, trying each address of a name in turn. Counts all bytes, including the protocol's, on `wire`.
    /// The caller must know whether it asks for TLS first.
    pub(crate) async fn connect(
        endpoint: &Endpoint,
        keep_alive: &KeepAlive,
        asks_for_tls: bool,
        wire: WireCounters,
    ) -> io::Result<Self> {
        let stream = match endpoint {
            Endpoint::Tcp { host, address, port } => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                let mut connected = None;
                let addresses: Vec<SocketAddr> = match address {
                    Some(address) => vec![SocketAddr::new(*address, *port)],
                    None => lookup_host((host.as_str(), *port)).await?.collect(),
                };
                for address in addresses {
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
                keep_alive.apply(&stream)?;
                Stream::Tcp(stream)
            }
            Endpoint::Unix(path) => {
                let stream = UnixStream::connect(path).await?;
                // A system that gives less, or nothing, is as good as before.
                let _ = SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER);
                Stream::Unix(stream)
            }
        };
        let shared = Arc::new(Shared {
            stream,
            wire,
            unsent: AtomicBool::new(false),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        });
        Ok(Self { shared, incoming: Incoming::new(asks_for_tls) })
    }

    /// How far the exchange has come.
    pub(crate) fn progress(&self) -> Progress {
        Progress(Arc::clone(&self.shared))
    }

    /// The way of rows past the connection.
    pub(crate) fn copy_stream(&self) -> CopyStream {
        CopyStream { shared: Arc::clone(&self.shared) }
    }
}

/// Sends rows while the connection waits for the end of a COPY that it has begun: without the copy into its
/// buffer and the change to its task that each block would cost, a twelfth of the processor time of a load.
///
/// Between the server's answer to the COPY and `CopyDone` the connection sends nothing on its own, and it has
/// sent all earlier bytes when the answer arrives.
#[derive(Clone)]
pub(crate) struct CopyStream {
    shared: Arc<Shared>,
}

impl CopyStream {
    /// Sends a `CopyData` message of these bytes. Whoever drops the future before its end has to close the
    /// connection: part of a message may have been sent.
    ///
    /// # Errors
    /// The connection is lost, or still busy sending something else, which does not happen.
    pub(crate) async fn send(&self, rows: &[u8]) -> io::Result<()> {
        let Shared { stream, unsent, .. } = &*self.shared;
        if unsent.load(Relaxed) {
            return Err(io::Error::other("the connection still sends what came before the rows"));
        }
        let length = u32::try_from(rows.len() + 4).ok().filter(|length| *length <= i32::MAX as u32);
        let length = length.ok_or_else(|| io::Error::other("rows of more than 2 GiB in one message"))?;
        let mut head = [b'd', 0, 0, 0, 0];
        head[1..].copy_from_slice(&length.to_be_bytes());
        let mut sent = 0;
        while sent < head.len() + rows.len() {
            let head = &head[sent.min(head.len())..];
            let rows = &rows[sent.saturating_sub(5).min(rows.len())..];
            match stream.try_write(&[IoSlice::new(head), IoSlice::new(rows)]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    self.shared.add_sent(bytes);
                    sent += bytes;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { shared, incoming } = self.get_mut();
        let Shared { stream, wire, .. } = &**shared;
        loop {
            if !incoming.pending().is_empty() {
                let bytes = incoming.pending().len().min(buf.remaining());
                buf.put_slice(&incoming.pending()[..bytes]);
                incoming.passed(bytes);
                return Poll::Ready(Ok(()));
            }
            ready!(stream.poll_read_ready(cx))?;
            let had = buf.filled().len();
            if incoming.is_drained() {
                std::thread::sleep(PAUSE);
            }
            let read = match incoming.has_rows() {
                true => incoming.read(|room| stream.try_read(&mut ReadBuf::new(room))),
                false => stream.try_read(buf),
            };
            match read {
                Ok(bytes) => {
                    wire.add_received(bytes as u64);
                    incoming.pass(&buf.filled()[had..]);
                    if bytes == 0 && incoming.pending().is_empty() || buf.filled().len() > had {
                        return Poll::Ready(Ok(()));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let Shared { stream, unsent, .. } = &*self.shared;
        unsent.store(true, Relaxed);
        loop {
            ready!(stream.poll_write_ready(cx))?;
            match stream.try_write(&[IoSlice::new(buf)]) {
                Ok(bytes) => {
                    self.shared.add_sent(bytes);
                    unsent.store(bytes < buf.len(), Relaxed);
                    return Poll::Ready(Ok(bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Nothing is kept here.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The stream closes when the connection and its way for rows are dropped.
        Poll::Ready(Ok(()))
    }
}
