//! A proxy in front of an S3 server. It counts requests, and refuses, delays or cuts some of them, or forwards
//! them without returning the answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What happens to a request.
#[derive(Clone, Debug)]
pub enum Fate {
    /// The server answers it.
    Forwarded,
    /// The server answers it after this many milliseconds.
    Late(u64),
    /// It is refused with 503 SlowDown.
    Throttled,
    /// It is refused with 400 ExpiredToken.
    Expired,
    /// The connection breaks in the middle of its body.
    Cut,
    /// The server carries out the request, but its answer is lost.
    AnswerLost,
    /// The server answers it, and a bit of the last byte of its answer changes.
    Flipped,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sent {
    pub method: String,
    /// Path and query.
    pub target: String,
}

impl Sent {
    pub fn is_put(&self) -> bool {
        self.method == "PUT"
    }

    /// Whether it sends a part of an upload.
    pub fn is_part(&self) -> bool {
        self.is_put() && self.target.contains("partNumber=")
    }

    /// Whether it completes an upload.
    pub fn completes(&self) -> bool {
        self.method == "POST" && self.target.contains("uploadId=")
    }
}

type Decide = dyn Fn(&Sent, usize) -> Fate + Send + Sync;

/// The proxy. It serves until the process ends.
pub struct Proxy {
    pub endpoint: String,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Proxy {
    /// Forwards to `endpoint`; `decide` takes each request and the number of requests before it.
    pub fn before(endpoint: &str, decide: impl Fn(&Sent, usize) -> Fate + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = format!("http://{}", listener.local_addr().unwrap());
        let server = endpoint.trim_start_matches("http://").to_owned();
        let sent: Arc<Mutex<Vec<Sent>>> = Arc::default();
        let (decide, log): (Arc<Decide>, _) = (Arc::new(decide), Arc::clone(&sent));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (server, decide, log) = (server.clone(), Arc::clone(&decide), Arc::clone(&log));
                // A client that goes away ends its own connection alone.
                std::thread::spawn(move || stream.map(|stream| pass(&stream, &server, &*decide, &log)));
            }
        });
        Self { endpoint: own, sent }
    }

    pub fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }
}

/// Passes one request on, and ends the connection.
fn pass(mut client: &TcpStream, server: &str, decide: &Decide, log: &Mutex<Vec<Sent>>) -> Option<()> {
    let mut lines = BufReader::new(client);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if lines.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut words = head.split_whitespace();
    let sent = Sent { method: words.next()?.to_owned(), target: words.next()?.to_owned() };
    let length = head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let before = {
        let mut log = log.lock().unwrap();
        log.push(sent.clone());
        log.len() - 1
    };
    let fate = decide(&sent, before);
    let length = length.unwrap_or(0);
    if let Fate::Cut = fate {
        let mut half = vec![0; length / 2];
        lines.read_exact(&mut half).ok()?;
        return client.shutdown(Shutdown::Both).ok();
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body).ok()?;
    match fate {
        Fate::Late(milliseconds) => std::thread::sleep(Duration::from_millis(milliseconds)),
        Fate::Throttled | Fate::Expired => {
            let (status, code, message) = match fate {
                Fate::Expired => ("400 Bad Request", "ExpiredToken", "The provided token has expired."),
                _ => ("503 Slow Down", "SlowDown", "Reduce your rate"),
            };
            let body = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
            let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
            return write!(client, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).ok();
        }
        _ => {}
    }
    let mut forward = TcpStream::connect(server).ok()?;
    let (first, rest) = head.split_once("\r\n")?;
    forward.write_all(format!("{first}\r\nConnection: close\r\n{rest}").as_bytes()).ok()?;
    forward.write_all(&body).ok()?;
    let mut answer = Vec::new();
    forward.read_to_end(&mut answer).ok()?;
    if let (Fate::Flipped, Some(last)) = (&fate, answer.last_mut()) {
        *last ^= 1;
    }
    match fate {
        Fate::AnswerLost => client.shutdown(Shutdown::Both).ok(),
        _ => client.write_all(&answer).ok(),
    }
}
