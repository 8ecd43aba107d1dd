//! Encrypted connections: every `sslmode` against a server with generated certificates.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use postgres::{Client, NoTls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use sawmill_loader::LoadOptions;
use sawmill_localpg::LocalPg;
use sawmill_pgwire::{BlockingConnection, Server};
use sawmill_postgres::Postgres;
use sawmill_source::ParquetFiles;

use crate::database::run;
use crate::fixture::people;

/// How long a statement may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Rows of the file that is loaded.
const ROWS: u64 = 500;

fn file(directory: &Path) -> ParquetFiles {
    let path = directory.join("people.parquet");
    people(&path, 0, ROWS as usize, 200);
    ParquetFiles::open(&[path]).unwrap()
}

/// Loads into a new table and verifies; the error if it fails.
fn load(url: &str, table: &str, source: &ParquetFiles) -> Result<u64, String> {
    let options = LoadOptions { verify: true, retries: 0, ..LoadOptions::default() };
    let target = Postgres::new(
        url.parse().map_err(|error: sawmill_source::Error| error.to_string())?,
        table.parse().unwrap(),
    );
    run(source, &target, &options).map(|report| report.rows).map_err(|error| error.to_string())
}

/// A server that has a certificate for `name`, and the files of authority and client.
struct Encrypted {
    server: LocalPg,
    files: tempfile::TempDir,
}

impl Encrypted {
    /// `None` if PostgreSQL was built without OpenSSL.
    fn start(name: &str, rules: &str) -> Option<Self> {
        let server = LocalPg::start().unwrap();
        let files = tempfile::tempdir().unwrap();
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap();
        fs::write(files.path().join("ca.crt"), authority.pem()).unwrap();
        let make = |directory: &Path, stem: &str, common_name: &str, names: Vec<String>| {
            let key = KeyPair::generate().unwrap();
            let mut parameters = CertificateParams::new(names).unwrap();
            parameters.distinguished_name.push(DnType::CommonName, common_name);
            let certificate = parameters.signed_by(&key, &authority).unwrap();
            fs::write(directory.join(format!("{stem}.crt")), certificate.pem()).unwrap();
            fs::write(directory.join(format!("{stem}.key")), key.serialize_pem()).unwrap();
        };
        let data = server.data_dir().to_owned();
        make(&data, "server", name, vec![name.to_owned()]);
        fs::write(data.join("ca.crt"), authority.pem()).unwrap();
        make(files.path(), "client", "sawmill", Vec::new());
        // Readable by the server's account; the key by that account only.
        let owner = fs::metadata(&data).unwrap();
        for file in ["server.crt", "server.key", "ca.crt"] {
            chown(data.join(file), Some(owner.uid()), Some(owner.gid())).unwrap();
            fs::set_permissions(data.join(file), fs::Permissions::from_mode(0o600)).unwrap();
        }
        fs::write(data.join("pg_hba.conf"), format!("local all all scram-sha-256\n{rules}\n")).unwrap();
        let mut client = Client::connect(&server.url(), NoTls).unwrap();
        for setting in [
            "ssl_cert_file = 'server.crt'",
            "ssl_key_file = 'server.key'",
            "ssl_ca_file = 'ca.crt'",
            "ssl = on",
        ] {
            if let Err(error) = client.batch_execute(&format!("ALTER SYSTEM SET {setting}")) {
                println!("skipped: this PostgreSQL has no TLS: {error}");
                return None;
            }
        }
        client.batch_execute("SELECT pg_reload_conf()").unwrap();
        drop(client);
        let on = || -> bool {
            let mut client = Client::connect(&server.socket_url(), NoTls).unwrap();
            client.query_one("SELECT current_setting('ssl')::bool", &[]).unwrap().get(0)
        };
        while !on() {
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Self { server, files })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// The address with another host and these parameters.
    fn url(&self, host: &str, parameters: &str) -> String {
        format!("{}?{parameters}", self.server.url().replace("127.0.0.1", host))
    }
}

/// The server accepts only encrypted connections.
const ENCRYPTED_ONLY: &str = "hostssl all all 127.0.0.1/32 scram-sha-256";

#[test]
fn a_server_that_accepts_only_encrypted_connections_is_loaded_unless_encryption_is_off() {
    let Some(encrypted) = Encrypted::start("localhost", ENCRYPTED_ONLY) else { return };
    let source = file(encrypted.files.path());
    for (parameters, table) in
        [("sslmode=prefer", "a"), ("sslmode=allow", "b"), ("sslmode=require", "c"), ("", "unasked")]
    {
        assert_eq!(load(&encrypted.url("127.0.0.1", parameters), table, &source), Ok(ROWS), "{parameters}");
    }
    let error = load(&encrypted.url("127.0.0.1", "sslmode=disable"), "e", &source).unwrap_err();
    assert!(error.contains("pg_hba.conf") && error.contains("no encryption"), "{error}");
}

#[test]
fn certificates_are_checked_against_authority_and_name() {
    let Some(encrypted) = Encrypted::start("localhost", ENCRYPTED_ONLY) else { return };
    let source = file(encrypted.files.path());
    let ca = format!("sslrootcert={}", encrypted.file("ca.crt").display());
    let load =
        |host: &str, parameters: &str, table: &str| load(&encrypted.url(host, parameters), table, &source);
    assert_eq!(load("localhost", &format!("sslmode=verify-full&{ca}"), "a"), Ok(ROWS));
    assert_eq!(load("127.0.0.1", &format!("sslmode=verify-ca&{ca}"), "b"), Ok(ROWS));
    let error = load("127.0.0.1", &format!("sslmode=verify-full&{ca}"), "c").unwrap_err();
    assert!(error.contains("not valid for name \"127.0.0.1\""), "{error}");
    // Neither the system's authorities nor another one has signed it.
    let other = Encrypted::start("localhost", ENCRYPTED_ONLY).unwrap();
    let other = format!("sslrootcert={}", other.file("ca.crt").display());
    for parameters in [
        "sslmode=verify-full&sslrootcert=system",
        &format!("sslmode=verify-full&{other}"),
        &format!("sslmode=verify-ca&{other}"),
        &format!("sslmode=require&{other}"),
    ] {
        let error = load("localhost", parameters, "d").unwrap_err();
        assert!(error.contains("invalid peer certificate") || error.contains("authorities"), "{error}");
    }
}

#[test]
fn a_client_authenticates_with_its_certificate() {
    let Some(encrypted) = Encrypted::start("localhost", "hostssl all all 127.0.0.1/32 cert") else { return };
    let source = file(encrypted.files.path());
    load(&encrypted.url("127.0.0.1", "sslmode=require"), "a", &source).unwrap_err();
    let shown = |name: &str| encrypted.file(name).display().to_string();
    let identity = format!("sslmode=require&sslcert={}&sslkey={}", shown("client.crt"), shown("client.key"));
    assert_eq!(load(&encrypted.url("127.0.0.1", &identity), "a", &source), Ok(ROWS));
}

/// The server's view of a blocking connection: whether it is encrypted, and the certificate's name.
fn blocking(url: &str) -> Result<(String, String), String> {
    let server: Server = url.parse().map_err(|error: sawmill_source::Error| error.to_string())?;
    let mut connection = BlockingConnection::open(&server, &|| false).map_err(|error| error.to_string())?;
    let asked = "SELECT ssl, coalesce(client_dn, '') FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let rows = connection.simple(asked, PATIENCE).map_err(|error| error.to_string())?;
    let mut fields = rows.into_iter().next().unwrap().into_iter().map(Option::unwrap);
    Ok((fields.next().unwrap(), fields.next().unwrap()))
}

#[test]
fn a_blocking_connection_is_encrypted_and_proves_its_password_by_scram() {
    let Some(encrypted) = Encrypted::start("localhost", ENCRYPTED_ONLY) else { return };
    for parameters in ["sslmode=prefer", "sslmode=allow", "sslmode=require", ""] {
        let (ssl, _) = blocking(&encrypted.url("127.0.0.1", parameters)).unwrap();
        assert_eq!(ssl, "t", "{parameters}");
    }
    let error = blocking(&encrypted.url("127.0.0.1", "sslmode=disable")).unwrap_err();
    assert!(error.contains("pg_hba.conf") && error.contains("no encryption"), "{error}");
    let error = blocking(&encrypted.url("127.0.0.1", "password=wrong")).unwrap_err();
    assert!(error.contains("28P01") && !error.contains("wrong"), "{error}");
    let ca = format!("sslrootcert={}", encrypted.file("ca.crt").display());
    assert!(blocking(&encrypted.url("localhost", &format!("sslmode=verify-full&{ca}"))).is_ok());
    assert!(blocking(&encrypted.url("127.0.0.1", &format!("sslmode=verify-ca&{ca}"))).is_ok());
    let error = blocking(&encrypted.url("127.0.0.1", &format!("sslmode=verify-full&{ca}"))).unwrap_err();
    assert!(error.contains("not valid for name \"127.0.0.1\""), "{error}");
    // Messages that are longer than a record of TLS, and a wait that is longer than a look at it.
    let server: Server = encrypted.url("127.0.0.1", "sslmode=require").parse().unwrap();
    let mut connection = BlockingConnection::open(&server, &|| false).unwrap();
    let long = format!("SELECT pg_sleep(0.3), length('{}'), repeat('y', 3000000)", "x".repeat(2_000_000));
    let rows = connection.simple(&long, PATIENCE).unwrap();
    assert_eq!(rows[0][1].as_deref(), Some("2000000"));
    assert_eq!(rows[0][2].as_ref().unwrap().len(), 3_000_000);
}

#[test]
fn a_password_exchange_is_bound_to_the_encrypted_channel() {
    let Some(encrypted) = Encrypted::start("localhost", ENCRYPTED_ONLY) else { return };
    let source = file(encrypted.files.path());
    for (parameters, table) in [
        ("channel_binding=require", "a"),
        ("channel_binding=prefer&require_auth=scram-sha-256", "b"),
        ("channel_binding=disable", "c"),
    ] {
        let url = encrypted.url("127.0.0.1", &format!("sslmode=require&{parameters}"));
        assert_eq!(load(&url, table, &source), Ok(ROWS), "{parameters}");
        assert!(blocking(&url).is_ok(), "{parameters}");
    }
}

#[test]
fn a_blocking_connection_authenticates_with_a_certificate() {
    let Some(encrypted) = Encrypted::start("localhost", "hostssl all all 127.0.0.1/32 cert") else { return };
    blocking(&encrypted.url("127.0.0.1", "sslmode=require")).unwrap_err();
    let shown = |name: &str| encrypted.file(name).display().to_string();
    let identity = format!("sslmode=require&sslcert={}&sslkey={}", shown("client.crt"), shown("client.key"));
    let (ssl, name) = blocking(&encrypted.url("127.0.0.1", &identity)).unwrap();
    assert!(ssl == "t" && name.contains("sawmill"), "{name}");
}

#[test]
fn a_blocking_connection_does_without_encryption_where_the_server_has_none() {
    let server = LocalPg::start().unwrap();
    assert_eq!(blocking(&server.url()).unwrap().0, "f");
    assert_eq!(blocking(&server.socket_url()).unwrap().0, "f");
    let error = blocking(&format!("{}?sslmode=require", server.url())).unwrap_err();
    assert!(error.contains("does not support TLS"), "{error}");
}

#[test]
fn a_server_without_tls_is_loaded_unless_encryption_is_required() {
    let server = LocalPg::start().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let source = file(directory.path());
    assert_eq!(load(&server.url(), "a", &source), Ok(ROWS));
    let error = load(&format!("{}?sslmode=require", server.url()), "b", &source).unwrap_err();
    assert!(error.contains("does not support TLS"), "{error}");
    // A Unix socket is never encrypted, and never needs to be.
    assert_eq!(load(&format!("{}&sslmode=require", server.socket_url()), "c", &source), Ok(ROWS));
}
