//! Servers that answer over HTTP as it suits them: every client ends with an error, and in time.

use std::io::{Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use sawmill_cratedb::{CrateDb, CrateReply, CrateStatements, Transport};
use sawmill_loader::{LoadOptions, load};
use sawmill_profile::Profile;
use sawmill_source::Control;

use crate::cluster::{keyed, people};

const WAYS: [&str; 9] = [
    "interim answers without end",
    "headers without end",
    "a header without end",
    "claims exabytes",
    "claims a chunk of exabytes",
    "chunks without end",
    "the length of a chunk without end",
    "an error without end",
    "says nothing",
];

fn start(way: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // Ends with the test process; nothing waits for it.
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // The client has gone.
            std::thread::spawn(move || drop(serve(client, way)));
        }
    });
    port
}

fn flood(client: &mut TcpStream, bytes: &[u8]) -> Result<()> {
    let many = bytes.repeat(1 + 60_000 / bytes.len());
    loop {
        client.write_all(&many)?;
    }
}

fn serve(mut client: TcpStream, way: &str) -> Result<()> {
    client.read_exact(&mut [0; 1])?;
    let ok = b"HTTP/1.1 200 OK\r\n";
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    match way {
        "interim answers without end" => flood(&mut client, b"HTTP/1.1 100 Continue\r\n\r\n"),
        "headers without end" => {
            client.write_all(ok)?;
            flood(&mut client, &[b"X-A: ".as_slice(), &[b'y'; 8000], b"\r\n"].concat())
        }
        "a header without end" => {
            client.write_all(&[ok, b"X: ".as_slice()].concat())?;
            flood(&mut client, b"y")
        }
        "claims exabytes" => {
            client.write_all(&[ok, b"Content-Length: 9000000000000000000\r\n\r\n{".as_slice()].concat())?;
            flood(&mut client, b"y")
        }
        "claims a chunk of exabytes" => {
            client.write_all(&[chunked, b"ffffffffffffffff\r\n".as_slice()].concat())?;
            flood(&mut client, b"y")
        }
        "chunks without end" => {
            client.write_all(chunked)?;
            flood(&mut client, &[b"1000\r\n".as_slice(), &[b' '; 4096], b"\r\n"].concat())
        }
        "the length of a chunk without end" => {
            client.write_all(chunked)?;
            flood(&mut client, b"0")
        }
        "an error without end" => {
            client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")?;
            flood(&mut client, b"y")
        }
        _ => std::io::copy(&mut client, &mut std::io::sink()).map(drop),
    }
}

#[test]
fn answers_over_http_that_do_not_end_are_given_up() {
    std::thread::scope(|scope| {
        for way in WAYS {
            scope.spawn(move || {
                let address = format!("crate://127.0.0.1:{}/doc?timeout=2", start(way));
                let started = Instant::now();
                let (cancel, phase) = (AtomicBool::new(false), Profile::new().phase("load"));
                // What load tests send their statements by.
                let mut statements =
                    CrateStatements::new(&address.parse().unwrap(), Duration::from_secs(2), 1 << 20).unwrap();
                let reply = statements.send(b"{\"stmt\":\"select 1\"}", &cancel);
                let expected = matches!(reply, CrateReply::Unknown(_))
                    || way == "an error without end" && matches!(reply, CrateReply::Refused(..));
                assert!(expected, "{way}: {reply:?}");
                let (_kept, source) = people(3);
                let target = CrateDb::new(address.parse().unwrap(), "t".parse().unwrap());
                let options = LoadOptions { patience: Duration::ZERO, retries: 0, ..LoadOptions::default() };
                let error = load(
                    &source,
                    &target.options(keyed(Transport::Http)),
                    &options,
                    &Control::new(&cancel, &phase),
                );
                let error = error.expect_err(way);
                assert!(!error.place().is_empty(), "{way}: {error}");
                assert!(started.elapsed() < Duration::from_secs(60), "{way}: {:?}", started.elapsed());
            });
        }
    });
}
