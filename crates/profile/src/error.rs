//! The crate's only error type: problem, place and remedy.

use std::fmt;

/// An error in three parts. [`fmt::Display`] joins the non-empty ones with `" - "`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    what: String,
    place: String,
    advice: String,
}

impl Error {
    /// An error from its three parts; display omits empty ones.
    pub fn new(what: impl Into<String>, place: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { what: what.into(), place: place.into(), advice: advice.into() }
    }

    /// The problem.
    pub fn what(&self) -> String {
        self.what.clone()
    }

    /// Where: a file, a command, a process, the parsed text.
    pub fn place(&self) -> String {
        self.place.clone()
    }

    /// What to do about it.
    pub fn advice(&self) -> String {
        self.advice.clone()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for part in [&self.what, &self.place, &self.advice] {
            if !part.is_empty() {
                write!(f, "{separator}{part}")?;
                separator = " - ";
            }
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// The result of this crate's fallible functions.
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_parts_are_left_out_of_the_text() {
        assert_eq!(Error::new("no such process", "pid 7", "").to_string(), "no such process - pid 7");
        assert_eq!(Error::new("a", "", "c").to_string(), "a - c");
    }
}
