//! A session's start: the messages of a login, one after the other
//! (<https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-START-UP>).

use postgres_protocol::authentication::md5_hash;
use sawmill_profile::{Error, Kind, Result};
use tokio_postgres::Config;

use crate::login::requirements::{Binding, Method, Requirements, unmet};
use crate::login::scram::Scram;
use crate::server_error::from_report;
use crate::server_report::ServerReport;

/// Protocol 3.0.
const PROTOCOL: [u8; 4] = [0, 3, 0, 0];

/// A login that is under way.
pub(super) struct Login<'a> {
    pub config: &'a Config,
    pub requirements: &'a Requirements,
    /// The hash of the server's certificate, if the connection is encrypted.
    pub end_point: Option<Vec<u8>>,
    pub scram: Option<Scram>,
    /// A password was sent.
    pub asked: bool,
    /// The server has let the user in.
    pub is_in: bool,
}

impl Login<'_> {
    fn user(&self) -> &str {
        self.config.get_user().unwrap_or("postgres")
    }

    /// The first message.
    pub(super) fn start(&self) -> Vec<u8> {
        let config = self.config;
        let mut body = PROTOCOL.to_vec();
        for (name, value) in [
            ("client_encoding", Some("UTF8")),
            ("user", Some(self.user())),
            ("database", config.get_dbname()),
            ("options", config.get_options()),
            ("application_name", config.get_application_name()),
        ] {
            let Some(value) = value else { continue };
            for text in [name, value] {
                body.extend_from_slice(text.as_bytes());
                body.push(0);
            }
        }
        body.push(0);
        let mut out = (body.len() as u32 + 4).to_be_bytes().to_vec();
        out.extend_from_slice(&body);
        out
    }

    /// The answer to a demand of the server: `R` with this body. Empty if there is nothing to answer.
    pub(super) fn prove(&mut self, body: &[u8]) -> Result<Vec<u8>> {
        let (code, rest) = body.split_first_chunk::<4>().unwrap_or((&[255; 4], &[]));
        match u32::from_be_bytes(*code) {
            0 => self.let_in().map(|()| Vec::new()),
            3 => {
                self.allow(Method::Password)?;
                Ok(answer(&[self.password()?, &[0]]))
            }
            5 => {
                self.allow(Method::Md5)?;
                let salt = rest.first_chunk::<4>().copied().unwrap_or_default();
                let hash = md5_hash(self.user().as_bytes(), self.password()?, salt);
                Ok(answer(&[hash.as_bytes(), &[0]]))
            }
            10 => {
                self.requirements.allow(Method::Scram)?;
                let scram =
                    Scram::new(rest, self.password()?, self.end_point.as_deref(), self.requirements.binding)?;
                let first = scram.message();
                let length = (first.len() as u32).to_be_bytes();
                let out = answer(&[scram.mechanism.as_bytes(), &[0], &length, first]);
                self.scram = Some(scram);
                Ok(out)
            }
            11 => {
                let scram = self.scram.as_mut().ok_or_else(out_of_order)?;
                scram.update(rest)?;
                Ok(answer(&[scram.message()]))
            }
            12 => {
                self.scram.as_mut().ok_or_else(out_of_order)?.finish(rest)?;
                Ok(Vec::new())
            }
            7 | 8 => self.unsupported("GSSAPI", Method::Gss),
            9 => self.unsupported("SSPI", Method::Sspi),
            other => self.unsupported(&format!("method {other}"), Method::Gss),
        }
    }

    fn allow(&mut self, method: Method) -> Result<()> {
        self.requirements.allow(method)?;
        if self.requirements.binding == Binding::Require {
            return Err(unmet("channel_binding=require, but the server asks for a password without SCRAM"));
        }
        self.asked = true;
        Ok(())
    }

    fn unsupported(&self, name: &str, method: Method) -> Result<Vec<u8>> {
        self.requirements.allow(method)?;
        Err(Error::new(Kind::Server, format!("authentication by {name} is not supported"))
            .advise("let the server ask for scram-sha-256, md5 or a plain password (pg_hba.conf)"))
    }

    fn password(&self) -> Result<&[u8]> {
        self.config.get_password().ok_or_else(|| {
            Error::new(Kind::Server, "the server asks for a password, but none is set")
                .advise("give it in the address, PGPASSWORD or ~/.pgpass (with permissions 600)")
        })
    }

    /// The server says that the user is in.
    fn let_in(&mut self) -> Result<()> {
        match &self.scram {
            Some(scram) if !scram.is_proved() => {
                return Err(unmet(
                    "the server lets the user in before it has proved that it knows the password: it may be another one",
                ));
            }
            None if self.requirements.binding == Binding::Require => {
                return Err(unmet("channel_binding=require, but the server lets the user in without SCRAM"));
            }
            None if !self.asked => self.requirements.allow(Method::None)?,
            _ => {}
        }
        self.is_in = true;
        Ok(())
    }
}

/// The error for a server's refusal of a login.
pub(super) fn refused(body: &[u8]) -> Error {
    from_report(&ServerReport::new(body), "")
}

pub(super) fn out_of_order() -> Error {
    unmet("the server's messages of the login are out of order")
}

fn answer(parts: &[&[u8]]) -> Vec<u8> {
    let length = 4 + parts.iter().map(|part| part.len()).sum::<usize>();
    let mut out = vec![b'p'];
    out.extend_from_slice(&(length as u32).to_be_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}
