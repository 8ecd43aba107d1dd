//! The beginning of a session: startup, authentication, parameters.

use std::io;
use std::time::{Duration, Instant};

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use sawmill_source::{Error, Kind, Result};
use tokio_postgres::Config;

use crate::blocking::messages::{BlockingConnection, ServerReport, push};

/// Protocol 3.0.
const PROTOCOL: [u8; 4] = [0, 3, 0, 0];

/// Begins the session that `config` describes.
pub(super) fn log_in(connection: &mut BlockingConnection, config: &Config, timeout: Duration) -> Result<()> {
    let place = connection.place().to_owned();
    let end = Instant::now() + timeout;
    let lost =
        |error: io::Error| Error::new(Kind::Connection, format!("cannot connect: {error}")).at(place.clone());
    let no_password = || {
        Error::new(Kind::Server, "the server asks for a password, but none is set")
            .at(place.clone())
            .advise("give it in the address, PGPASSWORD or ~/.pgpass (with permissions 600)")
    };
    let user = config.get_user().unwrap_or("postgres").to_owned();
    start(connection, config, &user);
    connection.send().map_err(lost)?;
    let mut scram: Option<ScramSha256> = None;
    loop {
        let message = connection.message(&mut || Instant::now() >= end).map_err(lost)?;
        let (tag, body) = (message.tag, message.body.to_vec());
        match tag {
            b'R' => {
                let (code, rest) = body.split_first_chunk::<4>().unwrap_or((&[255; 4], &[]));
                let password = || config.get_password().ok_or_else(no_password);
                match u32::from_be_bytes(*code) {
                    0 => continue,
                    3 => {
                        let password = password()?.to_vec();
                        answer(connection, &[&password, &[0]]);
                    }
                    5 => {
                        let salt = rest.first_chunk::<4>().copied().unwrap_or_default();
                        let hash = md5_hash(user.as_bytes(), password()?, salt);
                        answer(connection, &[hash.as_bytes(), &[0]]);
                    }
                    10 => {
                        let client = ScramSha256::new(password()?, ChannelBinding::unsupported());
                        let first = client.message().to_vec();
                        let length = (first.len() as u32).to_be_bytes();
                        answer(connection, &[SCRAM_SHA_256.as_bytes(), &[0], &length, &first]);
                        scram = Some(client);
                    }
                    11 => {
                        let Some(client) = &mut scram else { return Err(unexpected(&place)) };
                        client.update(rest).map_err(lost)?;
                        let next = client.message().to_vec();
                        answer(connection, &[&next]);
                    }
                    12 => {
                        let Some(client) = &mut scram else { return Err(unexpected(&place)) };
                        client.finish(rest).map_err(lost)?;
                        continue;
                    }
                    other => {
                        return Err(Error::new(
                            Kind::Server,
                            format!("authentication method {other} is not supported"),
                        )
                        .at(place)
                        .advise(
                            "let the server ask for scram-sha-256, md5 or a plain password (pg_hba.conf)",
                        ));
                    }
                }
                connection.send().map_err(lost)?;
            }
            b'S' => {
                let mut texts =
                    body.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
                if let (Some(name), Some(value)) = (texts.next(), texts.next()) {
                    connection.parameters.push((name, value));
                }
            }
            b'E' => {
                let report = ServerReport::of(&body);
                let starting = report.code.starts_with("57P") || report.code == "53300";
                let kind = if starting { Kind::Connection } else { Kind::Server };
                return Err(Error::new(
                    kind,
                    format!("the server says: {} [{}]", report.message, report.code),
                )
                .at(place)
                .advise("check user, password and the server's pg_hba.conf"));
            }
            b'Z' => return Ok(()),
            b'K' | b'N' | b'v' => {}
            _ => return Err(unexpected(&place)),
        }
    }
}

fn unexpected(place: &str) -> Error {
    Error::new(Kind::Config, "the server does not speak the PostgreSQL protocol")
        .at(place)
        .advise("check the port")
}

fn start(connection: &mut BlockingConnection, config: &Config, user: &str) {
    let mut body = PROTOCOL.to_vec();
    let mut parameter = |name: &str, value: &str| {
        for text in [name, value] {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
    };
    parameter("client_encoding", "UTF8");
    parameter("user", user);
    for (name, value) in [
        ("database", config.get_dbname()),
        ("options", config.get_options()),
        ("application_name", config.get_application_name()),
    ] {
        if let Some(value) = value {
            parameter(name, value);
        }
    }
    body.push(0);
    connection.out.clear();
    connection.out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    connection.out.extend_from_slice(&body);
}

fn answer(connection: &mut BlockingConnection, parts: &[&[u8]]) {
    connection.out.clear();
    push(&mut connection.out, b'p', |out| parts.iter().for_each(|part| out.extend_from_slice(part)));
}
