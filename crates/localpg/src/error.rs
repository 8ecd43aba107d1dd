//! The error of this crate: the fault, its place, and advice.

use std::fmt;
use std::io;
use std::path::Path;

/// Why PostgreSQL could not be found, downloaded, started, stopped or cleaned up.
#[derive(Debug, thiserror::Error)]
pub struct Error {
    what: String,
    place: String,
    advice: String,
    #[source]
    cause: Option<io::Error>,
}

impl Error {
    /// The fault in one sentence. If a server failed, the end of its log follows.
    pub fn what(&self) -> String {
        self.what.clone()
    }

    /// Where: a file, a directory, an address. May be empty.
    pub fn place(&self) -> String {
        self.place.clone()
    }

    /// What the caller can do about it; may be empty.
    pub fn advice(&self) -> String {
        self.advice.clone()
    }

    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), place: String::new(), advice: String::new(), cause: None }
    }

    /// A failed operating system call; `doing` reads like "cannot create the directory".
    pub(crate) fn io(doing: impl fmt::Display, cause: io::Error) -> Self {
        Self { what: format!("{doing}: {cause}"), cause: Some(cause), ..Self::new("") }
    }

    pub(crate) fn at(self, place: impl Into<String>) -> Self {
        Self { place: place.into(), ..self }
    }

    pub(crate) fn at_path(self, path: &Path) -> Self {
        self.at(path.display().to_string())
    }

    pub(crate) fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: advice.into(), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.what, &self.place, &self.advice].map(String::as_str);
        f.write_str(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" - "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_joins_the_non_empty_parts() {
        let bare = Error::new("no server");
        assert_eq!(bare.to_string(), "no server");
        let full = Error::new("no server").at("/tmp/x").advise("start one");
        assert_eq!(full.to_string(), "no server - /tmp/x - start one");
        assert_eq!(Error::new("no server").advise("start one").to_string(), "no server - start one");
    }
}
