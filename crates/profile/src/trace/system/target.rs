//! How other processes are named: those that a program works with, such as a database server.

use std::path::PathBuf;

/// Another process, which a sampler (feature `measure`) samples together with its descendants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The process with this id.
    Pid(u32),
    /// The process that listens on this TCP port of this host.
    TcpPort(u16),
    /// The process that listens on this unix socket.
    UnixSocket(PathBuf),
}
