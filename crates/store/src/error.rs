//! The error of objects in stores: problem, place and remedy.

use std::fmt;
use std::io;

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A URL or option that cannot be used.
    Usage,
    /// The object, bucket or container does not exist.
    NotFound,
    /// The object is not the one that was opened.
    Changed,
    /// Another run has written the object.
    Exists,
    /// The store refused the credentials, or asks for some.
    Denied,
    /// The store cannot be reached, or does not answer as it should.
    Unavailable,
    /// The web server does not answer requests for ranges of bytes.
    NoRanges,
    /// The bytes that arrived do not have the checksum that the store states.
    Damaged,
    /// The caller asked to stop.
    Cancelled,
}

/// An error in three parts; `Display` joins those that are not empty with `" - "`. It never contains a
/// secret: neither the query of a URL, nor an option's value, nor a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    what: String,
    place: String,
    advice: String,
}

impl Error {
    /// Returns an error of this kind; `what` names the problem.
    pub fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), place: String::new(), advice: String::new() }
    }

    /// Adds the place: the object, the store or the option.
    pub fn at(self, place: impl Into<String>) -> Self {
        Self { place: place.into(), ..self }
    }

    /// Adds what to do about it.
    pub fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: advice.into(), ..self }
    }

    /// Returns its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the problem.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the place. May be empty.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns what to do about it. May be empty.
    pub fn advice(&self) -> &str {
        &self.advice
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.what, &self.place, &self.advice].map(String::as_str);
        f.write_str(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" - "))
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.kind {
            Kind::NotFound => io::ErrorKind::NotFound,
            Kind::Denied => io::ErrorKind::PermissionDenied,
            Kind::Cancelled => io::ErrorKind::Interrupted,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}
