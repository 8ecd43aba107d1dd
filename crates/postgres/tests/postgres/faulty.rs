//! A TCP proxy that cuts a connection, or swallows what passes over it, after a number of bytes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// A fault of one of the connections.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Which of them, from 0, since the fault was set.
    pub connection: u32,
    /// Whether it affects bytes from the server, or bytes to the server.
    pub from_server: bool,
    /// After this many bytes.
    pub after: usize,
    /// Nothing passes any more, and nothing is closed; otherwise both ends are closed.
    pub swallows: bool,
}

#[derive(Default)]
struct State {
    fault: Mutex<Option<Fault>>,
    connections: AtomicU32,
    met: AtomicU32,
}

pub struct FaultyProxy {
    pub port: u16,
    state: Arc<State>,
}

impl FaultyProxy {
    pub fn start(server_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::<State>::default();
        let of_proxy = Arc::clone(&state);
        // Ends with the test process; nothing waits for it.
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)) else { return };
                let number = of_proxy.connections.fetch_add(1, Relaxed);
                for from_server in [false, true] {
                    let (client, server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                    let state = Arc::clone(&of_proxy);
                    let ends = if from_server { (server, client) } else { (client, server) };
                    std::thread::spawn(move || pass(ends, number, from_server, &state));
                }
            }
        });
        Self { port, state }
    }

    /// In front of the server of this address; and the address that leads through it.
    pub fn before(url: &str) -> (Self, String) {
        let (before, after) = url.split_once("@127.0.0.1:").unwrap();
        let (port, rest) = after.split_once('/').unwrap();
        let proxy = Self::start(port.parse().unwrap());
        let url = format!("{before}@127.0.0.1:{}/{rest}", proxy.port);
        (proxy, url)
    }

    /// Sets what happens next; connections are counted from here on.
    pub fn set(&self, fault: Fault) {
        self.state.connections.store(0, Relaxed);
        self.state.met.store(0, Relaxed);
        *self.state.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }

    /// Nothing passes over the first connection any more, from the server or to it.
    pub fn silence_first(&self, from_server: bool) {
        let fault = Fault { connection: 0, from_server, after: 0, swallows: true };
        *self.state.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }

    /// Whether the fault has happened.
    pub fn met(&self) -> bool {
        self.state.met.load(Relaxed) > 0
    }
}

fn pass((mut from, mut to): (TcpStream, TcpStream), number: u32, from_server: bool, state: &State) {
    let mut passed = 0;
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let fault = *state.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = fault.filter(|fault| fault.connection == number && fault.from_server == from_server);
        let left = mine.map_or(length, |fault| fault.after.saturating_sub(passed).min(length));
        passed += left;
        if to.write_all(&buffer[..left]).is_err() {
            break;
        }
        if left == length {
            continue;
        }
        state.met.fetch_add(1, Relaxed);
        if mine.is_some_and(|fault| fault.swallows) {
            // Until one of the ends closes.
            while let Ok(1..) = from.read(&mut buffer) {}
        }
        break;
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
