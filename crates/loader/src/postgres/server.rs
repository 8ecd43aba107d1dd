//! A server's address: a URL or libpq keywords, and what libpq takes from the environment.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::{password_file, sslmode};
use crate::error::{Error, Kind, Result};

/// Where to connect to, and as whom. `Debug` and errors never show the password.
#[derive(Clone)]
pub struct Server {
    pub(crate) config: Config,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) timeout: Duration,
    /// How connections are encrypted; whether a server that cannot do that is refused is `ssl_mode` of
    /// `config`. Unix sockets are never encrypted.
    pub(crate) tls: Option<Arc<ClientConfig>>,
    /// Parameters of the server that are set on each connection.
    pub(crate) settings: Vec<(String, String)>,
}

/// One way to reach the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({self})")
    }
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, endpoint) in self.endpoints.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{endpoint}")?;
        }
        match self.config.get_dbname() {
            Some(name) => write!(f, ", database {name:?}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Server {
    type Err = Error;

    /// Parses `postgres://user:password@host:port/database?...` or `host=... port=... dbname=...`
    /// (<https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING>). What is not
    /// named comes from `PGHOST`, `PGPORT`, `PGUSER`, `PGPASSWORD`, `PGDATABASE`, the password file
    /// (`PGPASSFILE`, `~/.pgpass`) and libpq's defaults: a local Unix socket if there is one, else
    /// localhost, port 5432, the name of the user; so do `PGOPTIONS` and `PGCONNECT_TIMEOUT`. `sslmode`, `sslrootcert`, `sslcert`, `sslkey` and their
    /// variables are understood, too.
    fn from_str(address: &str) -> Result<Self> {
        Self::with_environment(address, &|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }
}

impl Server {
    /// Where a server on this host listens: its TCP port or its Unix socket; `None` for one elsewhere.
    pub fn local_listener(&self) -> Option<sawmill_profile::Target> {
        self.endpoints.iter().find_map(|endpoint| match endpoint {
            Endpoint::Tcp { host, port } => {
                let local = ["localhost", "127.0.0.1", "::1"].contains(&host.as_str());
                local.then_some(sawmill_profile::Target::TcpPort(*port))
            }
            Endpoint::Unix(path) => Some(sawmill_profile::Target::UnixSocket(path.clone())),
        })
    }

    /// Sets a parameter of the server, such as `maintenance_work_mem`, on each connection.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    fn with_environment(address: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let advice = "give postgres://user@host:port/database or host=... port=... dbname=... user=...";
        let refused = |what: String| Error::new(Kind::Config, what).advise(advice);
        if let Some((scheme, _)) = address.split_once("://")
            && scheme.chars().all(|c| c.is_ascii_alphanumeric())
            && !["postgres", "postgresql"].contains(&scheme)
        {
            return Err(refused(format!("{scheme}:// is the address of no PostgreSQL server")));
        }
        let (address, mode, tls) = sslmode::of_address(address, variable)?;
        let mut config = Config::from_str(&address).map_err(|error| {
            use std::error::Error as _;
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            refused(format!("the address of the server cannot be used{cause}"))
        })?;
        config.ssl_mode(mode);
        if config.get_user().is_none() {
            let user = variable("PGUSER").or_else(|| variable("USER")).or_else(|| variable("LOGNAME"));
            config.user(user.unwrap_or_else(|| "postgres".to_owned()));
        }
        if config.get_dbname().is_none() {
            let user = config.get_user().unwrap_or_default().to_owned();
            config.dbname(variable("PGDATABASE").unwrap_or(user));
        }
        if config.get_application_name().is_none() {
            config.application_name("sawmill");
        }
        if let (None, Some(options)) = (config.get_options(), variable("PGOPTIONS")) {
            config.options(options);
        }
        if let (None, Some(seconds)) = (config.get_connect_timeout(), variable("PGCONNECT_TIMEOUT")) {
            let seconds: u64 = seconds
                .parse()
                .map_err(|_| refused(format!("PGCONNECT_TIMEOUT is {seconds:?} and no number of seconds")))?;
            // As in libpq: 0 is no limit, and 1 is taken as 2.
            config.connect_timeout(match seconds {
                0 => Duration::from_secs(365 * 24 * 3600),
                seconds => Duration::from_secs(seconds.max(2)),
            });
        }
        let endpoints = endpoints(&config, variable).map_err(refused)?;
        if config.get_password().is_none() {
            let password = variable("PGPASSWORD").or_else(|| {
                let file = variable("PGPASSFILE")
                    .map(PathBuf::from)
                    .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".pgpass")))?;
                let user = config.get_user()?;
                endpoints
                    .iter()
                    .find_map(|endpoint| password_file::find(&file, endpoint, config.get_dbname()?, user))
            });
            if let Some(password) = password {
                config.password(password);
            }
        }
        let timeout = config.get_connect_timeout().copied().unwrap_or(Duration::from_secs(10));
        Ok(Self { config, endpoints, timeout, tls, settings: Vec::new() })
    }

    /// The first address, for errors that concern no endpoint in particular.
    pub(crate) fn place(&self) -> String {
        self.to_string()
    }
}

fn endpoints(config: &Config, variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Endpoint>, String> {
    let default_port = match variable("PGPORT") {
        None => 5432,
        Some(port) => port.parse().map_err(|_| format!("PGPORT is {port:?} and not a port number"))?,
    };
    let ports = config.get_ports();
    let port = |i: usize| ports.get(i).or(ports.first().filter(|_| ports.len() == 1)).copied();
    let socket = |directory: PathBuf, port: u16| Endpoint::Unix(directory.join(format!(".s.PGSQL.{port}")));
    let named = |host: String, port: u16| match host.starts_with('/') {
        true => socket(PathBuf::from(host), port),
        false => Endpoint::Tcp { host, port },
    };
    let mut endpoints = Vec::new();
    for (i, address) in config.get_hostaddrs().iter().enumerate() {
        endpoints.push(Endpoint::Tcp { host: address.to_string(), port: port(i).unwrap_or(default_port) });
    }
    if endpoints.is_empty() {
        for (i, host) in config.get_hosts().iter().enumerate() {
            let port = port(i).unwrap_or(default_port);
            endpoints.push(match host {
                Host::Tcp(host) => named(host.clone(), port),
                #[cfg(unix)]
                Host::Unix(directory) => socket(directory.clone(), port),
            });
        }
    }
    if endpoints.is_empty() {
        let port = port(0).unwrap_or(default_port);
        let local = ["/var/run/postgresql", "/tmp"].map(|directory| socket(directory.into(), port));
        let here = |endpoint: &Endpoint| matches!(endpoint, Endpoint::Unix(path) if path.exists());
        endpoints.push(match variable("PGHOST") {
            Some(host) => named(host, port),
            None => {
                let local = local.into_iter().find(here);
                local.unwrap_or(Endpoint::Tcp { host: "localhost".to_owned(), port })
            }
        });
    }
    Ok(endpoints)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(address: &str, environment: &[(&str, &str)]) -> Result<Server> {
        let variable = |name: &str| {
            let found = environment.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Server::with_environment(address, &variable)
    }

    #[test]
    fn the_environment_fills_what_the_address_leaves_open() {
        let environment = [("PGHOST", "db"), ("PGPORT", "6000"), ("PGUSER", "ann"), ("PGPASSWORD", "secret")];
        let server = parse("dbname=sales", &environment).unwrap();
        assert_eq!(server.endpoints, [Endpoint::Tcp { host: "db".into(), port: 6000 }]);
        assert_eq!(server.config.get_user(), Some("ann"));
        assert_eq!(server.config.get_password(), Some(b"secret".as_slice()));
        let server = parse("postgres://bob:pw@other:7000/x", &environment).unwrap();
        assert_eq!(server.endpoints, [Endpoint::Tcp { host: "other".into(), port: 7000 }]);
        assert_eq!(server.config.get_user(), Some("bob"));
    }

    #[test]
    fn options_and_the_time_to_connect_come_from_the_environment_too() {
        let environment = [("PGOPTIONS", "-c work_mem=1MB"), ("PGCONNECT_TIMEOUT", "7")];
        let server = parse("dbname=sales", &environment).unwrap();
        assert_eq!(server.config.get_options(), Some("-c work_mem=1MB"));
        assert_eq!(server.timeout, Duration::from_secs(7));
        let server = parse("postgres://h/x?connect_timeout=3&options=-c%20jit%3Doff", &environment).unwrap();
        assert_eq!(
            (server.config.get_options(), server.timeout),
            (Some("-c jit=off"), Duration::from_secs(3))
        );
        assert!(parse("dbname=sales", &[("PGCONNECT_TIMEOUT", "soon")]).unwrap_err().what().contains("soon"));
    }

    #[test]
    fn addresses_of_other_servers_are_told_by_their_scheme() {
        let error = parse("mysql://bob:hunter2@h/x", &[]).unwrap_err();
        assert_eq!(error.what(), "mysql:// is the address of no PostgreSQL server");
        assert!(parse("postgresql://h/x", &[]).is_ok() && parse("host=h password=a://b", &[]).is_ok());
    }

    #[test]
    fn a_directory_as_host_is_a_unix_socket() {
        let server = parse("host=/run/pg port=5433 user=u", &[]).unwrap();
        assert_eq!(server.endpoints, [Endpoint::Unix("/run/pg/.s.PGSQL.5433".into())]);
    }

    #[test]
    fn the_password_is_never_shown() {
        let server = parse("postgres://bob:hunter2@h/x", &[]).unwrap();
        assert!(!format!("{server} {server:?}").contains("hunter2"));
        let error = parse("postgres://bob:hunter2@h:notaport/x", &[]).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
