//! A running server: its addresses, and every way to end it.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use crate::housekeeping::home::Home;
use crate::housekeeping::process::Shutdown;
use crate::server::builder::Launch;
use crate::server::cluster::USER;
use crate::server::postmaster::{Failure, Postmaster, log_tail};
use crate::{Binaries, Builder, Error};

/// A private PostgreSQL server. Dropping it, even in a panic, ends the server and removes its directory with
/// all data.
///
/// If the process ends without a drop (`exit`, a fatal signal), both stay until the next start on the machine
/// [sweeps](crate::sweep_abandoned) them.
// Fields are dropped in this order: first the server, then the directories.
#[derive(Debug)]
pub struct LocalPg {
    pub(crate) postmaster: Postmaster,
    pub(crate) home: Home,
    /// The socket's directory, if the path in `home` would be too long.
    pub(crate) socket_home: Option<Home>,
    pub(crate) launch: Launch,
    pub(crate) port: u16,
    pub(crate) password: String,
}

impl LocalPg {
    /// Configures a server to be [started](Builder::start).
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts a server with default settings and the installation that [`Binaries::find_or_download`]
    /// returns.
    ///
    /// # Errors
    ///
    /// As for [`Builder::start`].
    pub fn start() -> Result<Self, Error> {
        Self::builder().start()
    }

    /// The URL over loopback TCP, with the superuser's name and password, for the database `postgres`:
    /// `postgres://sawmill:PASSWORD@127.0.0.1:PORT/postgres`.
    pub fn url(&self) -> String {
        format!("postgres://{USER}:{}@127.0.0.1:{}/postgres", self.password, self.port)
    }

    /// The URL over the Unix socket: `postgres://sawmill:PASSWORD@/postgres?host=DIRECTORY&port=PORT`, the
    /// form that libpq and compatible clients accept
    /// (<https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS>).
    pub fn socket_url(&self) -> String {
        let host = percent_encoded(self.socket_dir());
        format!("postgres://{USER}:{}@/postgres?host={host}&port={}", self.password, self.port)
    }

    /// The directory of the Unix socket, accessible only to the server's account and root.
    pub fn socket_dir(&self) -> &Path {
        &self.socket_home.as_ref().unwrap_or(&self.home).path
    }

    /// The port on 127.0.0.1, also part of the socket's name.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The data directory.
    pub fn data_dir(&self) -> &Path {
        &self.home.data
    }

    /// The server's log, a file beside the data directory.
    pub fn log_file(&self) -> PathBuf {
        self.home.log()
    }

    /// The process id of the postmaster.
    pub fn pid(&self) -> u32 {
        self.postmaster.pid
    }

    /// The installation that runs it.
    pub fn binaries(&self) -> &Binaries {
        &self.launch.binaries
    }

    /// Ends the server with a fast shutdown and removes its directory.
    ///
    /// # Errors
    ///
    /// The server had already ended (crashed), needed a stronger shutdown or ended abnormally, with the last
    /// lines of its log; or the directory cannot be removed. Either way, the server has ended.
    pub fn stop(self) -> Result<(), Error> {
        let Self { mut postmaster, home, socket_home, .. } = self;
        let ended = postmaster
            .shut_down(Shutdown::Fast)
            .map_err(|what| Error::new(format!("{what}; its log:\n{}", log_tail(&home))).at_path(&home.path));
        let removed = home.remove();
        socket_home.map_or(Ok(()), Home::remove)?;
        ended.and(removed)
    }

    /// Ends the server as in a crash (`pg_ctl -m immediate`) and restarts it on the same port and data:
    /// sessions break, committed data is preserved, uncommitted data is lost.
    ///
    /// # Errors
    ///
    /// The server does not start again; the error has the last lines of its log. The value then has no server.
    pub fn restart_immediate(&mut self) -> Result<(), Error> {
        // Errors do not matter: the server has ended either way.
        let _ = self.postmaster.shut_down(Shutdown::Immediate);
        let socket_dir = self.socket_dir().to_owned();
        for _ in 0..50 {
            match self.launch.on_port(self.port, &self.home, &socket_dir) {
                Ok(postmaster) => {
                    self.postmaster = postmaster;
                    return Ok(());
                }
                // Another process's connection may briefly use this port as its local end.
                Err(Failure::PortTaken) => sleep(Duration::from_millis(100)),
                Err(Failure::Other(error)) => return Err(error),
            }
        }
        Err(Error::new("the server's port was taken while it restarted")
            .at(format!("127.0.0.1:{}", self.port)))
    }

    /// Leaves the server running after this process and returns how to reach and how to end it.
    ///
    /// # Errors
    ///
    /// The directory cannot be marked to be kept; server and directory are then removed.
    pub fn keep(self) -> Result<Kept, Error> {
        let kept = Kept {
            url: self.url(),
            socket_url: self.socket_url(),
            socket_dir: self.socket_dir().to_owned(),
            directory: self.home.path.clone(),
            pid: self.pid(),
            stop_command: self.stop_command(),
        };
        // Not destructured: on an error the fields must be dropped in order.
        let mut server = self;
        server.home.keep()?;
        if let Some(socket_home) = &mut server.socket_home {
            socket_home.keep()?;
        }
        server.postmaster.release();
        Ok(kept)
    }

    /// SIGINT is a fast shutdown, and the lock file disappears once it is finished. (`pg_ctl stop` does the
    /// same, but refuses to run as root.)
    fn stop_command(&self) -> String {
        let mut command = format!(
            "kill -INT {} && while [ -e {} ]; do sleep 0.1; done; rm -rf {}",
            self.pid(),
            shell_quoted(&self.data_dir().join("postmaster.pid")),
            shell_quoted(&self.home.path)
        );
        if let Some(socket_home) = &self.socket_home {
            // Writing to a String does not fail.
            let _ = write!(command, " {}", shell_quoted(&socket_home.path));
        }
        command
    }
}

/// A server that keeps running.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept {
    /// Its URL over loopback TCP, as in [`LocalPg::url`].
    pub url: String,
    /// Its URL over the socket, as in [`LocalPg::socket_url`].
    pub socket_url: String,
    /// The directory of its socket.
    pub socket_dir: PathBuf,
    /// Its directory, with its data and its log.
    pub directory: PathBuf,
    /// The process id of the postmaster.
    pub pid: u32,
    /// A shell command that ends it and removes its directory.
    pub stop_command: String,
}

/// A path encoded for a URL's query.
fn percent_encoded(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;

    let mut text = String::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                text.push(*byte as char)
            }
            // Writing to a String does not fail.
            _ => drop(write!(text, "%{byte:02X}")),
        }
    }
    text
}

/// A path as one word of a shell command.
fn shell_quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_a_url_is_encoded() {
        assert_eq!(percent_encoded(Path::new("/tmp/sawmill-pg-aB3.x")), "/tmp/sawmill-pg-aB3.x");
        assert_eq!(percent_encoded(Path::new("/a b&c=ü")), "/a%20b%26c%3D%C3%BC");
    }

    #[test]
    fn a_path_in_a_shell_command_is_one_word() {
        assert_eq!(shell_quoted(Path::new("/tmp/sawmill-pg-x")), "/tmp/sawmill-pg-x");
        assert_eq!(shell_quoted(Path::new("/it's; rm")), r"'/it'\''s; rm'");
    }
}
