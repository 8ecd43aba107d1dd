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
        // Stores keep them apart, but no client of ours can name them: `a//b` must not become `a/b`.
        if !scheme.is_web() && (key.starts_with('/') || key.contains("//")) {
            return wrong("a name in the URL has an empty part", "write one slash between two parts");
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

    /// The name of the object in its store, without a slash at its start. For a web server, as written in the
    /// URL.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The text after `?` in the URL of a web server. It may be a signature: never show it.
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// Whether both name one object, however they are spelled: `s3a://b/x` and `s3://b/x`, or `az://c/x` and
    /// `abfss://c@account.dfs.core.windows.net/x`.
    pub fn is_same(&self, other: &Self) -> bool {
        self.is_in_store_of(other) && self.parts().eq(other.parts())
    }

    /// Whether this is an object in the folder that the other names, at any depth.
    pub fn is_below(&self, folder: &Self) -> bool {
        let (mut parts, folder_parts) = (self.parts(), folder.parts().count());
        self.is_in_store_of(folder)
            && parts.by_ref().take(folder_parts).eq(folder.parts())
            && parts.next().is_some()
    }

    fn is_in_store_of(&self, other: &Self) -> bool {
        // Without an account, the environment names the account of a container, and may name any.
        let store = |url: &Self| match url.authority.split_once('@') {
            Some((container, host)) => {
                let account = host.split('.').next().unwrap_or_default().to_ascii_lowercase();
                (container.to_ascii_lowercase(), Some(account))
            }
            None => (url.authority.to_ascii_lowercase(), None),
        };
        let ((here, account), (there, other_account)) = (store(self), store(other));
        let accounts_differ = account.zip(other_account).is_some_and(|(one, other)| one != other);
        self.scheme == other.scheme && here == there && !accounts_differ
    }

    fn parts(&self) -> impl Iterator<Item = &str> {
        self.key.split('/').filter(|part| !part.is_empty())
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
