//! The fault of a file that is shown.

use std::fmt;

use crate::text::escape::escaped;

/// The fault of a file: problem, place and remedy. All of it is fit for a terminal: text from the
/// file is escaped.
#[derive(Clone, Debug)]
pub struct Error {
    what: String,
    place: String,
    advice: String,
}

impl Error {
    pub(crate) fn new(what: impl Into<String>, place: impl Into<String>, advice: impl Into<String>) -> Self {
        Error { what: what.into(), place: place.into(), advice: advice.into() }
    }

    /// The same error in a file.
    pub(crate) fn in_file(mut self, name: &str) -> Self {
        self.place = if self.place.is_empty() { name.to_owned() } else { format!("{name}, {}", self.place) };
        self
    }

    /// The problem.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Where: the file, and the place within it if that is known.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What to do; may be empty.
    pub fn advice(&self) -> &str {
        &self.advice
    }
}

impl From<sawmill_footer::Error> for Error {
    fn from(error: sawmill_footer::Error) -> Self {
        let safe = |text: String| escaped(&text).into_owned();
        Error::new(safe(error.what()), safe(error.place()), safe(error.advice()))
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
