//! A server that starts up when a command connects for the first time: the command waits for it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sawmill_loader::LoadOptions;
use sawmill_pgwire::Server;
use sawmill_postgres::{Postgres, status, verify};
use sawmill_source::{Kind, ParquetFiles};

use crate::database::{Database, run, small, with_control};
use crate::fixture::people;

/// The answer of a server that starts up, to the question for TLS and to the login.
const STARTING: &[u8] = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0";

fn refuse(mut client: TcpStream) -> std::io::Result<()> {
    let length = (STARTING.len() as u32 + 4).to_be_bytes();
    for answer in [b"N".to_vec(), [b"E".as_slice(), &length, STARTING].concat()] {
        let mut length = [0; 4];
        client.read_exact(&mut length)?;
        client.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize - 4])?;
        client.write_all(&answer)?;
    }
    Ok(())
}

/// The address of a server that refuses the next `refusals` connections, then passes all on to the server at `url`.
fn starting(url: &str, refusals: u32) -> (String, Arc<AtomicU32>) {
    let (before, after) = url.split_once("@127.0.0.1:").unwrap();
    let (port, database) = after.split_once('/').unwrap();
    let port: u16 = port.parse().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("{before}@{}/{database}", listener.local_addr().unwrap());
    let left = Arc::new(AtomicU32::new(refusals));
    let counted = Arc::clone(&left);
    // Ends with the test process; nothing waits for it.
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            if left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
                // The client may have gone.
                let _ = refuse(client);
                continue;
            }
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { return };
            for (mut from, mut to) in [
                (client.try_clone().unwrap(), server.try_clone().unwrap()),
                (server.try_clone().unwrap(), client.try_clone().unwrap()),
            ] {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    (address, counted)
}

#[test]
fn a_server_that_starts_up_is_waited_for_by_every_command() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 300, 100);
    let source = ParquetFiles::open(&[&path]).unwrap();
    // Without retries: these are for lost connections.
    let options = LoadOptions { retries: 0, degree: 1, ..small() };
    let (address, left) = starting(&database.url, 2);
    let server: Server = address.parse().unwrap();
    let table = Postgres::new(server.clone(), "t".parse().unwrap());
    assert_eq!(run(&source, &table, &options).unwrap().rows, 300);
    assert_eq!(left.swap(2, Relaxed), 0);
    assert!(with_control(|control| verify(&source, &table, &options, control)).unwrap().matches());
    assert_eq!(left.swap(2, Relaxed), 0);
    assert_eq!(with_control(|control| status(&server, "_sawmill", None, control)).unwrap().len(), 1);
    assert_eq!(left.load(Relaxed), 0);
}

#[test]
fn a_server_that_does_not_start_is_given_up_after_the_patience() {
    let database = Database::new();
    let (address, _) = starting(&database.url, u32::MAX);
    let server: Server = address.parse().unwrap();
    let server = server.patience(Duration::from_millis(900));
    let started = Instant::now();
    let error = with_control(|control| status(&server, "_sawmill", None, control)).unwrap_err();
    assert!((900..5000).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
    assert_eq!(error.kind(), Kind::Server);
    assert!(error.what().contains("is starting up") && error.advice().contains("--patience"), "{error}");
}
