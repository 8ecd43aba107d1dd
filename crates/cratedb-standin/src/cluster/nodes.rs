//! Nodes: threads that accept connections at a port, until they are stopped.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::Shared;
use crate::{http, pg};

#[derive(Default)]
pub(super) struct Node {
    port: u16,
    alive: Arc<AtomicBool>,
    requests: u64,
    connections: Vec<TcpStream>,
}

impl Shared {
    /// Adds a node at a port that the system chooses.
    pub(crate) fn add_node(self: &Arc<Self>) {
        let listener = bind(0);
        let mut nodes = self.lock();
        let number = nodes.len();
        nodes.push(Node { port: port_of(&listener), ..Node::default() });
        drop(nodes);
        self.listen(number, listener);
    }

    pub(crate) fn listen(self: &Arc<Self>, number: usize, listener: TcpListener) {
        let alive = Arc::new(AtomicBool::new(true));
        if let Some(node) = self.lock().get_mut(number) {
            node.alive = Arc::clone(&alive);
        }
        let shared = Arc::clone(self);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if !alive.load(Relaxed) {
                    return;
                }
                let Ok(kept) = stream.try_clone() else { continue };
                if let Some(node) = shared.lock().get_mut(number) {
                    node.requests += 1;
                    node.connections.push(kept);
                }
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &shared, number));
            }
        });
    }

    /// Serves the PostgreSQL protocol of the first node; returns the port. Ends with the test's process: no
    /// thread joins it.
    pub(crate) fn listen_pg(self: &Arc<Self>) -> u16 {
        let listener = bind(0);
        let port = port_of(&listener);
        let shared = Arc::clone(self);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten().filter(|_| shared.alive(0)) {
                let shared = Arc::clone(&shared);
                if let (Ok(kept), Some(node)) = (stream.try_clone(), shared.lock().first_mut()) {
                    node.connections.push(kept);
                }
                std::thread::spawn(move || {
                    let closed = stream.try_clone();
                    pg::serve(stream, &shared, 0);
                    // The node holds another handle to it. It may already be closed.
                    let _ = closed.and_then(|stream| stream.shutdown(Shutdown::Both));
                });
            }
        });
        port
    }

    pub(crate) fn alive(&self, node: usize) -> bool {
        self.lock().get(node).is_some_and(|node| node.alive.load(Relaxed))
    }

    /// Closes a node's connections and accepts no new ones.
    pub(crate) fn stop(&self, node: usize) {
        let mut nodes = self.lock();
        let Some(node) = nodes.get_mut(node) else { return };
        node.alive.store(false, Relaxed);
        for connection in node.connections.drain(..) {
            // It may already be closed.
            let _ = connection.shutdown(Shutdown::Both);
        }
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(("127.0.0.1", node.port));
    }

    /// The HTTP ports of all nodes.
    pub(crate) fn ports(&self) -> Vec<u16> {
        self.lock().iter().map(|node| node.port).collect()
    }

    pub(crate) fn port(&self, node: usize) -> u16 {
        self.lock().get(node).map_or(0, |node| node.port)
    }

    /// The number of connections that a node has accepted.
    pub(crate) fn connections(&self, node: usize) -> u64 {
        self.lock().get(node).map_or(0, |node| node.requests)
    }
}

/// Serves one HTTP connection, with TLS if the cluster has a certificate.
fn serve(stream: TcpStream, shared: &Shared, node: usize) {
    match &shared.tls {
        None => http::serve(&stream, shared, node),
        Some(config) => {
            if let Ok(connection) = rustls::ServerConnection::new(Arc::clone(config)) {
                http::serve(rustls::StreamOwned::new(connection, &stream), shared, node);
            }
        }
    }
    // The node holds another handle to it. It may already be closed.
    let _ = stream.shutdown(Shutdown::Both);
}

/// Binds a local port, retrying because a recently used port may take a while.
///
/// # Panics
/// If the port stays taken for five seconds. The stand-in serves tests only, and a test cannot go on without
/// it.
pub(crate) fn bind(port: u16) -> TcpListener {
    for _ in 0..100 {
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return listener;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("local port {port} cannot be bound, and the test needs it");
}

fn port_of(listener: &TcpListener) -> u16 {
    listener.local_addr().map_or(0, |address| address.port())
}
