//! A PostgreSQL client that only sends pre-encoded rows, with one COPY per connection
//! (<https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-COPY>).

use std::io::{Read, Write};
use std::net::TcpStream;

use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};

/// A connection without TLS; authenticates with SCRAM if asked for a password.
pub struct CopyClient {
    stream: TcpStream,
    body: Vec<u8>,
}

/// The bytes of a binary COPY before its first row.
const HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

impl CopyClient {
    /// Opens a connection to `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
    pub fn connect(url: &str) -> Self {
        let rest = url.strip_prefix("postgres://").expect("a URL of PostgreSQL");
        let (who, place) = rest.split_once('@').expect("a user");
        let (user, password) = who.split_once(':').expect("a password");
        let (address, database) = place.split_once('/').expect("a database");
        let stream = TcpStream::connect(address).expect("the server accepts connections");
        stream.set_nodelay(true).expect("a socket has options");
        let mut client = Self { stream, body: Vec::new() };
        let startup = format!("\0\x03\0\0user\0{user}\0database\0{database}\0\0");
        client.write(&[&(startup.len() as u32 + 4).to_be_bytes(), startup.as_bytes()].concat());
        let mut scram = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
        loop {
            match client.read() {
                b'Z' => return client,
                b'R' => client.authenticate(&mut scram),
                _ => {}
            }
        }
    }

    fn authenticate(&mut self, scram: &mut ScramSha256) {
        let (kind, body) = self.body.split_first_chunk::<4>().expect("a kind of authentication");
        match u32::from_be_bytes(*kind) {
            0 => {}
            10 => {
                let first = scram.message();
                let length = (first.len() as u32).to_be_bytes();
                let reply = [SCRAM_SHA_256.as_bytes(), b"\0", &length, first].concat();
                self.write(&message(b'p', &reply));
            }
            11 => {
                scram.update(body).expect("the server knows the password");
                self.write(&message(b'p', scram.message()));
            }
            12 => scram.finish(body).expect("the server knows the password"),
            other => panic!("the server asks for authentication of kind {other}"),
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server listens");
    }

    /// Reads a message and returns its kind; a server error ends the benchmark.
    fn read(&mut self) -> u8 {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).expect("the server responds");
        let [kind, length @ ..] = head;
        self.body.resize((u32::from_be_bytes(length) as usize).saturating_sub(4), 0);
        self.stream.read_exact(&mut self.body).expect("the server responds");
        assert_ne!(kind, b'E', "{}", String::from_utf8_lossy(&self.body));
        kind
    }

    fn until(&mut self, kind: u8) {
        while self.read() != kind {}
    }

    /// Runs a statement and ignores its rows.
    pub fn run(&mut self, statement: &str) {
        self.write(&message(b'Q', &[statement.as_bytes(), b"\0"].concat()));
        self.until(b'Z');
    }

    /// Runs one `COPY ... FROM STDIN (FORMAT binary)` with all blocks.
    pub fn copy(&mut self, statement: &str, blocks: &[impl AsRef<[u8]>]) {
        self.write(&message(b'Q', &[statement.as_bytes(), b"\0"].concat()));
        self.until(b'G');
        self.write(&message(b'd', HEADER));
        for block in blocks {
            let block = block.as_ref();
            let mut head = [b'd'; 5];
            head[1..].copy_from_slice(&(block.len() as u32 + 4).to_be_bytes());
            self.write(&head);
            self.write(block);
        }
        self.write(&message(b'd', &(-1i16).to_be_bytes()));
        self.write(&message(b'c', b""));
        self.until(b'Z');
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], (body.len() as u32 + 4).to_be_bytes().as_slice(), body].concat()
}
