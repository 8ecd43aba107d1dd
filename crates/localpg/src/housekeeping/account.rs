//! The operating system account that the server runs as.
//!
//! PostgreSQL refuses to run as root. An ordinary user's server runs as that user; root's server runs as
//! `postgres` if that account exists, otherwise as `nobody`. The [`Account`] runs every command on the
//! server's behalf and owns the server's directory.

use std::ffi::CString;
use std::io;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Error;

/// Accounts for root's server, in order of preference.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// The server's user and group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    uid: u32,
    gid: u32,
    /// Whether commands must switch to this account from our own.
    switch: bool,
}

impl Account {
    /// The account for servers of this process: its own, or an unprivileged one if it is root.
    pub(crate) fn for_server() -> Result<Self, Error> {
        let uid = effective_uid();
        if uid != 0 {
            // The group is irrelevant: commands do not switch to it.
            return Ok(Self { name: format!("uid {uid}"), uid, gid: 0, switch: false });
        }
        for name in UNPRIVILEGED {
            if let Some((uid, gid)) = look_up(name)?
                && uid != 0
            {
                return Ok(Self { name: name.to_owned(), uid, gid, switch: true });
            }
        }
        Err(Error::new("PostgreSQL refuses to run as root, and no unprivileged account exists")
            .at(format!("accounts {}", UNPRIVILEGED.join(", ")))
            .advise("create one with `useradd --system postgres`, or run as an ordinary user"))
    }

    /// A command that runs as this account, in a fixed locale and without the caller's `PG*` variables, which
    /// would change the programs' behaviour. If it switches accounts, it drops supplementary groups: the
    /// standard library calls `setgroups(0, NULL)` before `setuid`.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C").stdin(Stdio::null());
        if self.switch {
            command.gid(self.gid).uid(self.uid);
        }
        command
    }

    /// Makes the account the owner of a file or directory.
    pub(crate) fn give(&self, path: &Path) -> io::Result<()> {
        if self.switch { chown(path, Some(self.uid), Some(self.gid)) } else { Ok(()) }
    }

    /// Whether a directory with this owner can belong to a server of this process.
    pub(crate) fn owns(&self, uid: u32) -> bool {
        uid == self.uid || uid == effective_uid()
    }

    /// Whether the account can enter the directory. Found out by trying, because access lists and mounts
    /// matter as well as mode bits.
    pub(crate) fn can_enter(&self, directory: &Path) -> bool {
        if !self.switch {
            return directory.is_dir();
        }
        self.command(Path::new("/bin/sh"))
            .args(["-c", "cd \"$1\"", "sh"])
            .arg(directory)
            .current_dir("/")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    /// Whether this is not our own account.
    #[cfg(any(feature = "download", test))]
    pub(crate) fn is_switched(&self) -> bool {
        self.switch
    }
}

/// The effective user id of this process.
pub(crate) fn effective_uid() -> u32 {
    // SAFETY: geteuid takes nothing, touches no memory of ours and cannot fail.
    unsafe { libc::geteuid() }
}

/// The user and group id of a named account, if it exists.
fn look_up(name: &str) -> Result<Option<(u32, u32)>, Error> {
    let failed = |cause| Error::io("cannot look up an account", cause).at(format!("account {name}"));
    let c_name = CString::new(name).map_err(|e| failed(e.into()))?;
    // SAFETY: passwd consists of integers and pointers, for which all-zero bytes are valid.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut text = vec![0 as libc::c_char; 16 * 1024];
    let mut found: *mut libc::passwd = std::ptr::null_mut();
    // SAFETY: c_name ends in a zero byte; entry, text (with its true length) and found outlive the call,
    // which writes nowhere else.
    let code =
        unsafe { libc::getpwnam_r(c_name.as_ptr(), &mut entry, text.as_mut_ptr(), text.len(), &mut found) };
    // For a missing account, implementations return success without an entry or one of these codes
    // (getpwnam_r(3), "Errors").
    match code {
        0 if found.is_null() => Ok(None),
        0 => Ok(Some((entry.pw_uid, entry.pw_gid))),
        libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM => Ok(None),
        code => Err(failed(io::Error::from_raw_os_error(code))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_found_by_name_and_an_invented_account_is_not() {
        assert_eq!(look_up("root").unwrap(), Some((0, 0)));
        assert_eq!(look_up("no-such-account-here").unwrap(), None);
    }

    #[test]
    fn a_server_never_runs_as_root() {
        let account = Account::for_server().unwrap();
        let id = account.command(Path::new("id")).arg("-u").current_dir("/").output().unwrap();
        assert_ne!(String::from_utf8_lossy(&id.stdout).trim(), "0");
    }

    #[test]
    fn supplementary_groups_are_dropped_with_root() {
        let account = Account::for_server().unwrap();
        if !account.is_switched() {
            return;
        }
        let id = account.command(Path::new("id")).arg("-G").current_dir("/").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&id.stdout).trim(), account.gid.to_string());
    }

    #[test]
    fn a_private_directory_of_root_cannot_be_entered_by_the_server() {
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let directory = tempfile::Builder::new().permissions(private).tempdir().unwrap();
        let account = Account::for_server().unwrap();
        assert_eq!(account.can_enter(directory.path()), !account.is_switched());
        account.give(directory.path()).unwrap();
        assert!(account.can_enter(directory.path()));
    }
}
