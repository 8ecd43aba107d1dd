//! The error of Delta tables: problem, place and remedy.

use std::fmt;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error in three parts; `Display` joins those that are not empty with `" - "`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    what: String,
    place: String,
    advice: String,
    /// Boxed, as results are returned everywhere and errors are rare.
    store: Option<Box<sawmill_store::Error>>,
}

impl Error {
    /// Returns an error; `what` names the problem.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), place: String::new(), advice: String::new(), store: None }
    }

    /// Adds the place: the table, a file of it, or a column.
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = place.into();
        self
    }

    /// Adds what to do about it.
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
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

    /// Returns the error of the table's store, if it is one.
    pub fn of_store(&self) -> Option<&sawmill_store::Error> {
        self.store.as_deref()
    }
}

impl From<sawmill_store::Error> for Error {
    fn from(error: sawmill_store::Error) -> Self {
        let mut own = Self::new(error.what()).at(error.place()).advise(error.advice());
        own.store = Some(Box::new(error));
        own
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.what, &self.place, &self.advice];
        let parts: Vec<&str> =
            parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        f.write_str(&parts.join(" - "))
    }
}

impl std::error::Error for Error {}
