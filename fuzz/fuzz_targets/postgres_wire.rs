//! Any bytes as what a PostgreSQL server answers, in pieces of any size: the connection hands out the messages that
//! they are, up to the first that is refused, and ends with an error.
//!
//! The first byte chooses the connection, whether a login comes before the bytes, and the size of the pieces.
#![no_main]

mod reading;

use std::io::{ErrorKind, Write, copy, sink};
use std::net::Shutdown;
use std::os::unix::net::UnixListener;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use reading::{refusal, with_control};
use sawmill_pgwire::{BlockingConnection, Connection, Server, ServerReport, from_report};

/// A login without a password: it is in, two parameters, the key to cancel, ready.
const GREETING: &[u8] =
    b"R\0\0\0\x08\0\0\0\0S\0\0\0\x18server_version\x0016.1\0S\0\0\0\x19client_encoding\0UTF8\0\
                          K\0\0\0\x0c\0\0\0\x01\0\0\0\x02Z\0\0\0\x05I";

/// What the server sends, and in which pieces.
static SCRIPT: Mutex<(Vec<u8>, usize)> = Mutex::new((Vec::new(), 1));

/// A server that sends the script to each client and reads whatever the client sends.
static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("sawmill-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for a socket");
    let path = folder.join(".s.PGSQL.5432");
    drop(std::fs::remove_file(&path));
    let listener = UnixListener::bind(path).expect("a socket");
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.expect("a client");
            let (bytes, piece) = SCRIPT.lock().expect("no panic while it was held").clone();
            // The client may have gone.
            let _ = bytes.chunks(piece).try_for_each(|piece| client.write_all(piece));
            let _ = client.shutdown(Shutdown::Write);
            let _ = copy(&mut client, &mut sink());
        }
    });
    let address = format!("host={} port=5432 user=fuzz dbname=fuzz sslmode=disable", folder.display());
    address.parse().expect("an address")
});

/// The messages that bytes are.
fn messages(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let mut messages = Vec::new();
    while let [tag, a, b, c, d, rest @ ..] = bytes {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        let Some((body, after)) = length.checked_sub(4).and_then(|length| rest.split_at_checked(length))
        else {
            break;
        };
        messages.push((*tag, body));
        bytes = after;
    }
    messages
}

fn blocking(bytes: &[u8], greeted: bool, asks: bool) {
    let mut connection = match BlockingConnection::open(&SERVER, &|| false) {
        Ok(connection) => connection,
        Err(error) => {
            refusal(&error);
            assert!(!greeted, "{error}");
            return;
        }
    };
    if asks {
        if let Err(error) = connection.simple("SELECT 1", Duration::from_secs(5)) {
            refusal(&error);
        }
        return;
    }
    let mut received = Vec::new();
    let fault = loop {
        match connection.message(&mut || false) {
            Ok(message) => {
                received.push((message.tag, message.body.to_vec()));
                if message.tag == b'E' {
                    refusal(&from_report(&ServerReport::new(message.body), "here"));
                }
            }
            Err(error) => break error,
        }
    };
    if greeted {
        let sent = messages(bytes);
        assert!(
            received
                .iter()
                .map(|(tag, body)| (*tag, body.as_slice()))
                .eq(sent.iter().copied().take(received.len()))
        );
        let all = received.len() == sent.len();
        assert!(
            all || fault.kind() == ErrorKind::InvalidData,
            "{} of {}: {fault}",
            received.len(),
            sent.len()
        );
    }
}

fuzz_target!(|input: &[u8]| {
    let [choice, bytes @ ..] = input else { return };
    let greeted = choice & 1 > 0;
    let greeting = if greeted { GREETING } else { &[] };
    let server = &*SERVER;
    *SCRIPT.lock().expect("no panic while it was held") =
        ([greeting, bytes].concat(), 1 + usize::from(choice / 8) * 8);
    if choice & 2 > 0 {
        return blocking(bytes, greeted, choice & 4 > 0);
    }
    with_control(|control| {
        let asked = Connection::open(server, control).and_then(|connection| match choice & 4 > 0 {
            true => connection.batch(control, "SELECT 1"),
            false => connection.query(control, "SELECT $1", &[&"x"]).map(|rows| {
                rows.iter().for_each(|row| drop(connection.get::<&str>(row, 0)));
            }),
        });
        if let Err(error) = asked {
            refusal(&error);
        }
    });
});
