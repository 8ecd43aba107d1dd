//! The parameters of a connection: first from the address (a URL or libpq's keywords), then from the named
//! service, then from the environment
//! (<https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING>).
//!
//! No message shows a value: it may be a password.

use std::collections::BTreeMap;

use sawmill_profile::{Error, Kind, Result};

use crate::address::service_file;

/// The value of a variable of the environment.
pub(crate) type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The parameters that libpq knows, each with its environment variable, if any.
const KNOWN: [(&str, &str); 47] = [
    ("service", "PGSERVICE"),
    ("servicefile", "PGSERVICEFILE"),
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("port", "PGPORT"),
    ("dbname", "PGDATABASE"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("passfile", "PGPASSFILE"),
    ("application_name", "PGAPPNAME"),
    ("fallback_application_name", ""),
    ("options", "PGOPTIONS"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    ("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    ("sslnegotiation", "PGSSLNEGOTIATION"),
    ("sslcrl", "PGSSLCRL"),
    ("sslcrldir", "PGSSLCRLDIR"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("require_auth", "PGREQUIREAUTH"),
    ("requirepeer", "PGREQUIREPEER"),
    ("gssencmode", "PGGSSENCMODE"),
    ("replication", ""),
    ("keepalives", ""),
    ("keepalives_count", ""),
    ("keepalives_idle", ""),
    ("keepalives_interval", ""),
    ("tcp_user_timeout", ""),
    // These change nothing here: text is always UTF-8, and there is neither compression of TLS nor Kerberos.
    ("client_encoding", ""),
    ("gssdelegation", ""),
    ("gsslib", ""),
    ("krbsrvname", ""),
    ("max_protocol_version", ""),
    ("min_protocol_version", ""),
    ("requiressl", ""),
    ("sslcertmode", ""),
    ("sslcompression", ""),
    ("sslkeylogfile", ""),
    ("sslpassword", ""),
    ("sslsni", ""),
    ("tty", ""),
];

/// Parameters that ask for unsupported features, except with these values.
const REFUSED: [(&str, &[&str]); 7] = [
    ("gssencmode", &["disable", "prefer"]),
    ("replication", &["false", "off", "no", "0"]),
    ("requirepeer", &[]),
    ("requiressl", &["0"]),
    ("sslcrl", &[]),
    ("sslcrldir", &[]),
    ("sslnegotiation", &["postgres"]),
];

/// The parameters of a connection, by their names; no value is empty.
#[derive(Clone, Default)]
pub(crate) struct Parameters {
    values: BTreeMap<&'static str, String>,
}

impl Parameters {
    /// Collects the parameters for an address. The address' own value of a parameter precedes the service's,
    /// and that precedes the environment's.
    ///
    /// # Errors
    /// An address that cannot be read, a parameter that does not exist or cannot be obeyed, a service that is
    /// nowhere defined.
    pub(crate) fn new(address: &str, variable: Variable<'_>) -> Result<Self> {
        let url = ["postgres://", "postgresql://"].iter().find_map(|scheme| address.strip_prefix(scheme));
        let pairs = match url {
            Some(url) => of_url(url)?,
            None => of_keywords(address)?,
        };
        let mut parameters = Self::default();
        for (name, value) in pairs {
            let known = known(&name).ok_or_else(|| refused(format!("unknown parameter {name:?}")))?;
            parameters.values.insert(known, value);
        }
        if let Some(service) = parameters.get("service").map(str::to_owned).or_else(|| variable("PGSERVICE"))
        {
            let file = parameters.get("servicefile").map(Into::into);
            for (name, value) in service_file::find(&service, file, variable)? {
                parameters.values.entry(name).or_insert(value);
            }
        }
        for (name, stand_in) in KNOWN.iter().filter(|(_, stand_in)| !stand_in.is_empty()) {
            if !parameters.values.contains_key(name)
                && let Some(value) = variable(stand_in)
            {
                parameters.values.insert(name, value);
            }
        }
        // An empty value means that the parameter is not set, and hides the environment's value.
        parameters.values.retain(|_, value| !value.is_empty());
        for (name, harmless) in REFUSED {
            if parameters.get(name).is_some_and(|value| !harmless.contains(&value)) {
                let what = format!("{name}: this value is not supported");
                return Err(
                    refused(what).advise("remove it from the address, the service and the environment")
                );
            }
        }
        Ok(parameters)
    }

    /// A parameter's value.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }
}

/// The name of a parameter, if there is one of this name.
pub(crate) fn known(name: &str) -> Option<&'static str> {
    // The name under which some drivers know it.
    let name = if name == "keepalives_retries" { "keepalives_count" } else { name };
    KNOWN.iter().map(|(known, _)| *known).find(|known| *known == name)
}

/// An address that cannot be used.
pub(crate) fn refused(what: impl std::fmt::Display) -> Error {
    Error::new(Kind::Config, format!("the address of the server is invalid: {what}"))
        .advise("give postgres://user@host:port/database or host=... port=... dbname=... user=...")
}

/// `user:password@host:port,host:port/database?name=value&...`, each part percent-encoded and optional.
fn of_url(url: &str) -> Result<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let (before, query) = url.split_once('?').unwrap_or((url, ""));
    let (authority, database) = before.split_once('/').unwrap_or((before, ""));
    let hosts = match authority.split_once('@') {
        None => authority,
        Some((login, hosts)) => {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            pairs.push(("user".to_owned(), decoded(user)?));
            pairs.push(("password".to_owned(), decoded(password)?));
            if hosts.contains('@') {
                return Err(refused("it has two @ (write an @ in the user's name or the password as %40)"));
            }
            hosts
        }
    };
    let (mut names, mut ports) = (Vec::new(), Vec::new());
    for host in hosts.split(',') {
        let (name, behind) = match host.strip_prefix('[') {
            Some(inner) => inner.split_once(']').ok_or_else(|| refused("an IPv6 address has no end ]"))?,
            None => host.split_at(host.find(':').unwrap_or(host.len())),
        };
        let port = behind.strip_prefix(':').unwrap_or("");
        if !behind.is_empty() && !behind.starts_with(':') {
            return Err(refused("behind ] it has neither a port nor the next host"));
        }
        names.push(decoded(name)?);
        ports.push(decoded(port)?);
    }
    pairs.push(("host".to_owned(), names.join(",")));
    if ports.iter().any(|port| !port.is_empty()) {
        pairs.push(("port".to_owned(), ports.join(",")));
    }
    pairs.push(("dbname".to_owned(), decoded(database)?));
    // Missing parts may come from elsewhere.
    pairs.retain(|(_, value)| !value.trim_matches(',').is_empty());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or_else(|| refused(format!("{pair:?} has no value")))?;
        match (decoded(name)?.as_str(), decoded(value)?) {
            ("ssl", value) if value == "true" => pairs.push(("sslmode".to_owned(), "require".to_owned())),
            (name, value) => pairs.push((name.to_owned(), value)),
        }
    }
    Ok(pairs)
}

fn decoded(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut pieces = text.split('%');
    bytes.extend(pieces.next().unwrap_or_default().bytes());
    for piece in pieces {
        let code = piece.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|code| *code != 0);
        bytes.push(code.ok_or_else(|| {
            refused("a % is not followed by two hexadecimal digits (write a % itself as %25)")
        })?);
        bytes.extend(piece.bytes().skip(2));
    }
    String::from_utf8(bytes).map_err(|_| refused("the percent-encoded text is not UTF-8"))
}

/// `key = value` pairs with blanks between. A value in single quotes may have blanks, and a backslash escapes
/// the next character.
fn of_keywords(address: &str) -> Result<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let mut rest = address.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let Some(behind) = behind.trim_start().strip_prefix('=') else {
            // Without a name before it this may be a piece of a password.
            return Err(refused("part of it is not keyword=value"));
        };
        let behind = behind.trim_start();
        let quoted = behind.strip_prefix('\'');
        let mut characters = quoted.unwrap_or(behind).chars();
        let mut value = String::new();
        loop {
            match characters.next() {
                Some('\\') => value.extend(characters.next()),
                Some('\'') if quoted.is_some() => break,
                None if quoted.is_some() => return Err(refused(format!("the value of {name} has no end '"))),
                Some(blank) if blank.is_whitespace() && quoted.is_none() => break,
                None => break,
                Some(other) => value.push(other),
            }
        }
        pairs.push((name.to_owned(), value));
        rest = characters.as_str().trim_start();
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(address: &str, environment: &[(&str, &str)]) -> Result<Vec<(&'static str, String)>> {
        let variable = |name: &str| {
            let found = environment.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Parameters::new(address, &variable).map(|parameters| parameters.values.into_iter().collect())
    }

    #[track_caller]
    fn assert_parses(address: &str, expected: &[(&'static str, &str)]) {
        let expected: Vec<_> = expected.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        assert_eq!(parse(address, &[]).unwrap(), expected, "{address}");
    }

    #[test]
    fn a_url_has_user_hosts_database_and_parameters_each_percent_encoded() {
        assert_parses("postgres://", &[]);
        assert_parses("postgresql:///mydb", &[("dbname", "mydb")]);
        assert_parses(
            "postgres://an%40n:p%3A%2Fw%25@h:1/d%20b?sslkey=%2Fa%20b&application_name=x%26y",
            &[
                ("application_name", "x&y"),
                ("dbname", "d b"),
                ("host", "h"),
                ("password", "p:/w%"),
                ("port", "1"),
                ("sslkey", "/a b"),
                ("user", "an@n"),
            ],
        );
        assert_parses("postgres://a:1,b,[::1]:3/", &[("host", "a,b,::1"), ("port", "1,,3")]);
        assert_parses("postgres://[2001:db8::1%25eth0]/d", &[("dbname", "d"), ("host", "2001:db8::1%eth0")]);
        assert_parses(
            "postgres://u@%2Ftmp%2Fpg:5433",
            &[("host", "/tmp/pg"), ("port", "5433"), ("user", "u")],
        );
        // Behind the question mark everything can be given.
        assert_parses(
            "postgresql:///d?host=/tmp&port=1&user=u&ssl=true",
            &[("dbname", "d"), ("host", "/tmp"), ("port", "1"), ("sslmode", "require"), ("user", "u")],
        );
    }

    #[test]
    fn keywords_may_be_quoted_and_have_blanks_around_the_sign() {
        assert_parses("", &[]);
        assert_parses(
            r"host=h sslkey = '/a b/it\'s' password='x sslmode=no' user=a\ b",
            &[("host", "h"), ("password", "x sslmode=no"), ("sslkey", "/a b/it's"), ("user", "a b")],
        );
        assert_parses(
            "host=h password='' dbname='d'port=1",
            &[("dbname", "d"), ("host", "h"), ("port", "1")],
        );
    }

    #[test]
    fn invalid_and_unsupported_parameters_are_refused_without_showing_values() {
        for (address, what) in [
            ("postgres://u:hunter2%zz@h/d", "a %"),
            ("postgres://u:hunter2%0@h/d", "a %"),
            ("postgres://u:p@hunter2@h/d", "%40"),
            ("postgres://u:hunter2@[::1/d", "no end ]"),
            ("postgres://u:hunter2@[::1]5/d", "behind ]"),
            ("postgres://u:hunter2@h/d?sslmoed=require", "\"sslmoed\""),
            ("host=h pasword=hunter2", "\"pasword\""),
            ("host=h hunter2", "keyword=value"),
            ("hunter2", "keyword=value"),
            ("host=h password='hunter2", "password has no end"),
            ("host=h password=hunter2 gssencmode=require", "gssencmode"),
            ("host=h sslcrl=/hunter2", "sslcrl"),
        ] {
            let error = parse(address, &[]).unwrap_err().to_string();
            assert!(error.contains(what) && !error.contains("hunter2"), "{address}: {error}");
        }
        assert!(parse("host=h gssencmode=disable channel_binding=prefer keepalives=1", &[]).is_ok());
        assert!(parse("host=h", &[("PGREQUIREPEER", "postgres")]).is_err());
    }

    #[test]
    fn the_address_goes_before_the_service_and_that_before_the_environment() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("services");
        std::fs::write(&file, "[prod]\nhost=service\nport=7\ndbname=of service\n").unwrap();
        let file = file.to_str().unwrap();
        let environment = [
            ("PGSERVICEFILE", file),
            ("PGHOST", "env"),
            ("PGPORT", "8"),
            ("PGUSER", "env"),
            ("PGSSLMODE", ""),
        ];
        let expected = |host: &str| {
            vec![
                ("dbname", "of service".to_owned()),
                ("host", host.to_owned()),
                ("port", "7".to_owned()),
                ("service", "prod".to_owned()),
                ("servicefile", file.to_owned()),
                ("user", "env".to_owned()),
            ]
        };
        assert_eq!(parse("service=prod", &environment).unwrap(), expected("service"));
        assert_eq!(parse("postgres://address?service=prod", &environment).unwrap(), expected("address"));
        let named = [environment.as_slice(), &[("PGSERVICE", "prod")]].concat();
        assert_eq!(parse("host=address", &named).unwrap(), expected("address"));
        // A parameter given as empty is not looked for in the environment.
        let given = parse("user='' password=''", &[("PGUSER", "env"), ("PGPASSWORD", "env")]).unwrap();
        assert_eq!(given, []);
    }
}
