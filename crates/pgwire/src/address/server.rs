//! A server's address: a URL or libpq keywords, and what libpq takes from services and the environment.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use sawmill_profile::{Error, Kind, Result};
use tokio_postgres::Config;

use crate::address::keep_alive::KeepAlive;
use crate::address::parameters::{Parameters, Variable, refused};
use crate::address::session_kind::SessionKind;
use crate::address::{password_file, sslmode};
use crate::login::requirements::Requirements;
use crate::server_error::is_starting;

/// Default time limit for connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// How long to wait by default for an answer before the server is asked whether it still works on it.
const PATIENCE: Duration = Duration::from_secs(300);

/// Where to connect to, and as whom. `Debug` and errors never show the password.
#[derive(Clone)]
pub struct Server {
    pub(crate) config: Config,
    pub(crate) endpoints: Vec<Endpoint>,
    /// The kind of server that suits.
    pub(crate) session: SessionKind,
    /// Where passwords are looked up if `config` has none.
    pub(crate) password_file: Option<PathBuf>,
    pub(crate) timeout: Duration,
    /// How long to wait for an answer before asking the server whether it still works on the request.
    pub(crate) patience: Duration,
    /// The system's probes of idle connections.
    pub(crate) keep_alive: KeepAlive,
    /// The user's requirements on a login.
    pub(crate) requirements: Requirements,
    /// A server at this address has answered, in its protocol.
    reached: Arc<AtomicBool>,
    /// How connections are encrypted. `ssl_mode` of `config` decides whether to refuse a server without TLS.
    /// Unix sockets are never encrypted.
    pub(crate) tls: Option<Arc<ClientConfig>>,
    /// Parameters of the server that are set on each connection.
    pub(crate) settings: Vec<(String, String)>,
    /// The database product to expect.
    pub(crate) product: Product,
}

/// Databases that speak the PostgreSQL protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    PostgreSql,
    CrateDb,
}

impl Product {
    /// The objection to a server that reports this `crate_version`, or reports none.
    pub(crate) fn objection(self, crate_version: Option<&str>) -> Option<Error> {
        let error = |what: String, advice| Some(Error::new(Kind::Config, what).advise(advice));
        match (self, crate_version) {
            (Self::PostgreSql, None) | (Self::CrateDb, Some(_)) => None,
            (Self::PostgreSql, Some(version)) => error(
                format!("the server is CrateDB {version}, not PostgreSQL"),
                "give its address as crate://user:password@HOST:4200/schema, with the port of its HTTP endpoint, and \
                 ?pg_port=N where the port of its PostgreSQL wire is not 5432",
            ),
            (Self::CrateDb, None) => error(
                "the server is not CrateDB: it does not report a crate_version".to_owned(),
                "give the port of CrateDB's PostgreSQL wire (?pg_port=N in the address), or choose --transport http",
            ),
        }
    }
}

/// One way to reach the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Tcp {
        host: String,
        /// Its address, to skip the look-up of its name.
        address: Option<IpAddr>,
        port: u16,
    },
    Unix(PathBuf),
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp { host, port, .. } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port, .. } => write!(f, "{host}:{port}"),
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
    /// (<https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING>). Missing parameters
    /// come from the service (`service`, `PGSERVICE`), then from libpq's `PG*` variables, then from the
    /// password file (`PGPASSFILE`, `~/.pgpass`) and libpq's defaults: a local Unix socket if there is one,
    /// else localhost, port 5432, the name of the user.
    fn from_str(address: &str) -> Result<Self> {
        Self::with_environment(address, &|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }
}

impl Server {
    /// The nodes of a CrateDB cluster, by host name and port, to be tried in this order. A server that does
    /// not answer within `timeout` is not there.
    pub fn of_crate_db(
        config: Config,
        nodes: impl Iterator<Item = (String, u16)>,
        timeout: Duration,
        tls: Option<Arc<ClientConfig>>,
    ) -> Self {
        let endpoints = nodes.map(|(host, port)| Endpoint::Tcp { host, address: None, port });
        Self {
            config,
            endpoints: endpoints.collect(),
            session: SessionKind::Any,
            password_file: None,
            timeout,
            patience: PATIENCE,
            keep_alive: KeepAlive::default(),
            requirements: Requirements::default(),
            reached: Arc::default(),
            tls,
            settings: Vec::new(),
            product: Product::CrateDb,
        }
    }

    /// Where a server on this host listens: its TCP port or its Unix socket; `None` for one elsewhere.
    pub fn local_listener(&self) -> Option<sawmill_profile::Target> {
        self.endpoints.iter().find_map(|endpoint| match endpoint {
            Endpoint::Tcp { host, port, .. } => {
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

    /// Sets how long an answer may take before the server is asked, over another connection, whether it still works on
    /// it: five minutes by default.
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// How long an answer may take before the server is asked.
    pub fn waits_for(&self) -> Duration {
        self.patience
    }

    /// Whether a server at this address has answered since the address was read, so that a failure to reach it now is
    /// a lost connection, and not a wrong address.
    pub fn is_reached(&self) -> bool {
        self.reached.load(Relaxed)
    }

    /// Opens a connection, again and again for as long as the patience lasts if the server answers that it starts up.
    /// `pause` waits before the next try.
    ///
    /// # Errors
    /// Errors of both.
    pub fn once_it_takes_connections<T>(
        &self,
        mut pause: impl FnMut(&Error) -> Result<()>,
        mut open: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        let since = Instant::now();
        loop {
            match open() {
                Err(error) if is_starting(&error) => match since.elapsed() < self.patience {
                    true => pause(&error)?,
                    // Not a lost connection, after which callers would try for another patience.
                    false => {
                        return Err(Error::new(Kind::Server, error.what())
                            .at(error.place())
                            .advise("run the same command again when the server has started, or wait longer (--patience)"));
                    }
                },
                opened => return opened,
            }
        }
    }

    pub(crate) fn was_reached(&self) {
        self.reached.store(true, Relaxed);
    }

    fn with_environment(address: &str, variable: Variable<'_>) -> Result<Self> {
        if let Some((scheme, _)) = address.split_once("://")
            && scheme.chars().all(|c| c.is_ascii_alphanumeric())
            && !["postgres", "postgresql"].contains(&scheme)
        {
            let what = format!("{scheme}:// is not an address of a PostgreSQL server");
            return Err(refused(what).advise(
                "give postgres:// or postgresql:// for PostgreSQL, crate:// or crates:// for CrateDB",
            ));
        }
        let parameters = Parameters::new(address, variable)?;
        let (mode, tls) = sslmode::configured(&parameters, variable)?;
        let mut config = Config::new();
        config.ssl_mode(mode);
        let user = parameters.get("user").map(str::to_owned).or_else(account);
        let user = user.or_else(|| variable("USER")).or_else(|| variable("LOGNAME"));
        let user = user.unwrap_or_else(|| "postgres".to_owned());
        config.dbname(parameters.get("dbname").unwrap_or(&user)).user(&user);
        let name = parameters.get("application_name").or_else(|| parameters.get("fallback_application_name"));
        config.application_name(name.unwrap_or("sawmill"));
        if let Some(options) = parameters.get("options") {
            config.options(options);
        }
        if let Some(password) = parameters.get("password") {
            config.password(password);
        }
        let mut endpoints = endpoints(&parameters)?;
        match parameters.get("load_balance_hosts") {
            None | Some("disable") => {}
            Some("random") => {
                let random = std::hash::RandomState::new();
                endpoints.sort_by_key(|endpoint| random.hash_one(endpoint.to_string()));
            }
            Some(other) => {
                return Err(refused(format!("load_balance_hosts={other} is neither disable nor random")));
            }
        }
        let password_file = parameters.get("passfile").map(PathBuf::from);
        let password_file =
            password_file.or_else(|| variable("HOME").map(|home| Path::new(&home).join(".pgpass")));
        Ok(Self {
            config,
            endpoints,
            session: parameters.get("target_session_attrs").unwrap_or("any").parse()?,
            password_file,
            timeout: timeout(&parameters)?,
            patience: PATIENCE,
            keep_alive: KeepAlive::new(&parameters)?,
            requirements: Requirements::new(&parameters)?,
            reached: Arc::default(),
            tls,
            settings: Vec::new(),
            product: Product::PostgreSql,
        })
    }

    /// The configuration of a connection to this endpoint, whose password may come from the password file.
    pub(crate) fn config_for(&self, endpoint: &Endpoint) -> Config {
        let mut config = self.config.clone();
        if let (None, Some(file), Some(database), Some(user)) =
            (config.get_password(), &self.password_file, self.config.get_dbname(), self.config.get_user())
            && let Some(password) = password_file::find(file, endpoint, database, user)
        {
            config.password(password);
        }
        config
    }

    /// The first address, for errors that concern no endpoint in particular.
    pub(crate) fn place(&self) -> String {
        self.to_string()
    }
}

/// How long to wait for a connection.
fn timeout(parameters: &Parameters) -> Result<Duration> {
    let Some(seconds) = parameters.get("connect_timeout") else { return Ok(CONNECT) };
    let seconds: i64 = seconds
        .trim()
        .parse()
        .map_err(|_| refused(format!("connect_timeout is {seconds:?}, not a number of seconds")))?;
    // As in libpq: 0 and less means unlimited, and 1 means 2.
    Ok(Duration::from_secs(match seconds {
        ..=0 => 365 * 24 * 3600,
        seconds => seconds.unsigned_abs().clamp(2, 365 * 24 * 3600),
    }))
}

/// The name of the account that this process belongs to, where the system keeps its accounts in a file.
fn account() -> Option<String> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt;
        let number = std::fs::metadata("/proc/self").ok()?.uid().to_string();
        let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
        let mut lines = accounts.lines().map(|line| line.split(':'));
        lines.find_map(|mut fields| {
            let name = fields.next()?;
            (fields.nth(1)? == number).then(|| name.to_owned())
        })
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// The ways to the server in the order in which they are tried: a host, an address and a port each.
fn endpoints(parameters: &Parameters) -> Result<Vec<Endpoint>> {
    let list = |name: &str| -> Vec<&str> {
        parameters.get(name).map_or_else(Vec::new, |list| list.split(',').map(str::trim).collect())
    };
    let (hosts, addresses, ports) = (list("host"), list("hostaddr"), list("port"));
    let count = hosts.len().max(addresses.len()).max(1);
    if !hosts.is_empty() && !addresses.is_empty() && hosts.len() != addresses.len() {
        return Err(refused(format!(
            "there are {} hosts and {} values of hostaddr",
            hosts.len(),
            addresses.len()
        )));
    }
    if ports.len() > 1 && ports.len() != count {
        return Err(refused(format!("there are {count} hosts and {} ports", ports.len())));
    }
    let nth = |list: &[&str], i: usize| -> String { list.get(i).copied().unwrap_or_default().to_owned() };
    let ways = (0..count).map(|i| {
        let port = nth(&ports, if ports.len() == 1 { 0 } else { i });
        let port = match port.as_str() {
            "" => 5432,
            text => text
                .parse()
                .ok()
                .filter(|port| *port > 0)
                .ok_or_else(|| refused(format!("{text:?} is not a port number")))?,
        };
        let (host, address) = (nth(&hosts, i), nth(&addresses, i));
        let ip =
            || address.parse().map_err(|_| refused(format!("hostaddr {address:?} is not an IP address")));
        Ok(match (host.as_str(), address.as_str()) {
            ("", "") => usual(port),
            ("", address) => Endpoint::Tcp { host: address.to_owned(), address: Some(ip()?), port },
            (_, address) if !address.is_empty() => Endpoint::Tcp { address: Some(ip()?), host, port },
            (directory, _) if directory.starts_with('/') => socket(directory, port),
            _ => Endpoint::Tcp { host, address: None, port },
        })
    });
    ways.collect()
}

fn socket(directory: impl AsRef<Path>, port: u16) -> Endpoint {
    Endpoint::Unix(directory.as_ref().join(format!(".s.PGSQL.{port}")))
}

/// Where a server is looked for when no host is named.
fn usual(port: u16) -> Endpoint {
    let local = ["/var/run/postgresql", "/tmp"].map(|directory| socket(directory, port));
    let here = |endpoint: &Endpoint| matches!(endpoint, Endpoint::Unix(path) if path.exists());
    let tcp = || Endpoint::Tcp { host: "localhost".to_owned(), address: None, port };
    local.into_iter().find(here).unwrap_or_else(tcp)
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

    fn tcp(host: &str, port: u16) -> Endpoint {
        Endpoint::Tcp { host: host.into(), address: None, port }
    }

    fn unix(path: &str) -> Endpoint {
        Endpoint::Unix(path.into())
    }

    #[track_caller]
    fn assert_reaches(address: &str, environment: &[(&str, &str)], expected: &[Endpoint]) {
        assert_eq!(parse(address, environment).unwrap().endpoints, expected, "{address}");
    }

    #[test]
    fn the_environment_fills_what_the_address_leaves_open() {
        let environment = [("PGHOST", "db"), ("PGPORT", "6000"), ("PGUSER", "ann"), ("PGPASSWORD", "secret")];
        let server = parse("dbname=sales", &environment).unwrap();
        assert_eq!(server.endpoints, [tcp("db", 6000)]);
        assert_eq!(server.config.get_user(), Some("ann"));
        assert_eq!(server.config.get_password(), Some(b"secret".as_slice()));
        let server = parse("postgres://bob:pw@other:7000/x", &environment).unwrap();
        assert_eq!(server.endpoints, [tcp("other", 7000)]);
        assert_eq!((server.config.get_user(), server.config.get_dbname()), (Some("bob"), Some("x")));
        // The default database has the name of the user.
        let server = parse("postgres://", &environment).unwrap();
        assert_eq!(
            (server.config.get_dbname(), server.config.get_application_name()),
            (Some("ann"), Some("sawmill"))
        );
        let environment = [("PGDATABASE", "sales"), ("PGAPPNAME", "nightly"), ("PGUSER", "ann")];
        let server = parse("", &environment).unwrap();
        assert_eq!(
            (server.config.get_dbname(), server.config.get_application_name()),
            (Some("sales"), Some("nightly"))
        );
    }

    #[test]
    fn several_hosts_have_a_port_each_or_one_for_all() {
        let both = [tcp("a", 1), tcp("b", 5432)];
        assert_reaches("postgres://a:1,b/d", &[], &both);
        assert_reaches("host=a,b port=1,", &[], &both);
        assert_reaches("", &[("PGHOST", "a,b"), ("PGPORT", "1,5432")], &both);
        assert_reaches("host=a,b port=7", &[], &[tcp("a", 7), tcp("b", 7)]);
        assert_reaches("host=a,/run/pg", &[("PGPORT", "7")], &[tcp("a", 7), unix("/run/pg/.s.PGSQL.7")]);
        for (address, what) in [
            ("host=a,b port=1,2,3", "2 hosts and 3 ports"),
            ("host=a,b hostaddr=127.0.0.1", "2 hosts and 1 values of hostaddr"),
            ("host=a port=0", "\"0\""),
            ("host=a port=99999", "99999"),
            ("hostaddr=localhost", "localhost"),
            ("host=a load_balance_hosts=all", "all"),
        ] {
            let error = parse(address, &[]).unwrap_err();
            assert!(error.what().contains(what), "{address}: {error}");
        }
        let mut shuffled = parse("host=a,b,c load_balance_hosts=random", &[]).unwrap().endpoints;
        shuffled.sort_by_key(Endpoint::to_string);
        assert_eq!(shuffled, [tcp("a", 5432), tcp("b", 5432), tcp("c", 5432)]);
    }

    #[test]
    fn an_address_of_numbers_spares_the_look_up_and_keeps_the_name() {
        let at = |host: &str, address: &str| Endpoint::Tcp {
            host: host.into(),
            address: Some(address.parse().unwrap()),
            port: 5432,
        };
        assert_reaches("host=db hostaddr=10.0.0.1", &[], &[at("db", "10.0.0.1")]);
        assert_reaches("host=db", &[("PGHOSTADDR", "::1")], &[at("db", "::1")]);
        assert_reaches("hostaddr=10.0.0.1", &[], &[at("10.0.0.1", "10.0.0.1")]);
        assert_reaches("postgres://[2001:db8::1]:7/d", &[], &[tcp("2001:db8::1", 7)]);
        assert_eq!(tcp("2001:db8::1", 7).to_string(), "[2001:db8::1]:7");
    }

    #[test]
    fn a_directory_as_host_is_a_unix_socket() {
        let expected = [unix("/run/pg/.s.PGSQL.5433")];
        assert_reaches("host=/run/pg port=5433 user=u", &[], &expected);
        assert_reaches("postgres://u@%2Frun%2Fpg:5433/d", &[], &expected);
        assert_reaches("postgres:///d?host=/run/pg&port=5433", &[], &expected);
        assert_reaches("", &[("PGHOST", "/run/pg"), ("PGPORT", "5433")], &expected);
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
    fn each_host_has_its_own_line_in_the_password_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("passwords");
        std::fs::write(&file, "a:*:*:*:of a\nb:*:*:*:of b\n").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        let environment = [("PGPASSFILE", file.to_str().unwrap())];
        let server = parse("host=a,b,c", &environment).unwrap();
        let passwords: Vec<_> = server
            .endpoints
            .iter()
            .map(|endpoint| server.config_for(endpoint).get_password().map(<[u8]>::to_vec))
            .collect();
        assert_eq!(passwords, [Some(b"of a".to_vec()), Some(b"of b".to_vec()), None]);
        let server = parse("host=a password=mine", &environment).unwrap();
        assert_eq!(server.config_for(&server.endpoints[0]).get_password(), Some(b"mine".as_slice()));
    }

    #[test]
    fn addresses_of_other_servers_are_refused_by_their_scheme() {
        let error = parse("mysql://bob:hunter2@h/x", &[]).unwrap_err();
        assert!(error.what().ends_with("mysql:// is not an address of a PostgreSQL server"), "{error}");
        assert!(parse("postgresql://h/x", &[]).is_ok() && parse("host=h password=a://b", &[]).is_ok());
    }

    #[test]
    fn the_password_is_never_shown() {
        let server = parse("postgres://bob:hunter2@h/x", &[]).unwrap();
        assert!(!format!("{server} {server:?}").contains("hunter2"));
        let error = parse("postgres://bob:hunter2@h:notaport/x", &[]).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
