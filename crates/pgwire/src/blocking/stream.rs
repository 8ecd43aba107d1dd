//! The byte stream: TCP or a Unix socket, with TLS where the server has it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use tokio_postgres::config::SslMode;

use crate::address::server::Endpoint;

/// `SSLRequest`: length and code.
const ASK_FOR_TLS: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

pub(super) enum Stream {
    Tcp(TcpStream),
    /// And how long a read may wait.
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream, Duration),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// Connects; a read that takes longer than `look` returns `WouldBlock`.
    pub(super) fn connect(
        endpoint: &Endpoint,
        tls: Option<&Arc<ClientConfig>>,
        mode: SslMode,
        timeout: Duration,
        look: Duration,
    ) -> io::Result<Self> {
        match endpoint {
            Endpoint::Tcp { host, address, port } => {
                let mut stream =
                    tcp(host, address.map(|address| SocketAddr::new(address, *port)), *port, timeout)?;
                stream.set_nodelay(true)?;
                let Some(config) = tls else {
                    stream.set_read_timeout(Some(look))?;
                    return Ok(Self::Tcp(stream));
                };
                stream.set_read_timeout(Some(timeout))?;
                stream.write_all(&ASK_FOR_TLS)?;
                let mut answer = [0];
                stream.read_exact(&mut answer)?;
                let stream = match (&answer, mode) {
                    (b"S", _) => {
                        let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
                        let connection =
                            ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
                        let mut stream = StreamOwned::new(connection, stream);
                        stream.conn.complete_io(&mut stream.sock)?;
                        stream.sock.set_read_timeout(Some(look))?;
                        return Ok(Self::Tls(Box::new(stream)));
                    }
                    (_, SslMode::Require) => return Err(io::Error::other("server does not support TLS")),
                    _ => stream,
                };
                stream.set_read_timeout(Some(look))?;
                Ok(Self::Tcp(stream))
            }
            #[cfg(unix)]
            Endpoint::Unix(path) => {
                let stream = std::os::unix::net::UnixStream::connect(path)?;
                Ok(Self::Unix(stream, look))
            }
            #[cfg(not(unix))]
            Endpoint::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes),
            #[cfg(unix)]
            Self::Unix(stream, _) => stream.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    /// Reads what is there, where the caller knows that something is.
    pub(super) fn read_readable(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            #[cfg(unix)]
            Self::Unix(stream, _) => stream.read(into),
            Self::Tls(stream) => stream.read(into),
        }
    }

    /// The socket, if it is not encrypted.
    #[cfg(unix)]
    pub(super) fn descriptor(&self) -> Option<std::os::fd::RawFd> {
        use std::os::fd::AsRawFd;
        match self {
            Self::Tcp(stream) => Some(stream.as_raw_fd()),
            Self::Unix(stream, _) => Some(stream.as_raw_fd()),
            Self::Tls(_) => None,
        }
    }

    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            #[cfg(unix)]
            Self::Unix(stream, look) => readable(stream, *look).and_then(|()| stream.read(into)),
            Self::Tls(stream) => stream.read(into),
        }
    }
}

/// Waits until there is something to read, or the other end has closed. A read that waits by itself is also woken when
/// the other end takes what was sent before: on Linux that is one switch of threads more for every fifth to tenth
/// request of a load test.
#[cfg(unix)]
fn readable(stream: &std::os::unix::net::UnixStream, look: Duration) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let mut waiting = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let millis = look.as_millis().try_into().unwrap_or(libc::c_int::MAX);
    // SAFETY: poll(2) gets one entry, which lives until it returns.
    match unsafe { libc::poll(&raw mut waiting, 1, millis) } {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        1.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn tcp(host: &str, address: Option<SocketAddr>, port: u16, timeout: Duration) -> io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = match address {
        Some(address) => vec![address],
        None => (host, port).to_socket_addrs()?.collect(),
    };
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
