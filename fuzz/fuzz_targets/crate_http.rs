//! Any bytes as CrateDB's answer over HTTP: the reply does not depend on the pieces in which the bytes arrive, and
//! its messages can be shown. The first byte chooses a head before the bytes, and the size of the pieces.
#![no_main]

use std::io::{Write, copy, sink};
use std::net::{Shutdown, TcpListener};
use std::sync::atomic::AtomicBool;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use sawmill_cratedb::{CrateReply, CrateServer, CrateStatements};

const HEADS: [&[u8]; 4] = [
    b"",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n\r\n{\"error\":{\"message\":\"",
];

/// What the server sends, and in which pieces.
static SCRIPT: Mutex<(Vec<u8>, usize)> = Mutex::new((Vec::new(), 1));

/// A server that sends the script to each client and reads whatever the client sends.
static SERVER: LazyLock<CrateServer> = LazyLock::new(|| {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a bound port").port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.expect("a client");
            let (bytes, piece) = SCRIPT.lock().expect("no panic while it was held").clone();
            // The client may have gone.
            let _ = client.set_nodelay(true);
            let _ = bytes.chunks(piece).try_for_each(|piece| client.write_all(piece));
            let _ = client.shutdown(Shutdown::Write);
            let _ = copy(&mut client, &mut sink());
        }
    });
    format!("crate://127.0.0.1:{port}/doc").parse().expect("an address")
});

fn reply(bytes: &[u8], piece: usize) -> CrateReply {
    *SCRIPT.lock().expect("no panic while it was held") = (bytes.to_vec(), piece);
    let statements = CrateStatements::new(&SERVER, Duration::from_secs(5));
    statements
        .expect("an address without certificates")
        .send(b"{\"stmt\":\"SELECT 1\"}", &AtomicBool::new(false))
}

fuzz_target!(|input: &[u8]| {
    let [choice, bytes @ ..] = input else { return };
    let sent = [HEADS[usize::from(choice % 4)], bytes].concat();
    let whole = reply(&sent, sent.len().max(1));
    assert_eq!(whole, reply(&sent, 1 + usize::from(choice / 4)), "in pieces");
    match whole {
        CrateReply::Done(body) => assert!(body.len() <= sent.len()),
        CrateReply::Refused(_, what) => {
            assert!(!what.is_empty() && !what.chars().any(char::is_control), "{what:?}")
        }
        CrateReply::NotSent(what) | CrateReply::Unknown(what) => assert!(!what.is_empty()),
    }
});
