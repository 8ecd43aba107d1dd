//! A cluster's address: `crate://user:password@host:4200,host2:4200/schema?option=value`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use sawmill_source::{Error, Kind, Result};

/// Where to connect to, and as whom. `Debug` and errors never show the password.
#[derive(Clone)]
pub struct CrateServer {
    pub(crate) nodes: Vec<Node>,
    pub(crate) user: String,
    pub(crate) password: Option<String>,
    /// The schema of tables that name none.
    pub(crate) schema: String,
    pub(crate) tls: Option<TlsFiles>,
    /// Port of the PostgreSQL wire, on the same hosts.
    pub(crate) pg_port: u16,
    /// How long an answer may take at most, whatever the server works on.
    pub(crate) timeout: Option<Duration>,
}

/// One node's HTTP endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub host: String,
    pub port: u16,
}

/// Files of certificates, in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// Certificate authorities that may sign the server's certificate; by default the system's.
    pub authorities: Option<PathBuf>,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

impl std::fmt::Display for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl std::fmt::Display for CrateServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, node) in self.nodes.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{node}")?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for CrateServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CrateServer({self}, user {:?}, schema {:?})", self.user, self.schema)
    }
}

impl CrateServer {
    /// Whether an address is one of CrateDB.
    pub fn understands(address: &str) -> bool {
        address.starts_with("crate://") || address.starts_with("crates://")
    }

    /// The address without password, options and certificates: `crate://user@host:4200,host2:4200/schema`.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "crates" } else { "crate" };
        let user = if self.user == "crate" { String::new() } else { format!("{}@", self.user) };
        let nodes: Vec<String> = self.nodes.iter().map(Node::to_string).collect();
        format!("{scheme}://{user}{}/{}", nodes.join(","), self.schema)
    }

    /// Where a node on this host listens for HTTP; `None` if all of them are elsewhere.
    pub fn local_listener(&self) -> Option<sawmill_profile::Target> {
        let local =
            self.nodes.iter().find(|node| ["localhost", "127.0.0.1", "::1"].contains(&node.host.as_str()));
        local.map(|node| sawmill_profile::Target::TcpPort(node.port))
    }
}

impl FromStr for CrateServer {
    type Err = Error;

    /// Parses `crate://user:password@host:port,host:port/schema` (`crates://` for TLS). User, password and
    /// schema may be percent-encoded. Defaults: user `crate`, port 4200, schema `doc`. Options:
    ///
    /// - `ssl=true`: TLS;
    /// - `ca=FILE`: certificates that the server's must be signed by, `cert=FILE` and `key=FILE`: the
    ///   client's own, all in PEM;
    /// - `pg_port=N`: port of the PostgreSQL wire, 5432 by default;
    /// - `timeout=SECONDS`: how long an answer may take at most, even if the server still works on it; no limit by
    ///   default.
    fn from_str(address: &str) -> Result<Self> {
        let refused = |what: String| {
            Error::new(Kind::Config, what)
                .advise("give crate://user:password@host:4200,host2:4200/schema?ssl=true")
        };
        let (scheme, rest) = match address.split_once("://") {
            Some((scheme @ ("crate" | "crates"), rest)) => (scheme, rest),
            _ => return Err(refused("the address does not begin with crate:// or crates://".to_owned())),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, schema) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match credentials.split_once(':') {
            Some((user, password)) => (user, Some(decode(password).map_err(&refused)?)),
            None => (credentials, None),
        };
        let nodes = hosts.split(',').map(|host| node(host).map_err(&refused)).collect::<Result<_>>()?;
        let schema = schema.trim_end_matches('/');
        let mut server = Self {
            nodes,
            user: if user.is_empty() { "crate".to_owned() } else { decode(user).map_err(&refused)? },
            password,
            schema: if schema.is_empty() { "doc".to_owned() } else { decode(schema).map_err(&refused)? },
            tls: (scheme == "crates").then(TlsFiles::default),
            pg_port: 5432,
            timeout: None,
        };
        let mut files = TlsFiles::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(value).map_err(&refused)?;
            let number = |what: &str| refused(format!("{name}={value} is not {what}"));
            match name {
                "ssl" => match value.as_str() {
                    "true" | "1" | "" => server.tls = server.tls.or(Some(TlsFiles::default())),
                    "false" | "0" => server.tls = None,
                    _ => return Err(number("true or false")),
                },
                "ca" => files.authorities = Some(value.into()),
                "cert" => files.certificate = Some(value.into()),
                "key" => files.key = Some(value.into()),
                "pg_port" => server.pg_port = value.parse().map_err(|_| number("a port"))?,
                "timeout" => {
                    let seconds: u32 = value.parse().map_err(|_| number("a number of seconds"))?;
                    server.timeout = Some(Duration::from_secs(seconds.max(1).into()));
                }
                _ => {
                    return Err(refused(format!(
                        "unknown option {name:?}: the options are ssl, ca, cert, key, pg_port and timeout"
                    )));
                }
            }
        }
        if files.certificate.is_some() != files.key.is_some() {
            return Err(refused("cert and key go together".to_owned()));
        }
        if files != TlsFiles::default() {
            match &mut server.tls {
                Some(tls) => *tls = files,
                None => {
                    return Err(refused(
                        "ca, cert and key need TLS: write crates:// or ?ssl=true".to_owned(),
                    ));
                }
            }
        }
        Ok(server)
    }
}

fn node(text: &str) -> Result<Node, String> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err("the address names no host".to_owned());
    }
    let port = port.map_or(Ok(4200), |port| port.parse().map_err(|_| format!("{port:?} is not a port")))?;
    Ok(Node { host: host.to_owned(), port })
}

/// Undoes percent-encoding (RFC 3986, 2.1).
fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, more)) = rest.split_first() {
        match (byte, more) {
            (b'%', [high, low, more @ ..]) => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (Some(high), Some(low)) = (digit(*high), digit(*low)) else {
                    return Err("a % in the address is not followed by two hexadecimal digits".to_owned());
                };
                bytes.push((high * 16 + low) as u8);
                rest = more;
            }
            (b'%', _) => {
                return Err("a % in the address is not followed by two hexadecimal digits".to_owned());
            }
            (byte, more) => {
                bytes.push(*byte);
                rest = more;
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| "the address is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_hosts_a_user_and_a_schema_are_understood() {
        let server: CrateServer =
            "crate://me:p%40ss@a:4201,b,[::1]:4300/my%20schema?pg_port=6543".parse().unwrap();
        let nodes: Vec<String> = server.nodes.iter().map(Node::to_string).collect();
        assert_eq!(nodes, ["a:4201", "b:4200", "[::1]:4300"]);
        assert_eq!((server.user.as_str(), server.password.as_deref()), ("me", Some("p@ss")));
        assert_eq!((server.schema.as_str(), server.pg_port, server.tls.clone()), ("my schema", 6543, None));
        assert!(!format!("{server:?} {server}").contains("p@ss"));
    }

    #[test]
    fn omitted_parts_have_defaults() {
        let server: CrateServer = "crate://localhost".parse().unwrap();
        assert_eq!((server.user.as_str(), server.schema.as_str()), ("crate", "doc"));
        assert_eq!(server.nodes[0].port, 4200);
    }

    #[test]
    fn scheme_or_option_turns_tls_on() {
        for address in [
            "crates://h?ca=/ca.pem&cert=/c.pem&key=/k.pem",
            "crate://h/doc?ssl=true&ca=/ca.pem&cert=/c.pem&key=/k.pem",
        ] {
            let server: CrateServer = address.parse().unwrap();
            assert_eq!(server.tls.unwrap().authorities, Some("/ca.pem".into()));
        }
        assert!("crates://h".parse::<CrateServer>().unwrap().tls.is_some());
    }

    #[test]
    fn invalid_addresses_are_refused_without_showing_the_password() {
        for address in [
            "http://h",
            "crate://",
            "crate://u:secret@h:port",
            "crate://u:secret@h?colour=red",
            "crate://u:secret@h?ssl=maybe",
            "crate://u:secret@h?ca=/x.pem",
            "crates://u:secret@h?cert=/x.pem",
            "crate://u:sec%ret@h",
        ] {
            let error = address.parse::<CrateServer>().unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
