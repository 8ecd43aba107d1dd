//! The part of the PostgreSQL wire protocol that `INSERT ... SELECT FROM UNNEST` with binary arrays needs
//! (<https://www.postgresql.org/docs/current/protocol-flow.html>).

mod arrays;
mod connection;
mod execute;
mod message;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use crate::cluster::Shared;

use connection::Connection;
use message::body;

const PROTOCOL_3: u32 = 196_608;
const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;

/// The transport: TCP, plain or encrypted.
trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// Serves one connection until it ends.
pub(crate) fn serve(stream: TcpStream, shared: &Shared, node: usize) {
    // Small messages follow each other; without this option they are only delayed.
    let _ = stream.set_nodelay(true);
    let Some(stream) = started(&stream, shared) else { return };
    // A broken connection is the client's concern.
    let _ = Connection::new(stream, shared).run(node);
}

/// The stream after the messages that request TLS and start the protocol; `None` if the client is rejected.
fn started(stream: &TcpStream, shared: &Shared) -> Option<Box<dyn Stream>> {
    let mut started: Box<dyn Stream> = Box::new(stream.try_clone().ok()?);
    let mut encrypted = false;
    loop {
        let startup = body(&mut started).ok()?;
        let code = startup.get(..4).map(|code| u32::from_be_bytes([code[0], code[1], code[2], code[3]]));
        match (code, &shared.tls) {
            (Some(SSL_REQUEST), Some(config)) if !encrypted => {
                let connection = rustls::ServerConnection::new(Arc::clone(config)).ok()?;
                started.write_all(b"S").ok()?;
                started = Box::new(rustls::StreamOwned::new(connection, stream.try_clone().ok()?));
                encrypted = true;
            }
            (Some(SSL_REQUEST | GSS_REQUEST), _) => started.write_all(b"N").ok()?,
            // As with `ssl: on` in host-based authentication: unencrypted clients are rejected.
            _ => return (code == Some(PROTOCOL_3) && encrypted == shared.tls.is_some()).then_some(started),
        }
    }
}
