//! The byte stream: TCP or a Unix socket, with TLS where the server has it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConnection, StreamOwned};
use sawmill_profile::Result;

use crate::address::server::{Endpoint, Server};
use crate::blocking::messages::late;
use crate::login::dialogue::{ASK_FOR_TLS, begins_tls, tls_failed};
use crate::server_error::{lost, unreachable};

pub(super) enum Stream {
    Tcp(TcpStream),
    /// And how long a read may wait.
    Unix(UnixStream, Duration),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// Connects, and begins TLS if the server has it; a read that takes longer than `look` returns `WouldBlock`.
    pub(super) fn connect(
        endpoint: &Endpoint,
        server: &Server,
        place: &str,
        look: Duration,
        given_up: &mut dyn FnMut() -> bool,
    ) -> Result<Self> {
        let no_way = |error: io::Error| unreachable(error, place.to_owned());
        let (host, mut stream) = match endpoint {
            Endpoint::Tcp { host, address, port } => {
                let address = address.map(|address| SocketAddr::new(address, *port));
                let stream = tcp(host, address, *port, server.timeout).and_then(|stream| {
                    stream.set_nodelay(true)?;
                    server.keep_alive.apply(&stream)?;
                    stream.set_read_timeout(Some(look))?;
                    Ok(stream)
                });
                (host, stream.map_err(no_way)?)
            }
            Endpoint::Unix(path) => {
                return Ok(Self::Unix(UnixStream::connect(path).map_err(no_way)?, look));
            }
        };
        let Some(config) = &server.tls else { return Ok(Self::Tcp(stream)) };
        let broken = |error: io::Error| lost(&error, place);
        stream.write_all(&ASK_FOR_TLS).map_err(broken)?;
        let mut answer = [0];
        loop {
            match stream.read(&mut answer) {
                Ok(0) => return Err(broken(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => break,
                Err(error) if is_pause(&error) && given_up() => return Err(late(server, place)),
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(broken(error)),
            }
        }
        if !begins_tls(answer[0], server, place)? {
            return Ok(Self::Tcp(stream));
        }
        let failed = |error: io::Error| tls_failed(&error, place);
        let name = ServerName::try_from(host.clone()).map_err(io::Error::other).map_err(no_way)?;
        let connection = ClientConnection::new(Arc::clone(config), name);
        let mut connection = connection.map_err(io::Error::other).map_err(failed)?;
        while connection.is_handshaking() {
            if given_up() {
                return Err(late(server, place));
            }
            match shake_hands(&mut connection, &mut stream) {
                Err(error) if is_pause(&error) => {}
                shaken => shaken.map_err(failed)?,
            }
        }
        let mut stream = StreamOwned::new(connection, stream);
        stream.flush().map_err(failed)?;
        Ok(Self::Tls(Box::new(stream)))
    }

    /// The server's certificate, if the connection is encrypted.
    pub(super) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        match self {
            Self::Tls(stream) => stream.conn.peer_certificates()?.first(),
            _ => None,
        }
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Unix(stream, _) => stream.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream, look) => readable(stream, *look).and_then(|()| stream.read(into)),
            Self::Tls(stream) => stream.read(into),
        }
    }
}

/// One step of the handshake, so that the caller can give up on a server that sends byte by byte.
fn shake_hands(connection: &mut ClientConnection, stream: &mut TcpStream) -> io::Result<()> {
    while connection.wants_write() {
        connection.write_tls(stream)?;
    }
    if connection.is_handshaking() && connection.wants_read() {
        if connection.read_tls(stream)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Err(error) = connection.process_new_packets() {
            // The server is to learn why.
            let _ = connection.write_tls(stream);
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
    }
    Ok(())
}

/// Whether the stream's own timeout passed without bytes.
pub(super) fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

/// Waits until there is something to read, or the other end has closed. A blocking read would also wake up
/// when the other end takes the bytes sent before: on Linux that is an extra thread switch for every fifth to
/// tenth request of a load test.
fn readable(stream: &UnixStream, look: Duration) -> io::Result<()> {
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
