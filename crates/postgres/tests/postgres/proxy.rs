//! A TCP proxy that loses the answer to a commit.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Passes everything on, but cuts `cuts` connections after a COMMIT of copied rows has gone to the server and
/// before its answer.
pub struct Proxy {
    pub port: u16,
    pub cuts: Arc<AtomicU32>,
}

impl Proxy {
    pub fn start(server_port: u16, cuts: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cuts = Arc::new(AtomicU32::new(cuts));
        let left = Arc::clone(&cuts);
        // Ends with the test process; nothing waits for it.
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)) else { return };
                let left = Arc::clone(&left);
                std::thread::spawn(move || pass(client, server, &left));
            }
        });
        Self { port, cuts }
    }
}

fn pass(mut client: TcpStream, mut server: TcpStream, cuts: &AtomicU32) {
    let (mut to_client, mut from_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from_server, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let mut copied = false;
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        let bytes = &buffer[..length];
        let has = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
        copied |= has(b"PGCOPY\n");
        let cut = copied
            && has(b"COMMIT\0")
            && cuts.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        if cut {
            // No answer passes any more, and then the commit is sent.
            let _ = client.shutdown(Shutdown::Both);
        }
        if server.write_all(bytes).is_err() {
            break;
        }
        if cut {
            std::thread::sleep(Duration::from_millis(300));
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}
