//! Finds the process that listens on a local TCP port or unix socket (`proc(5)`, `/proc/net/tcp`,
//! `/proc/net/unix`, `/proc/<pid>/fd`).

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::error::{Error, Result};
use crate::watch::proc_files::{Stat, numbered};

/// `TCP_LISTEN` (`net/tcp_states.h`) as `/proc/net/tcp` writes it.
const LISTENING: &str = "0A";
/// `__SO_ACCEPTCON` (`linux/net.h`): the flag of a unix socket that accepts connections.
const ACCEPTS: u32 = 0x10000;

/// The process that listens on a TCP port of this host; the parent if a process and its children share the
/// socket.
pub(crate) fn of_port(port: u16) -> Result<u32> {
    let mut sockets = BTreeSet::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        // A host without IPv6 does not have the second table.
        let Ok(text) = fs::read_to_string(table) else { continue };
        sockets.extend(text.lines().skip(1).filter_map(|line| listening_socket(line, port)));
    }
    holder_of(&sockets, &format!("TCP port {port} of this host"))
}

/// The process that listens on a unix socket.
pub(crate) fn of_unix_socket(path: &Path) -> Result<u32> {
    let text = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let sockets = text.lines().skip(1).filter_map(|line| listening_unix_socket(line, path)).collect();
    holder_of(&sockets, &format!("unix socket {}", path.display()))
}

/// The inode of a line of `/proc/net/tcp` that listens on the port.
fn listening_socket(line: &str, port: u16) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace();
    let (_, local_port) = fields.nth(1)?.rsplit_once(':')?;
    let state = fields.nth(1)?;
    if state != LISTENING || u16::from_str_radix(local_port, 16) != Ok(port) {
        return None;
    }
    fields.nth(5)?.parse().ok()
}

/// The inode of a line of `/proc/net/unix` that listens on the path.
fn listening_unix_socket(line: &str, path: &Path) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace();
    let flags = u32::from_str_radix(fields.nth(3)?, 16).ok()?;
    let inode = fields.nth(2)?.parse().ok()?;
    let name = fields.next()?;
    // The path is the rest of the line and can contain blanks.
    let bound = line.find(&format!(" {name}")).and_then(|at| line.get(at + 1..))?;
    (flags & ACCEPTS != 0 && Path::new(bound) == path).then_some(inode)
}

fn holder_of(sockets: &BTreeSet<u64>, place: &str) -> Result<u32> {
    if sockets.is_empty() {
        let advice = "start the server, or specify its process id";
        return Err(Error::failed("no process listens there", place, advice));
    }
    let links: BTreeSet<String> = sockets.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let holders: BTreeSet<u32> = numbered("/proc").into_iter().filter(|pid| holds(*pid, &links)).collect();
    let parent = |pid: u32| Stat::read(&format!("/proc/{pid}/stat")).map(|stat| stat.parent);
    let oldest = holders.iter().find(|pid| !parent(**pid).is_some_and(|parent| holders.contains(&parent)));
    oldest.copied().ok_or_else(|| {
        Error::failed(
            "the process that listens there is not visible from here",
            place,
            "it runs in a container or under another user: run as that user or as root, \
             or specify a process id",
        )
    })
}

/// Whether a process has one of these files open; false if we may not look.
fn holds(pid: u32, links: &BTreeSet<String>) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok())
        .any(|target| target.to_str().is_some_and(|target| links.contains(target)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_listener_on_a_port_is_this_process() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(of_port(port), Ok(std::process::id()));
        drop(listener);
        assert_eq!(of_port(port).unwrap_err().what(), "no process listens there");
    }

    #[test]
    fn the_listener_on_a_unix_socket_is_this_process_even_with_a_blank_in_its_path() {
        let path = std::env::temp_dir().join(format!("sawmill socket {}", std::process::id()));
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let found = of_unix_socket(&path);
        drop(listener);
        fs::remove_file(&path).unwrap();
        assert_eq!(found, Ok(std::process::id()));
    }
}
