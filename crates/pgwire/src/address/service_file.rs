//! libpq's connection service file: parameters of servers under names
//! (<https://www.postgresql.org/docs/current/libpq-pgservice.html>).
//!
//! The user's own file is looked at first, then the system's; the first that knows the service gives all of
//! its parameters.

use std::path::{Path, PathBuf};

use sawmill_profile::{Error, Kind, Result};

use crate::address::parameters::{Variable, known};

/// Directories of the system's file without `PGSYSCONFDIR`, as the project and the distributions build libpq.
const SYSTEM: [&str; 4] = ["/etc/postgresql-common", "/etc/sysconfig/pgsql", "/etc", "/usr/local/pgsql/etc"];

/// The parameters of a service. If it gives a parameter twice, the first value counts. `file` is read instead
/// of the user's own.
///
/// # Errors
/// A service that no file knows, a file that was named and is not there, lines that cannot be read.
pub(crate) fn find(
    service: &str,
    file: Option<PathBuf>,
    variable: Variable<'_>,
) -> Result<Vec<(&'static str, String)>> {
    let mut looked = Vec::new();
    let named = file.or_else(|| variable("PGSERVICEFILE").map(PathBuf::from));
    match (named, variable("HOME")) {
        (Some(named), _) => looked.push((named, true)),
        (None, Some(home)) => looked.push((Path::new(&home).join(".pg_service.conf"), false)),
        (None, None) => {}
    }
    let system = variable("PGSYSCONFDIR")
        .map_or_else(|| SYSTEM.map(PathBuf::from).to_vec(), |named| vec![named.into()]);
    looked.extend(system.into_iter().map(|directory| (directory.join("pg_service.conf"), false)));
    for (path, required) in &looked {
        let text = match sawmill_profile::read_text(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => continue,
            read => read.map_err(|error| {
                Error::new(Kind::Config, format!("cannot read the service file: {error}"))
                    .at(path.display().to_string())
                    .advise("see PGSERVICEFILE, which names the file")
            })?,
        };
        if let Some(parameters) = section(&text, service, path)? {
            return Ok(parameters);
        }
    }
    let files: Vec<String> = looked.iter().map(|(path, _)| path.display().to_string()).collect();
    Err(Error::new(Kind::Config, format!("there is no service {service:?}")).at(files.join(", ")).advise(
        format!("add a section [{service}] to one of these files, or name another with PGSERVICEFILE"),
    ))
}

/// The parameters under `[service]`, if it is there.
fn section(text: &str, service: &str, path: &Path) -> Result<Option<Vec<(&'static str, String)>>> {
    let mut found: Option<Vec<(&'static str, String)>> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            if name.split(']').next() == Some(service) {
                found = Some(Vec::new());
            }
            continue;
        }
        let Some(parameters) = &mut found else { continue };
        let wrong = |what: String| {
            Error::new(Kind::Config, what)
                .at(format!("{}, line {number}", path.display()))
                .advise("write keyword=value, with the keywords of libpq")
        };
        let (name, value) = line.split_once('=').ok_or_else(|| wrong("no keyword=value".to_owned()))?;
        match known(name) {
            Some("service" | "servicefile") => {
                return Err(wrong("a service cannot name another one".to_owned()));
            }
            Some(name) if parameters.iter().all(|(there, _)| *there != name) => {
                parameters.push((name, value.to_owned()));
            }
            Some(_) => {}
            None => return Err(wrong(format!("unknown parameter {name:?}"))),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks for a service with these files in a home and in the system's directory.
    fn look(service: &str, home: Option<&str>, system: Option<&str>) -> Result<Vec<(&'static str, String)>> {
        let directory = tempfile::tempdir().unwrap();
        let inside = |name: &str| directory.path().join(name);
        std::fs::create_dir(inside("etc")).unwrap();
        for (text, name) in [(home, ".pg_service.conf"), (system, "etc/pg_service.conf")] {
            if let Some(text) = text {
                std::fs::write(inside(name), text).unwrap();
            }
        }
        let variable = |name: &str| match name {
            "HOME" => Some(directory.path().to_str().unwrap().to_owned()),
            "PGSYSCONFDIR" => Some(inside("etc").to_str().unwrap().to_owned()),
            _ => None,
        };
        find(service, None, &variable)
    }

    #[test]
    fn the_users_file_goes_before_the_systems() {
        let home = "# mine\n[a]\nhost=home\n\n[b]\nhost=other\n";
        let system = "[a]\nhost=system\n[c]\nhost=system\nport=1\nhost=twice\nuser= u \n[d]\nhost=d";
        let host = |name: &str| vec![("host", name.to_owned())];
        assert_eq!(look("a", Some(home), Some(system)).unwrap(), host("home"));
        assert_eq!(look("a", None, Some(system)).unwrap(), host("system"));
        assert_eq!(
            look("c", Some(home), Some(system)).unwrap(),
            [("host", "system".to_owned()), ("port", "1".to_owned()), ("user", " u".to_owned())]
        );
        assert_eq!(look("d", None, Some(system)).unwrap(), host("d"));
    }

    #[test]
    fn unknown_services_and_invalid_lines_are_errors() {
        let error = look("prod", Some("[other]\n"), None).unwrap_err();
        assert!(error.what().contains("\"prod\"") && error.place().contains(".pg_service.conf"), "{error}");
        for (line, what) in
            [("words", "keyword=value"), ("hots=h", "\"hots\""), ("service=b", "cannot name another")]
        {
            let error = look("a", Some(&format!("[a]\nhost=h\n{line}\n")), None).unwrap_err();
            assert!(error.what().contains(what) && error.place().ends_with("line 3"), "{error}");
        }
        let named = |name: &str| (name == "PGSERVICEFILE").then(|| "/no/such/file".to_owned());
        assert_eq!(find("a", None, &named).unwrap_err().place(), "/no/such/file");
    }
}
