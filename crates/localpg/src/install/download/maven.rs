//! Zonky's builds of PostgreSQL on Maven Central: the published versions, and their archives.

use std::env::consts;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use sha2::{Digest, Sha512};
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// The folder of Zonky's builds.
pub(super) const ZONKY: &str = "https://repo1.maven.org/maven2/io/zonky/test/postgres";

/// The largest archive to accept. PostgreSQL 18's have 10 to 13 MB.
const MAX_SIZE: u64 = 256 << 20;

/// The largest list of versions or checksum to accept.
const MAX_TEXT_SIZE: u64 = 1 << 20;

/// Waits before further attempts after a failure that may pass.
const WAITS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];

/// The builds for this system, in a repository.
pub(super) struct Builds {
    agent: Agent,
    url: String,
    artifact: String,
    waits: &'static [Duration],
}

impl Builds {
    /// The builds below the URL `folder`.
    pub(super) fn of_this_system(folder: &str) -> Self {
        let artifact = format!("embedded-postgres-binaries-{}", system(consts::OS, consts::ARCH));
        Self { agent: agent(), url: format!("{folder}/{artifact}"), artifact, waits: &WAITS }
    }

    /// The newest release of a major version.
    pub(super) fn newest(&self, major: u32) -> Result<String, String> {
        let metadata = self.text(&format!("{}/maven-metadata.xml", self.url))?;
        newest(&metadata, major)
            .map(str::to_owned)
            .ok_or_else(|| format!("{} has no release of PostgreSQL {major}", self.url))
    }

    /// The archive of a version, whose SHA-512 is the published one.
    pub(super) fn archive(&self, version: &str) -> Result<Vec<u8>, String> {
        let url = format!("{}/{version}/{}-{version}.jar", self.url, self.artifact);
        let published = self.text(&format!("{url}.sha512"))?;
        let archive = self.get(&url, MAX_SIZE)?;
        let actual: String = Sha512::digest(&archive).iter().map(|byte| format!("{byte:02x}")).collect();
        if published.trim().eq_ignore_ascii_case(&actual) {
            return Ok(archive);
        }
        Err(format!("the SHA-512 of {url} is {actual}, the published one is {}", published.trim()))
    }

    fn text(&self, url: &str) -> Result<String, String> {
        String::from_utf8(self.get(url, MAX_TEXT_SIZE)?).map_err(|_| format!("{url} is not UTF-8"))
    }

    /// A whole resource, requested again after failures that may pass.
    fn get(&self, url: &str, largest: u64) -> Result<Vec<u8>, String> {
        let mut waits = self.waits.iter();
        loop {
            let body = self
                .agent
                .get(url)
                .call()
                .and_then(|mut response| response.body_mut().with_config().limit(largest).read_to_vec());
            let error = match body {
                Ok(body) => return Ok(body),
                Err(error) => error,
            };
            match waits.next() {
                Some(wait) if may_pass(&error) => sleep(*wait),
                _ => return Err(format!("{url}: {error}")),
            }
        }
    }
}

/// A client that trusts the system's root certificates and uses the proxy that the environment names.
fn agent() -> Agent {
    let found = rustls_native_certs::load_native_certs().certs;
    let roots: Vec<_> = found.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::new_with_certs(&roots))
        .build();
    Agent::config_builder()
        .tls_config(tls)
        .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(Duration::from_secs(30)))
        .timeout_per_read(Some(Duration::from_secs(60)))
        .build()
        .new_agent()
}

/// Whether a later attempt may succeed: the server is overloaded, or the connection broke.
fn may_pass(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::StatusCode(status) => matches!(status, 408 | 429 | 500..),
        ureq::Error::Io(_) | ureq::Error::Timeout(_) | ureq::Error::ConnectionFailed => true,
        _ => false,
    }
}

/// The last part of an artifact's name.
fn system(os: &str, arch: &str) -> String {
    let os = if os == "macos" { "darwin" } else { os };
    let arch = match arch {
        "arm" => "arm32v7",
        "x86_64" => "amd64",
        "aarch64" => "arm64v8",
        "powerpc64" => "ppc64le",
        "x86" => "i386",
        arch => arch,
    };
    format!("{os}-{arch}")
}

/// The newest release of a major version in an artifact's metadata. Its `<version>` elements hold nothing but
/// a number, so that they need no XML parser.
fn newest(metadata: &str, major: u32) -> Option<&str> {
    let versions = metadata.split("<version>").skip(1).filter_map(|rest| rest.split_once("</version>"));
    versions
        .filter_map(|(version, _)| Some((numbers(version.trim())?, version.trim())))
        .filter(|([first, ..], _)| *first == major)
        .max_by_key(|(numbers, _)| *numbers)
        .map(|(_, version)| version)
}

/// The numbers of a release like `18.4.0`; `None` for previews, which have more than numbers.
fn numbers(version: &str) -> Option<[u32; 3]> {
    let numbers: Vec<u32> = version.split('.').map(|number| number.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use super::*;

    /// Builds at a server on this machine, which answers one connection after the other: a status and a body.
    fn served(answers: Vec<(u16, Vec<u8>)>) -> (Builds, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = format!("http://{}/zonky", listener.local_addr().unwrap());
        let serve = move || {
            let answer = |(status, body): (u16, Vec<u8>)| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = BufReader::new(&stream).lines().map_while(Result::ok);
                let first = request.next().unwrap();
                request.take_while(|line| !line.is_empty()).for_each(drop);
                let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n", body.len());
                stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).unwrap();
                stream.write_all(&body).unwrap();
                first
            };
            answers.into_iter().map(answer).collect()
        };
        let config = Agent::config_builder().proxy(None).build();
        let builds = Builds {
            agent: config.new_agent(),
            url: format!("{folder}/pg"),
            artifact: "pg".to_owned(),
            waits: &[Duration::ZERO],
        };
        (builds, std::thread::spawn(serve))
    }

    fn versions(versions: &[&str]) -> Vec<u8> {
        let list: String = versions.iter().map(|v| format!("      <version>{v}</version>\n")).collect();
        format!("<metadata>\n<latest>19.0.0</latest>\n<versions>\n{list}</versions></metadata>").into_bytes()
    }

    #[test]
    fn the_newest_release_of_a_major_version_is_chosen_by_its_numbers() {
        let list =
            versions(&["9.5.5-2", "18.9.0", "18.10.0", "18.11.0-beta1", "18.2.0", "180.1.0", "19.0.0"]);
        let (builds, server) = served(vec![(200, list)]);
        assert_eq!(builds.newest(18).unwrap(), "18.10.0");
        assert_eq!(server.join().unwrap(), ["GET /zonky/pg/maven-metadata.xml HTTP/1.1"]);
    }

    #[test]
    fn a_missing_major_version_is_an_error() {
        let (builds, _server) = served(vec![(200, versions(&["17.4.0"]))]);
        assert!(builds.newest(18).unwrap_err().ends_with("/zonky/pg has no release of PostgreSQL 18"));
    }

    #[test]
    fn an_archive_with_the_published_checksum_is_accepted() {
        let checksum = Sha512::digest(b"the archive").iter().map(|b| format!("{b:02X}")).collect::<String>();
        let (builds, server) =
            served(vec![(200, format!("{checksum}\n").into_bytes()), (200, b"the archive".to_vec())]);
        assert_eq!(builds.archive("18.4.0").unwrap(), b"the archive");
        assert_eq!(
            server.join().unwrap(),
            [
                "GET /zonky/pg/18.4.0/pg-18.4.0.jar.sha512 HTTP/1.1",
                "GET /zonky/pg/18.4.0/pg-18.4.0.jar HTTP/1.1"
            ]
        );
    }

    #[test]
    fn an_archive_with_another_checksum_is_rejected() {
        let (builds, _server) = served(vec![(200, b"00ff".to_vec()), (200, b"the archive".to_vec())]);
        let error = builds.archive("18.4.0").unwrap_err();
        assert!(
            error.contains("pg-18.4.0.jar is ") && error.ends_with("the published one is 00ff"),
            "{error}"
        );
    }

    #[test]
    fn an_overloaded_server_is_asked_again_and_a_missing_file_is_not() {
        let (builds, server) = served(vec![(503, Vec::new()), (200, versions(&["18.4.0"]))]);
        assert_eq!(builds.newest(18).unwrap(), "18.4.0");
        assert_eq!(server.join().unwrap().len(), 2);
        let (builds, server) = served(vec![(404, Vec::new())]);
        assert!(builds.newest(18).unwrap_err().contains("404"));
        assert_eq!(server.join().unwrap().len(), 1);
    }

    #[test]
    fn a_body_that_breaks_off_is_requested_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/x", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            for body in ["half", "the whole"] {
                let (mut stream, _) = listener.accept().unwrap();
                BufReader::new(&stream)
                    .lines()
                    .map_while(Result::ok)
                    .take_while(|l| !l.is_empty())
                    .for_each(drop);
                write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{body}").unwrap();
            }
        });
        let (builds, _) = served(Vec::new());
        assert_eq!(builds.get(&url, 9).unwrap(), b"the whole");
        server.join().unwrap();
    }

    #[test]
    fn systems_have_the_names_that_zonky_uses() {
        assert_eq!(system("linux", "x86_64"), "linux-amd64");
        assert_eq!(system("macos", "aarch64"), "darwin-arm64v8");
    }
}
