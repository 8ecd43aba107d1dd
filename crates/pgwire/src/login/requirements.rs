//! The user's requirements on a login: `require_auth` and `channel_binding`, as in libpq 16
//! (<https://www.postgresql.org/docs/16/libpq-connect.html#LIBPQ-CONNECT-REQUIRE-AUTH>).

use sawmill_profile::{Error, Kind, Result};

use crate::address::parameters::{Parameters, refused};

/// Ways for a user to prove who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// The server asks for nothing.
    None,
    Password,
    Md5,
    Gss,
    Sspi,
    Scram,
}

/// Whether a password exchange is bound to the encrypted channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Binding {
    Disable,
    #[default]
    Prefer,
    Require,
}

/// The user's requirements on a login.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requirements {
    pub binding: Binding,
    /// The allowed methods, and the user's text for them; `None` allows all.
    methods: Option<(String, Vec<Method>)>,
}

const METHODS: [(&str, Method); 6] = [
    ("none", Method::None),
    ("password", Method::Password),
    ("md5", Method::Md5),
    ("gss", Method::Gss),
    ("sspi", Method::Sspi),
    ("scram-sha-256", Method::Scram),
];

impl Requirements {
    /// The requirements of the address.
    ///
    /// # Errors
    /// An unknown value, or one that contradicts itself.
    pub(crate) fn new(given: &Parameters) -> Result<Self> {
        let binding = match given.get("channel_binding") {
            Some("disable") => Binding::Disable,
            None | Some("prefer") => Binding::Prefer,
            Some("require") => Binding::Require,
            Some(other) => {
                return Err(refused(format!("channel_binding={other} is unknown"))
                    .advise("give disable, prefer or require"));
            }
        };
        let methods = |text: &str| methods(text).map(|methods| (text.to_owned(), methods));
        let methods = given.get("require_auth").map(methods).transpose()?;
        Ok(Self { binding, methods })
    }

    /// Lets a method through.
    ///
    /// # Errors
    /// The user does not allow it.
    pub(crate) fn allow(&self, method: Method) -> Result<()> {
        let name = METHODS.iter().find(|(_, known)| *known == method).map_or("", |(name, _)| name);
        match &self.methods {
            Some((asked, methods)) if !methods.contains(&method) => {
                let what = match method {
                    Method::None => "the server asks for no proof of who the user is".to_owned(),
                    _ => format!("the server asks for authentication by {name}"),
                };
                Err(unmet(format!("{what}, but require_auth={asked} does not allow that")))
            }
            _ => Ok(()),
        }
    }
}

/// A server that does not meet a requirement.
pub(super) fn unmet(what: impl Into<String>) -> Error {
    Error::new(Kind::Server, what).advise(
        "make sure that this is the right server; then change its pg_hba.conf, or require_auth and channel_binding in the \
         address, the service or the environment",
    )
}

fn methods(text: &str) -> Result<Vec<Method>> {
    let mut named = Vec::new();
    let without = text.split(',').next().is_some_and(|first| first.trim().starts_with('!'));
    for part in text.split(',').map(str::trim) {
        let name = part.strip_prefix('!');
        if name.is_some() != without {
            return Err(refused(format!("require_auth={text} allows some methods and excludes others"))
                .advise("give either the methods to allow, or, each with a ! before it, those to exclude"));
        }
        let name = name.unwrap_or(part);
        let Some((_, method)) = METHODS.iter().find(|(known, _)| *known == name) else {
            return Err(refused(format!("require_auth names an unknown method, {name:?}"))
                .advise("the methods are password, md5, gss, sspi, scram-sha-256 and none"));
        };
        if named.contains(method) {
            return Err(refused(format!("require_auth names {name} twice")).advise("name each method once"));
        }
        named.push(*method);
    }
    if without {
        Ok(METHODS.iter().map(|(_, method)| *method).filter(|method| !named.contains(method)).collect())
    } else {
        Ok(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(parameters: &str) -> Result<Requirements> {
        Requirements::new(&Parameters::new(parameters, &|_| None)?)
    }

    #[test]
    fn methods_are_named_or_excluded_as_in_libpq() {
        let allowed = |parameters: &str| {
            let requirements = parse(parameters).unwrap();
            let methods = METHODS.iter().filter(|(_, method)| requirements.allow(*method).is_ok());
            methods.map(|(name, _)| *name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(allowed("host=h"), "none password md5 gss sspi scram-sha-256");
        assert_eq!(allowed("require_auth=scram-sha-256"), "scram-sha-256");
        assert_eq!(allowed("require_auth=md5,scram-sha-256"), "md5 scram-sha-256");
        assert_eq!(allowed("require_auth=!password,!md5,!none"), "gss sspi scram-sha-256");
        assert_eq!(allowed("require_auth=none"), "none");
        for wrong in ["md5,!none", "!md5,none", "md5,md5", "kerberos", "md5,"] {
            assert_eq!(parse(&format!("require_auth={wrong}")).unwrap_err().kind(), Kind::Config, "{wrong}");
        }
        assert!(parse("channel_binding=always").is_err());
    }
}
