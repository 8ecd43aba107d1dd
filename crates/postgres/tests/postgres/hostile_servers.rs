//! Servers that mean harm: every kind of client ends with an error, in bounded memory, and in time.

use std::process::Command;
use std::time::{Duration, Instant};

use sawmill_loader::LoadOptions;
use sawmill_pgwire::{BlockingConnection, Server};
use sawmill_postgres::{Postgres, status, verify};
use sawmill_source::{Kind, ParquetFiles};

use crate::database::{Database, run, small, with_control};
use crate::fixture::people;
use crate::hostile::{WAYS, start};

/// KiB of address space that a client may take, its threads' stacks included.
const ADDRESS_SPACE: &str = "1048576";

/// Runs all clients against one server. Not a test:
/// [`every_client_survives_servers_that_claim_flood_and_fall_silent`] runs it with little memory.
#[test]
fn as_a_child_process() {
    let Ok(url) = std::env::var("SAWMILL_HOSTILE_URL") else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 100, 100);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let server: Server = url.parse().unwrap();
    let server = server.patience(Duration::from_millis(300));
    let table = Postgres::new(server.clone(), "t".parse().unwrap());
    let options = LoadOptions { retries: 0, degree: 1, ..small() };
    let clients: [(&str, &dyn Fn() -> Option<sawmill_source::Error>); 4] = [
        ("load", &|| run(&source, &table, &options).err()),
        ("verify", &|| with_control(|control| verify(&source, &table, &options, control)).err()),
        ("status", &|| with_control(|control| status(&server, "_sawmill", None, control)).err()),
        ("drive", &|| {
            let mut connection = match BlockingConnection::open(&server, &|| false) {
                Ok(connection) => connection,
                Err(error) => return Some(error),
            };
            let started = Instant::now();
            let error = connection.simple("SELECT 1", Duration::from_millis(500)).err();
            // Longer than the timeout, but not for the sixteen messages of a busy server.
            assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
            error
        }),
    ];
    for (name, client) in clients {
        let error = client().unwrap_or_else(|| panic!("{name} has found nothing wrong"));
        assert!(
            [Kind::Config, Kind::Connection, Kind::Server].contains(&error.kind())
                && !error.place().is_empty(),
            "{name}: {error}"
        );
        println!("{name}: {error}");
    }
}

#[test]
fn every_client_survives_servers_that_claim_flood_and_fall_silent() {
    std::thread::scope(|scope| {
        for way in WAYS {
            scope.spawn(move || {
                let url = format!("postgres://ann:secret@127.0.0.1:{}/d?connect_timeout=2", start(way));
                let started = Instant::now();
                let ended = Command::new("sh")
                    .args(["-c", &format!("ulimit -v {ADDRESS_SPACE}; exec \"$0\" \"$@\"")])
                    .arg(std::env::current_exe().unwrap())
                    .args(["--exact", "hostile_servers::as_a_child_process", "--nocapture"])
                    .env("SAWMILL_HOSTILE_URL", url)
                    // Each thread of the C library would reserve its own address space.
                    .env("MALLOC_ARENA_MAX", "2")
                    .output()
                    .unwrap();
                let said = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
                assert!(ended.status.success(), "{way}: {said}");
                // Each of the nine attempts of status has its time.
                assert!(
                    started.elapsed() < Duration::from_secs(180),
                    "{way}: {:?}\n{said}",
                    started.elapsed()
                );
            });
        }
    });
}

#[test]
fn a_server_that_lets_the_user_in_has_to_prove_itself_first() {
    let server: Server =
        format!("postgres://ann:secret@127.0.0.1:{}/d", start("lets in unproved")).parse().unwrap();
    let Err(error) = BlockingConnection::open(&server, &|| false) else { panic!("let in") };
    assert_eq!(error.kind(), Kind::Server);
    assert!(error.what().contains("before it has proved"), "{error}");
    let error = with_control(|control| status(&server, "_sawmill", None, control)).unwrap_err();
    assert!(error.what().contains("before it has proved"), "{error}");
}

#[test]
fn the_methods_that_the_user_requires_are_the_only_ones() {
    let database = Database::new();
    let address = |parameters: &str| format!("{}?{parameters}", database.url);
    let both = |parameters: &str| {
        let server: Server = address(parameters).parse().unwrap();
        let load = with_control(|control| status(&server, "_sawmill", None, control)).err();
        let drive = BlockingConnection::open(&server, &|| false).err();
        assert_eq!(load.as_ref().map(|error| error.what()), drive.as_ref().map(|error| error.what()));
        load.map(|error| error.what().to_owned()).unwrap_or_default()
    };
    for allowed in ["scram-sha-256", "md5,scram-sha-256", "!password", "!none,!md5"] {
        assert_eq!(both(&format!("require_auth={allowed}")), "", "{allowed}");
    }
    for refused in ["md5", "none", "!scram-sha-256", "password,gss"] {
        let error = both(&format!("require_auth={refused}"));
        assert!(error.contains(&format!("require_auth={refused} does not allow")), "{refused}: {error}");
    }
    // An unencrypted connection has no channel to bind to.
    assert!(both("channel_binding=require").contains("not encrypted"));
    assert_eq!(both("channel_binding=disable"), "");
}
