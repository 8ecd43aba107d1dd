//! A server that speaks PostgreSQL's protocol as far as it suits it.

use std::io::{Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// The server's ways to misbehave. Those that begin with `later` act after the login.
pub const WAYS: [&str; 13] = [
    "claims a gigabyte",
    "parameters without end",
    "parameters without end once in",
    "notices without end",
    "lets in unproved",
    "wants four billion hashes",
    "says nothing",
    "later claims a gigabyte",
    "later parameters without end",
    "later notices without end",
    "later a notice each second",
    "later rows without end",
    "later says nothing",
];

/// Starts one that does this; returns its port.
pub fn start(way: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // Ends with the test process; nothing waits for it.
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || {
                // The client has gone.
                let _ = serve(client, way);
            });
        }
    });
    port
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], (body.len() as u32 + 4).to_be_bytes().as_slice(), body].concat()
}

fn demand(code: u32, body: &[u8]) -> Vec<u8> {
    message(b'R', &[&code.to_be_bytes(), body].concat())
}

fn read(client: &mut TcpStream, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    client.read_exact(&mut bytes).map(|()| bytes)
}

fn read_body(client: &mut TcpStream) -> Result<Vec<u8>> {
    let length = u32::from_be_bytes(read(client, 4)?.try_into().unwrap());
    read(client, length as usize - 4)
}

fn flood(client: &mut TcpStream, bytes: &[u8]) -> Result<()> {
    let many = bytes.repeat(1 + 60_000 / bytes.len());
    loop {
        client.write_all(&many)?;
    }
}

fn serve(mut client: TcpStream, way: &str) -> Result<()> {
    // A question for TLS is answered with no.
    while read_body(&mut client)?.starts_with(&[4, 210, 22, 47]) {
        client.write_all(b"N")?;
    }
    let parameter = |name: &str, value: &str| message(b'S', format!("{name}\0{value}\0").as_bytes());
    let large = parameter(&"x".repeat(1000), &"y".repeat(3000));
    let notice = message(b'N', format!("SNOTICE\0C00000\0M{}\0\0", "n".repeat(1000)).as_bytes());
    let is_in = demand(0, b"");
    let ready = [
        is_in.as_slice(),
        &parameter("server_version", "18.1"),
        &parameter("client_encoding", "UTF8"),
        &message(b'K', &[0; 8]),
        &message(b'Z', b"I"),
    ]
    .concat();
    match way {
        "claims a gigabyte" => client.write_all(b"R\x40\0\0\0")?,
        "parameters without end" => flood(&mut client, &large)?,
        "parameters without end once in" => {
            client.write_all(&is_in)?;
            flood(&mut client, &large)?;
        }
        "notices without end" => flood(&mut client, &notice)?,
        "lets in unproved" | "wants four billion hashes" => {
            client.write_all(&demand(10, b"SCRAM-SHA-256\0\0"))?;
            read(&mut client, 1)?;
            let first = String::from_utf8(read_body(&mut client)?).unwrap_or_default();
            let nonce = first.split("r=").nth(1).unwrap_or_default();
            let iterations = if way == "lets in unproved" { 4096 } else { 4_000_000_000u32 };
            let challenge = format!("r={nonce}abc,s=c2FsdHNhbHRzYWx0c2FsdA==,i={iterations}");
            client.write_all(&demand(11, challenge.as_bytes()))?;
            read(&mut client, 1)?;
            read_body(&mut client)?;
            client.write_all(&ready)?;
        }
        "says nothing" => {}
        later => {
            client.write_all(&ready)?;
            read(&mut client, 1)?;
            match later {
                "later claims a gigabyte" => client.write_all(b"D\x3f\xff\xff\xff\0")?,
                "later parameters without end" => {
                    let mut number = 0;
                    loop {
                        number += 1;
                        client.write_all(&parameter(&format!("p{number}"), &"y".repeat(3000)))?;
                    }
                }
                "later notices without end" => flood(&mut client, &notice)?,
                "later a notice each second" => loop {
                    client.write_all(&notice)?;
                    std::thread::sleep(Duration::from_secs(1));
                },
                "later rows without end" => {
                    client.write_all(&message(
                        b'T',
                        b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0",
                    ))?;
                    flood(&mut client, &message(b'D', b"\0\x01\0\0\0\x01t"))?;
                }
                _ => {}
            }
        }
    }
    // The server does not answer the client's other messages.
    std::io::copy(&mut client, &mut std::io::sink()).map(drop)
}
