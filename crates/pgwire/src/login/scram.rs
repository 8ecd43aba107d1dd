//! The exchange that proves a password by SCRAM-SHA-256, and the server's identity with it
//! (<https://www.postgresql.org/docs/current/sasl-authentication.html>).

use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use sawmill_profile::Result;

use crate::login::requirements::{Binding, unmet};

/// How often the server may have the password hashed: PostgreSQL's default is 4,096, and a million takes most of a
/// second.
const MAX_ITERATIONS: u32 = 1_000_000;

pub(super) struct Scram {
    client: ScramSha256,
    /// The name of the mechanism that was chosen.
    pub mechanism: &'static str,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Begun,
    Answered,
    /// The server has also proved that it knows the password.
    Proved,
}

impl Scram {
    /// Chooses among the mechanisms that the server offers. `end_point` is the hash of its certificate, if the
    /// connection is encrypted.
    pub(super) fn new(
        offered: &[u8],
        password: &[u8],
        end_point: Option<&[u8]>,
        binding: Binding,
    ) -> Result<Self> {
        let offers = |name: &str| offered.split(|byte| *byte == 0).any(|offer| offer == name.as_bytes());
        let (plain, plus) = (offers(SCRAM_SHA_256), offers(SCRAM_SHA_256_PLUS));
        let end_point = end_point.filter(|_| binding != Binding::Disable);
        let (channel, mechanism) = match end_point {
            Some(hash) if plus => (ChannelBinding::tls_server_end_point(hash.to_vec()), SCRAM_SHA_256_PLUS),
            _ if binding == Binding::Require => {
                return Err(unmet(match end_point {
                    None => {
                        "channel_binding=require, but the connection is not encrypted, or by a certificate without a hash"
                    }
                    Some(_) => "channel_binding=require, but the server does not offer it",
                }));
            }
            // The server learns that it could have been bound: one that offered it notices who took the offer out.
            Some(_) if plain => (ChannelBinding::unrequested(), SCRAM_SHA_256),
            None if plain => (ChannelBinding::unsupported(), SCRAM_SHA_256),
            _ => return Err(unmet("the server offers no mechanism of SASL that is known")),
        };
        Ok(Self { client: ScramSha256::new(password, channel), mechanism, state: State::Begun })
    }

    /// The next message to send.
    pub(super) fn message(&self) -> &[u8] {
        self.client.message()
    }

    /// The server's first message.
    pub(super) fn update(&mut self, message: &[u8]) -> Result<()> {
        let text = std::str::from_utf8(message).unwrap_or_default();
        let iterations = text.split(',').find_map(|field| field.strip_prefix("i="));
        if iterations.is_none_or(|iterations| {
            iterations.parse().map_or(true, |iterations: u32| iterations > MAX_ITERATIONS)
        }) {
            return Err(unmet(format!(
                "the server wants the password hashed more than {MAX_ITERATIONS} times"
            )));
        }
        self.client.update(message).map_err(failed)?;
        self.state = State::Answered;
        Ok(())
    }

    /// The server's last message.
    pub(super) fn finish(&mut self, message: &[u8]) -> Result<()> {
        if self.state != State::Answered {
            return Err(unmet("the server's messages of SCRAM are out of order"));
        }
        self.client.finish(message).map_err(failed)?;
        self.state = State::Proved;
        Ok(())
    }

    /// Whether the server has proved that it knows the password.
    pub(super) fn is_proved(&self) -> bool {
        self.state == State::Proved
    }
}

fn failed(error: std::io::Error) -> sawmill_profile::Error {
    unmet(format!("the server cannot prove that it knows the password: {error}"))
}
