//! Configures and starts a server: account, directory, data directory, port.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::housekeeping::account::Account;
use crate::housekeeping::home::{self, Home};
use crate::housekeeping::sweep;
use crate::server::cluster;
use crate::server::postmaster::{Failure, Postmaster};
use crate::{Binaries, Error, LocalPg};

/// The number of ports to try. Each is free when chosen, and another process is unlikely to take it before
/// the server does.
const PORT_ATTEMPTS: usize = 10;

/// The configuration of a server to start; from [`LocalPg::builder`].
#[derive(Clone, Debug)]
pub struct Builder {
    binaries: Option<Binaries>,
    settings: Vec<(String, String)>,
    parent_dir: Option<PathBuf>,
    timeout: Duration,
}

impl Default for Builder {
    fn default() -> Self {
        Self { binaries: None, settings: Vec::new(), parent_dir: None, timeout: Duration::from_secs(60) }
    }
}

impl Builder {
    /// Sets the programs to run. The default is [`Binaries::find_or_download`].
    pub fn binaries(self, binaries: Binaries) -> Self {
        Self { binaries: Some(binaries), ..self }
    }

    /// Adds a setting of `postgresql.conf`, such as `.setting("shared_buffers", "256MB")`; the last value
    /// wins. Port, addresses and directories cannot be set.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Sets the parent of the server's directory. The default is `SAWMILL_PG_DIR`, or else the temporary directory,
    /// or `/tmp` or `/var/tmp` if the server's account cannot enter that one or its path is too long for a socket.
    pub fn parent_dir(self, directory: impl Into<PathBuf>) -> Self {
        Self { parent_dir: Some(directory.into()), ..self }
    }

    /// Sets how long to wait until the server accepts connections; 60 seconds by default.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Cleans up after killed processes ([`sweep_abandoned`](crate::sweep_abandoned)), starts a server and
    /// returns once it accepts connections.
    ///
    /// # Errors
    ///
    /// PostgreSQL is not found and cannot be downloaded; no account or directory is suitable for the server;
    /// a setting is rejected; `initdb` or the server fails, in which case the error includes its last lines
    /// of output. Everything created or started is removed.
    pub fn start(self) -> Result<LocalPg, Error> {
        let account = Account::for_server()?;
        let mut bases = home::default_bases();
        let parent_dir = self.parent_dir.or_else(|| std::env::var_os("SAWMILL_PG_DIR").map(PathBuf::from));
        if let Some(parent) = &parent_dir {
            let resolved = parent.canonicalize().map_err(|cause| {
                Error::io("cannot use the directory for the server", cause).at_path(parent)
            })?;
            bases.insert(0, resolved);
        }
        // A failed cleanup does not prevent a new server.
        let _ = sweep::sweep(&bases, &account);
        let binaries = match self.binaries {
            Some(binaries) => binaries,
            None => Binaries::find_or_download(&mut |_| {})?,
        };
        let base = choose_base(&bases, parent_dir.is_some(), &account)?;
        let home = Home::create(base, &account)?;
        let socket_home = if home::socket_fits(&home.path) {
            None
        } else {
            let short = |base: &&PathBuf| home::socket_will_fit(base) && account.can_enter(base);
            let base = bases.iter().find(short).ok_or_else(|| {
                Error::new("no directory has a path that is short enough for a socket").at_path(&home.path)
            })?;
            Some(Home::create(base, &account)?)
        };
        let password = cluster::new_password()?;
        cluster::create(&home, &binaries, &account, &password, &self.settings)?;
        let launch = Launch { binaries, account, timeout: self.timeout };
        let socket_dir = socket_home.as_ref().unwrap_or(&home).path.clone();
        let (postmaster, port) = launch.on_free_port(&home, &socket_dir)?;
        Ok(LocalPg { postmaster, home, socket_home, launch, port, password })
    }
}

/// The parent of the server's directory: the caller's, or the first suitable one.
fn choose_base<'a>(bases: &'a [PathBuf], given: bool, account: &Account) -> Result<&'a Path, Error> {
    let candidates = if given { &bases[..1] } else { bases };
    let enterable: Vec<&PathBuf> = candidates.iter().filter(|base| account.can_enter(base)).collect();
    let short = enterable.iter().find(|base| home::socket_will_fit(base));
    match short.or(enterable.first()) {
        Some(base) => Ok(base.as_path()),
        None => {
            Err(Error::new(format!("{}, which the server runs as, cannot enter the directory", account.name))
                .at(candidates.iter().map(|base| base.display().to_string()).collect::<Vec<_>>().join(", "))
                .advise("choose a directory that this account can enter, such as /tmp"))
        }
    }
}

/// Everything needed to start the server again.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) binaries: Binaries,
    account: Account,
    timeout: Duration,
}

impl Launch {
    /// Starts the server on a free port.
    fn on_free_port(&self, home: &Home, socket_dir: &Path) -> Result<(Postmaster, u16), Error> {
        for _ in 0..PORT_ATTEMPTS {
            let port = free_port()?;
            match self.on_port(port, home, socket_dir) {
                Ok(postmaster) => return Ok((postmaster, port)),
                Err(Failure::PortTaken) => {}
                Err(Failure::Other(error)) => return Err(error),
            }
        }
        Err(Error::new(format!(
            "{PORT_ATTEMPTS} free ports were taken before the server could listen on them"
        ))
        .at("127.0.0.1")
        .advise("try again"))
    }

    /// Starts the server on this port.
    pub(crate) fn on_port(&self, port: u16, home: &Home, socket_dir: &Path) -> Result<Postmaster, Failure> {
        let mut command: Command = self.account.command(&self.binaries.program("postgres"));
        command.arg("-D").arg(&home.data).arg("-p").arg(port.to_string()).arg("-c");
        // The setting is a list of directories, so it is quoted in case of a comma.
        let quoted = socket_dir.display().to_string().replace('"', "\"\"");
        command.arg(format!("unix_socket_directories=\"{quoted}\""));
        Postmaster::launch(command, home, self.timeout)
    }
}

/// A loopback port that is free now; another process may take it before the server does.
fn free_port() -> Result<u16, Error> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|cause| Error::io("cannot get a free port", cause).at("127.0.0.1"))
}
