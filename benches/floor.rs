//! A client that only sends: the requests of a load, prepared beforehand, over several connections.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use sawmill_cratedb::{CrateDb, Transport};
use sawmill_loader::{Block, LoadOptions};
use sawmill_source::{ParquetFiles, Source};

/// The column of batch tags.
const TAG: &str = "\"sawmill_batch\"";
/// The type of a tag in the PostgreSQL protocol.
const INT8: u32 = 20;

/// The requests and their destination.
pub struct Floor {
    http: String,
    pg: String,
    ddl: String,
    /// Whole HTTP requests, or `Bind`, `Execute` and `Sync` of the PostgreSQL protocol.
    requests: Vec<Vec<u8>>,
    /// `Parse` of the statement, if the requests use that protocol.
    parse: Option<Vec<u8>>,
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    message.extend_from_slice(body);
    message
}

fn post(body: &[&[u8]]) -> Vec<u8> {
    let length: usize = body.iter().map(|piece| piece.len()).sum();
    let head = format!(
        "POST /_sql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    [&[head.as_bytes()], body].concat().concat()
}

/// Encodes all rows like the loader, and hands out each block.
fn each_block(
    target: &CrateDb,
    source: &ParquetFiles,
    loading: &LoadOptions,
    by_column: bool,
    mut take: impl FnMut(Block),
) {
    let mut keep = |block: Block| {
        take(block);
        Ok(())
    };
    let mut encoder =
        target.encoder(source, loading.batch_bytes, by_column).expect("every column has a type");
    let mut reader = source.reader(loading.batch_rows);
    for unit in source.plan(loading.unit_rows).into_iter().flatten() {
        reader.start(&unit).expect("the file can be read");
        encoder.begin_unit(&unit);
        while let Some(batch) = reader.next_batch().expect("the file can be read") {
            encoder.encode(&batch, &mut keep).expect("every value can be encoded");
        }
        encoder.end_unit(&mut keep).expect("the rows can be sent");
    }
}

impl Floor {
    /// Encodes all rows like the loader.
    pub fn new(
        url: &str,
        target: &CrateDb,
        source: &ParquetFiles,
        loading: &LoadOptions,
        transport: Transport,
    ) -> Self {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let http = rest.split(['/', '?']).next().unwrap_or_default();
        let http = http.rsplit('@').next().unwrap_or_default().split(',').next().unwrap_or_default();
        let host = http.split(':').next().unwrap_or_default();
        let port =
            url.split_once("pg_port=").map_or("5432", |(_, rest)| rest.split('&').next().unwrap_or(rest));
        let mut floor = Self {
            http: if http.contains(':') { http.to_owned() } else { format!("{http}:4200") },
            pg: format!("{host}:{port}"),
            // As while rows gather.
            ddl: target.ddl(source).expect("every column has a type").replacen(
                "(\n",
                &format!("(\n  {TAG} BIGINT INDEX OFF,\n"),
                1,
            ),
            requests: Vec::new(),
            parse: None,
        };
        let names = source.schema().fields().iter().map(|field| format!("\"{}\"", field.name()));
        let names: Vec<String> = names.collect();
        match transport {
            Transport::Pg => floor.encode_columns(target, source, loading, &names),
            _ => floor.encode_rows(target, source, loading, &names),
        }
        floor
    }

    fn encode_rows(
        &mut self,
        target: &CrateDb,
        source: &ParquetFiles,
        loading: &LoadOptions,
        names: &[String],
    ) {
        let head = |tag: usize| {
            let statement = format!(
                "INSERT INTO \"doc\".\"sawmill_floor\" ({},{TAG}) VALUES ({},{tag})",
                names.join(","),
                vec!["?"; names.len()].join(",")
            );
            format!("{{\"stmt\":\"{}\",\"bulk_args\":[", statement.replace('"', "\\\""))
        };
        each_block(target, source, loading, false, |block| {
            let head = head(self.requests.len());
            self.requests.push(post(&[head.as_bytes(), &block.bytes, b"]}"]));
        });
    }

    fn encode_columns(
        &mut self,
        target: &CrateDb,
        source: &ParquetFiles,
        loading: &LoadOptions,
        names: &[String],
    ) {
        let places =
            |mark: &str| (1..=names.len()).map(|i| format!("{mark}{i}")).collect::<Vec<_>>().join(", ");
        let statement = format!(
            "INSERT INTO \"doc\".\"sawmill_floor\" ({}, {TAG}) (SELECT {}, ${} FROM UNNEST({}) AS \"u\" ({}))",
            names.join(", "),
            places("c"),
            names.len() + 1,
            places("$"),
            places("c")
        );
        let mut blocks: Vec<Vec<bytes::Bytes>> = Vec::new();
        each_block(target, source, loading, true, |block| {
            blocks.extend(block.marks.map(|marks| marks.columns));
        });
        // An array contains its element type (array_send in PostgreSQL's arrayfuncs.c).
        let array_type = |bytes: &[u8]| match bytes.get(8..12) {
            Some([.., 16]) => 1000u32,
            Some([.., 20]) => 1016,
            Some([.., 21]) => 1005,
            Some([.., 23]) => 1007,
            Some([.., 2, 189]) => 1022,
            Some([.., 4, 90]) => 1115,
            _ => 1015,
        };
        let arrays = blocks.first().into_iter().flatten().map(|bytes| array_type(bytes));
        let types: Vec<u32> = arrays.chain([INT8]).collect();
        let mut parse = [b"s\0", statement.as_bytes(), b"\0"].concat();
        parse.extend_from_slice(&(types.len() as u16).to_be_bytes());
        types.iter().for_each(|oid| parse.extend_from_slice(&oid.to_be_bytes()));
        self.parse = Some([message(b'P', &parse), message(b'S', b"")].concat());
        for block in blocks {
            // An unnamed portal, all parameters in binary, no results.
            let mut bind = b"\0s\0\0\x01\0\x01".to_vec();
            bind.extend_from_slice(&(block.len() as u16 + 1).to_be_bytes());
            for column in &block {
                bind.extend_from_slice(&(column.len() as u32).to_be_bytes());
                bind.extend_from_slice(column);
            }
            bind.extend_from_slice(&8u32.to_be_bytes());
            bind.extend_from_slice(&(self.requests.len() as u64).to_be_bytes());
            bind.extend_from_slice(&[0, 0]);
            let request = [message(b'B', &bind), message(b'E', &[0; 5]), message(b'S', b"")];
            self.requests.push(request.concat());
        }
    }

    fn statement(&self, text: &str) {
        let body = format!("{{\"stmt\":\"{}\"}}", text.replace('"', "\\\"").replace('\n', " "));
        let mut stream = TcpStream::connect(&self.http).expect("the server accepts connections");
        stream.write_all(&post(&[body.as_bytes()])).expect("the statement can be sent");
        answer(&mut stream, &mut Vec::new());
    }

    /// Empties the table.
    pub fn clear(&self) {
        self.drop();
        self.statement(&self.ddl);
    }

    /// Drops the table.
    pub fn drop(&self) {
        self.statement("DROP TABLE IF EXISTS \"doc\".\"sawmill_floor\"");
    }

    /// Makes all rows visible, which the server otherwise does within a second.
    pub fn refresh(&self) {
        self.statement("REFRESH TABLE \"doc\".\"sawmill_floor\"");
    }

    /// Sends all requests and waits for all responses.
    pub fn send(&self, connections: usize) {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut room = Vec::new();
            let mut stream = match &self.parse {
                None => TcpStream::connect(&self.http).expect("the server accepts connections"),
                Some(parse) => self.open(parse, &mut room),
            };
            stream.set_nodelay(true).expect("a socket has options");
            while let Some(request) = self.requests.get(next.fetch_add(1, Relaxed)) {
                stream.write_all(request).expect("the request can be sent");
                match self.parse {
                    None => answer(&mut stream, &mut room),
                    Some(_) => ready(&mut stream, &mut room),
                }
            }
        };
        std::thread::scope(|scope| (0..connections).for_each(|_| _ = scope.spawn(work)));
    }

    /// A connection of the PostgreSQL protocol with the statement prepared.
    fn open(&self, parse: &[u8], room: &mut Vec<u8>) -> TcpStream {
        let mut stream = TcpStream::connect(&self.pg).expect("the server accepts connections");
        let startup = b"\0\x03\0\0user\0crate\0database\0doc\0\0";
        let mut first = (startup.len() as u32 + 4).to_be_bytes().to_vec();
        first.extend_from_slice(startup);
        stream.write_all(&first).expect("the message can be sent");
        ready(&mut stream, room);
        stream
            .write_all(&message(b'Q', b"SET SESSION insert_select_fail_fast = true\0"))
            .expect("it can be sent");
        ready(&mut stream, room);
        stream.write_all(parse).expect("the message can be sent");
        ready(&mut stream, room);
        stream
    }
}

/// Reads a response, examining only its status and length.
fn answer(stream: &mut TcpStream, room: &mut Vec<u8>) {
    room.resize(1 << 16, 0);
    let (mut filled, mut end) = (0, None);
    while end.is_none_or(|end| filled < end) {
        if filled == room.len() {
            room.resize(filled * 2, 0);
        }
        let read = stream.read(&mut room[filled..]).expect("the server responds");
        assert!(read > 0, "the connection broke");
        filled += read;
        if end.is_none()
            && let Some(head) = room[..filled].windows(4).position(|four| four == b"\r\n\r\n")
        {
            let text = String::from_utf8_lossy(&room[..head]).to_lowercase();
            assert!(text.starts_with("http/1.1 200"), "{}", String::from_utf8_lossy(&room[..filled]));
            let length = text.split("content-length:").nth(1).and_then(|rest| rest.split_whitespace().next());
            let length: usize =
                length.and_then(|length| length.parse().ok()).expect("the response has a length");
            end = Some(head + 4 + length);
        }
    }
}

/// Reads messages until the server is ready.
fn ready(stream: &mut TcpStream, room: &mut Vec<u8>) {
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).expect("the server responds");
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        room.resize(length.saturating_sub(4), 0);
        stream.read_exact(room).expect("the server responds");
        assert_ne!(head[0], b'E', "{}", String::from_utf8_lossy(room));
        if head[0] == b'Z' {
            return;
        }
    }
}
