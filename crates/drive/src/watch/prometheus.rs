//! Serves the state of a run to Prometheus.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use sawmill_profile::Error;

use crate::observer::{Observer, Snapshot};
use crate::result::second::ChaosEvent;
use crate::watch::exposition::{Sums, exposition};

/// Answers `GET /metrics` with the state at the end of the last second, until it is dropped.
#[derive(Debug)]
pub struct Prometheus {
    address: SocketAddr,
    state: Arc<State>,
    sums: Sums,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    text: Mutex<String>,
    ended: AtomicBool,
}

/// A scraper that sends or takes nothing for this long is left alone.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest head of a request.
const MAX_LENGTH: usize = 8 * 1024;

impl Prometheus {
    /// Listens on `HOST:PORT`, or on `:PORT` of all interfaces. Port 0 takes any free one.
    ///
    /// # Errors
    /// The address is none, or is in use.
    pub fn listen(address: &str) -> Result<Self, Error> {
        let advice = "give an address such as :9400 or 127.0.0.1:9400";
        let failed = |error: std::io::Error| {
            Error::failed(
                format!("metrics cannot be served: {error}"),
                format!("--prometheus {address}"),
                advice,
            )
        };
        let listener = match address.strip_prefix(':') {
            Some(port) => {
                let port: u16 = port.parse().map_err(std::io::Error::other).map_err(failed)?;
                // Without IPv6, listen on all IPv4 interfaces.
                TcpListener::bind(("::", port)).or_else(|_| TcpListener::bind(("0.0.0.0", port)))
            }
            None => {
                let all = address.to_socket_addrs().map_err(failed)?;
                TcpListener::bind(all.collect::<Vec<_>>().as_slice())
            }
        }
        .map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let thread =
            std::thread::Builder::new().name("prometheus".into()).spawn(move || serve(&listener, &shared));
        Ok(Self { address: bound, state, sums: Sums::default(), thread: Some(thread.map_err(failed)?) })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.state.ended.store(true, Relaxed);
        // Wakes the thread that waits for a scraper; the loopback reaches a listener on all interfaces.
        let port = self.address.port();
        let host = if self.address.ip().is_unspecified() {
            "localhost".to_owned()
        } else {
            self.address.ip().to_string()
        };
        let woken = (host.as_str(), port).to_socket_addrs().is_ok_and(|mut all| {
            all.any(|address| TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok())
        });
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}

impl Observer for Prometheus {
    fn second(&mut self, snapshot: &Snapshot<'_>) {
        if let Some(server) = &snapshot.second.server {
            self.sums.wal += server.wal.unwrap_or(0);
            self.sums.checkpoints += server.checkpoints.unwrap_or(0);
        }
        let text = exposition(snapshot, &self.sums);
        *self.state.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn chaos(&mut self, _: &ChaosEvent) {
        self.sums.chaos += 1;
    }
}

fn serve(listener: &TcpListener, state: &State) {
    for stream in listener.incoming() {
        if state.ended.load(Relaxed) {
            return;
        }
        match stream {
            // A scraper that breaks off asks again.
            Ok(stream) => drop(answer(stream, state)),
            // Too many open files: another try later.
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn answer(mut stream: TcpStream, state: &State) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let mut part = [0u8; 1024];
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut part)? {
            0 => return Ok(()),
            count => head.extend_from_slice(part.get(..count).unwrap_or_default()),
        }
        if head.len() > MAX_LENGTH {
            return reply(&mut stream, "431 Request Header Fields Too Large", "", true);
        }
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.split_ascii_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    match (method, path) {
        ("GET" | "HEAD", "/metrics") => {
            let text = state.text.lock().unwrap_or_else(PoisonError::into_inner).clone();
            reply(&mut stream, "200 OK", &text, method == "GET")
        }
        ("GET" | "HEAD", _) => reply(&mut stream, "404 Not Found", "see /metrics\n", method == "GET"),
        _ => reply(&mut stream, "405 Method Not Allowed", "only GET and HEAD\n", true),
    }
}

fn reply(stream: &mut TcpStream, status: &str, body: &str, whole: bool) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if whole {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", address.port())).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn metrics_are_served_and_other_requests_are_answered() {
        let server = Prometheus::listen("127.0.0.1:0").unwrap();
        *server.state.text.lock().unwrap() = "a 1\n".into();
        let answer = ask(server.address(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("\r\n\r\na 1\n"), "{answer}");
        assert!(ask(server.address(), "GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(server.address(), "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(ask(server.address(), &"x".repeat(9000)).starts_with("HTTP/1.1 431"));
        let taken = Prometheus::listen(&server.address().to_string()).unwrap_err();
        assert!(taken.what().starts_with("metrics cannot be served"), "{taken}");
        let address = server.address();
        drop(server);
        assert!(TcpStream::connect(address).is_err(), "nothing listens after the run");
        assert!(Prometheus::listen("nonsense").is_err() && Prometheus::listen(":99999").is_err());
    }
}
