//! The data directory: created by `initdb` and configured for disposable data.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use crate::housekeeping::account::Account;
use crate::housekeeping::home::Home;
use crate::server::postmaster::tail;
use crate::{Binaries, Error};

/// The server's only role, a superuser.
pub(crate) const USER: &str = "sawmill";

/// Settings of every server, written to `postgresql.conf` before the caller's.
const SETTINGS: &str = "
# This server's data is disposable, so nothing needs to survive a crash of the operating system:
# neither waiting for the disk nor page images against torn pages are needed
# (https://www.postgresql.org/docs/current/non-durability.html). A crash of the server alone still
# loses nothing committed, because synchronous_commit stays on: with fsync off it only costs a write
# to the page cache.
fsync = off
full_page_writes = off

# Reachable from this machine only, with the password.
listen_addresses = '127.0.0.1'
unix_socket_permissions = 0700

# Everything of the server is in its directory and removed with it; besides, containers limit
# POSIX shared memory tightly.
dynamic_shared_memory_type = mmap

# The same answers and the same messages on every machine.
timezone = 'UTC'
log_timezone = 'UTC'
lc_messages = 'C'
";

/// Settings for reaching and cleaning up the server; the caller cannot change them.
const RESERVED: [&str; 5] =
    ["port", "listen_addresses", "unix_socket_directories", "data_directory", "external_pid_file"];

/// Creates the data directory, with a password for [`USER`].
pub(crate) fn create(
    home: &Home,
    binaries: &Binaries,
    account: &Account,
    password: &str,
    settings: &[(String, String)],
) -> Result<(), Error> {
    let configuration = configuration(settings)?;
    let failed = |cause| Error::io("cannot prepare the data directory", cause).at_path(&home.path);
    let password_file = home.path.join("password");
    write_private(&password_file, password).map_err(failed)?;
    account.give(&password_file).map_err(failed)?;
    let program = binaries.program("initdb");
    let output = account
        .command(&program)
        .arg("-D")
        .arg(&home.data)
        .arg(format!("--username={USER}"))
        .arg(format!("--pwfile={}", password_file.display()))
        .args(["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"])
        .current_dir(&home.path)
        // Ctrl-C is meant for the program that uses the server; that program ends initdb.
        .process_group(0)
        .output()
        .map_err(|cause| Error::io("cannot run it", cause).at_path(&program))?;
    if !output.status.success() {
        let output_text = [output.stdout, output.stderr].concat();
        let output_text = String::from_utf8_lossy(&output_text);
        let error = Error::new(format!(
            "initdb, run as {}, failed ({}):\n{}",
            account.name,
            output.status,
            tail(&output_text)
        ))
        .at_path(&home.path);
        return Err(if output_text.contains("could not look up effective user ID") {
            error.advise("PostgreSQL needs a user with a name: add a line for it to /etc/passwd")
        } else {
            error.advise("check that the disk is not full and that the installation is complete")
        });
    }
    fs::remove_file(&password_file).map_err(failed)?;
    OpenOptions::new()
        .append(true)
        .open(home.data.join("postgresql.conf"))
        .and_then(|mut file| file.write_all(configuration.as_bytes()))
        .map_err(failed)
}

/// An unguessable password: 192 bits of the system's randomness as hexadecimal digits.
pub(crate) fn new_password() -> Result<String, Error> {
    let source = Path::new("/dev/urandom");
    let mut random = [0; 24];
    fs::File::open(source)
        .and_then(|mut file| file.read_exact(&mut random))
        .map_err(|cause| Error::io("cannot make a password", cause).at_path(source))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The lines to append to `postgresql.conf`; the last value of a setting wins.
fn configuration(settings: &[(String, String)]) -> Result<String, Error> {
    let mut text = SETTINGS.to_owned();
    for (name, value) in settings {
        let refuse = |why: &str| Err(Error::new(format!("the setting {name:?} {why}")).at("postgresql.conf"));
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.') {
            return refuse("does not have the name of a PostgreSQL setting");
        }
        if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
            return refuse("is set at the server's start and cannot be changed");
        }
        if value.contains(['\n', '\r', '\0']) {
            return refuse("has a value with a line break or a zero byte");
        }
        text.push_str(&format!("{name} = '{}'\n", value.replace('\\', "\\\\").replace('\'', "''")));
    }
    Ok(text)
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Result<String, Error> {
        configuration(&[(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn a_setting_is_written_after_ours_with_its_value_quoted() {
        assert!(with("work_mem", "64MB").unwrap().ends_with("\nwork_mem = '64MB'\n"));
        assert!(with("x.y", r"it's \n").unwrap().ends_with("\nx.y = 'it''s \\\\n'\n"));
    }

    #[test]
    fn a_setting_that_would_break_the_file_or_the_server_is_rejected() {
        for (name, value) in
            [("", "1"), ("a b", "1"), ("a", "1\nb = 2"), ("port", "1"), ("Listen_Addresses", "*")]
        {
            assert!(with(name, value).is_err(), "{name:?} = {value:?}");
        }
    }

    #[test]
    fn passwords_are_long_and_differ() {
        let (one, other) = (new_password().unwrap(), new_password().unwrap());
        assert_eq!(one.len(), 48);
        assert_ne!(one, other);
    }
}
