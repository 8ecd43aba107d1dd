//! The URL of an object, or of a prefix that objects share.

use std::fmt;

use crate::error::{Error, Kind};

/// Which kind of store a URL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// Amazon S3 and stores with the same interface.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage and Data Lake Storage.
    Azure,
    /// A web server.
    Http,
    /// A web server, over TLS.
    Https,
}

impl Scheme {
    /// The scheme with this name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "s3" | "s3a" => Self::S3,
            "gs" | "gcs" => Self::Gcs,
            "az" | "azure" | "abfs" | "abfss" => Self::Azure,
            "http" => Self::Http,
            "https" => Self::Https,
            _ => return None,
        })
    }

    /// Whether the store is a web server, which cannot list its objects.
    pub fn is_web(self) -> bool {
        matches!(self, Self::Http | Self::Https)
    }
}

/// The URL of an object, or of a prefix. `Display` and `Debug` leave out its query, which may be a signature.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectUrl {
    scheme: Scheme,
    /// The scheme as the user wrote it.
    written: String,
    authority: String,
    key: String,
    query: Option<String>,
}

impl ObjectUrl {
    /// Reads what follows `written://`.
    pub(super) fn parse(written: &str, scheme: Scheme, rest: &str) -> Result<Self, Error> {
        let written = written.to_ascii_lowercase();
        let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
        let wrong = |what: &str, advice: &str| {
            Err(Error::new(Kind::Usage, what).at(format!("{written}://...")).advise(advice))
        };
        // An abfss URL names container@account.
        if authority.contains('@') && (scheme != Scheme::Azure || authority.contains(':')) {
            let advice =
                "leave them out; the environment or a configuration file of the store's tools has them";
            return wrong("the URL contains a user name or a password", advice);
        }
        if authority.is_empty() {
            let needed = if scheme.is_web() { "a host" } else { "a bucket" };
            return wrong(&format!("the URL lacks {needed}"), "write it after the two slashes");
        }
        let (key, query) = match scheme.is_web() {
            true => {
                let key = key.split('#').next().unwrap_or_default();
                key.split_once('?').map_or((key, None), |(key, query)| (key, Some(query.to_owned())))
            }
            false => (key, None),
        };
        Ok(Self { scheme, written, authority: authority.to_owned(), key: key.to_owned(), query })
    }

    /// Which kind of store it is.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The bucket, the container, `container@account`, or the host with its port.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The name of the object in its store, without a slash at its start. Of a web server, as the URL has it.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What follows `?` in the URL of a web server. It may be a signature: never show it.
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// Another object of the same store.
    pub fn sibling(&self, key: impl Into<String>) -> Self {
        Self { key: key.into(), ..self.clone() }
    }
}

impl fmt::Display for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}/{}", self.written, self.authority, self.key)
    }
}

impl fmt::Debug for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
