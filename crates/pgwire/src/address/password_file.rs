//! libpq's password file (<https://www.postgresql.org/docs/current/libpq-pgpass.html>).

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::address::server::Endpoint;

/// The password of the first line that matches host, port, database and user. A file that others
/// can read is ignored, as libpq does.
pub(crate) fn find(file: &Path, endpoint: &Endpoint, database: &str, user: &str) -> Option<String> {
    if std::fs::metadata(file).ok()?.permissions().mode() & 0o077 != 0 {
        return None;
    }
    let (host, port) = match endpoint {
        Endpoint::Tcp { host, port, .. } => (host.clone(), port.to_string()),
        // Sockets in the default directory are called localhost; others by their directory.
        Endpoint::Unix(path) => {
            let directory = path.parent()?.to_str()?;
            let host = if directory == "/var/run/postgresql" { "localhost" } else { directory };
            (host.to_owned(), path.extension()?.to_str()?.to_owned())
        }
    };
    let text = String::from_utf8(sawmill_profile::read_small(file).ok()?).ok()?;
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = split(line);
        // Everything after the password is ignored.
        let (want, password) = (fields.get(..4)?, fields.get(4)?);
        let have = [host.as_str(), &port, database, user];
        let matches = want.iter().zip(have).all(|(want, have)| want == "*" || want == have);
        matches.then(|| password.clone())
    })
}

/// Splits at colons; a backslash escapes the next character.
fn split(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (character, fields.last_mut()) {
            (':', _) => fields.push(String::new()),
            ('\\', Some(field)) => field.extend(characters.next()),
            (_, Some(field)) => field.push(character),
            (_, None) => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_matches_gives_the_password() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pgpass");
        std::fs::write(&file, "# comment\nh:5432:other:*:no\nh:*:db:ann:se\\:cret\n*:*:*:*:any\n").unwrap();
        let endpoint = Endpoint::Tcp { host: "h".into(), address: None, port: 5432 };
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(find(&file, &endpoint, "db", "ann"), None);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(find(&file, &endpoint, "db", "ann").as_deref(), Some("se:cret"));
        assert_eq!(find(&file, &endpoint, "db", "bob").as_deref(), Some("any"));
    }
}
