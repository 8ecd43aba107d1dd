//! The error of jobs and of their measurement: problem, place and remedy.
//!
//! Every failure of a load is of this type. Its kind decides what a load does next (it retries only after a
//! lost connection) and which exit code a command chooses.

use std::fmt;

use crate::trace::threads::ThreadFailure;
use crate::trace::unit_key::UnitKey;

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The caller raised the cancel flag.
    Cancelled,
    /// An address, option or name that cannot be used.
    Config,
    /// A source that cannot be read: missing, truncated, corrupt, not Parquet.
    Source,
    /// A source file that is not the one with which the load began.
    Changed,
    /// Columns that do not fit together, among the files or between files and table.
    Schema,
    /// One value that the target cannot hold.
    Value,
    /// A server that cannot be reached, or a connection that was lost.
    Connection,
    /// The server rejected a request.
    Server,
    /// The target already exists, or an object of another load blocks the load.
    Exists,
    /// The same load is under way elsewhere.
    Busy,
    /// Target and source differ.
    Mismatch,
    /// An output file that cannot be written, such as the file of rejected rows.
    Output,
    /// Something cannot be measured or shown, or a text has the wrong form.
    Failed,
}

/// An error in three parts; `Display` joins those that are not empty with `" - "`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    what: String,
    place: String,
    advice: String,
    /// The rows that it is about, if their place is still to be found.
    rows: Option<Box<Rows>>,
}

/// The first and the last of some rows, each by its unit and its number, counted as units count.
type Rows = ((UnitKey, u64), (UnitKey, u64));

/// The result of fallible functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns an error of this kind; `what` names the problem.
    pub fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), place: String::new(), advice: String::new(), rows: None }
    }

    /// Returns an error of the kind [`Kind::Failed`] from its three parts; display omits empty parts.
    pub fn failed(what: impl Into<String>, place: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Kind::Failed, what).at(place).advise(advice)
    }

    /// Adds the place: file, row group, row, column, table or address.
    pub fn at(self, place: impl Into<String>) -> Self {
        Self { place: place.into(), ..self }
    }

    /// Adds what to do about it.
    pub fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: advice.into(), ..self }
    }

    /// Adds the first and the last of the rows that it is about, each by its unit and its number, which counts as
    /// units do: [`placed_by`](Self::placed_by) their source it says where they are.
    pub fn of_rows(self, first: (UnitKey, u64), last: (UnitKey, u64)) -> Self {
        Self { rows: Some(Box::new((first, last))), ..self }
    }

    /// Replaces the place by the place of its rows, if `place` knows it.
    pub fn placed_by(mut self, place: impl Fn(UnitKey, u64) -> Option<String>) -> Self {
        let Some((first, last)) = self.rows.take().map(|rows| *rows) else { return self };
        match (place(first.0, first.1), first == last) {
            (Some(first), true) => self.place = first,
            (Some(first), false) => {
                if let Some(last) = place(last.0, last.1) {
                    self.place = format!("{first}, or one up to {last}");
                }
            }
            (None, _) => {}
        }
        self
    }

    /// Returns the error for cancelled work.
    pub fn cancelled() -> Self {
        Self::new(Kind::Cancelled, "cancelled").advise("run the same command again to go on")
    }

    /// Returns its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the problem.
    pub fn what(&self) -> String {
        self.what.clone()
    }

    /// Returns the place: file, row group, row, column, table or address. May be empty.
    pub fn place(&self) -> String {
        self.place.clone()
    }

    /// Returns what to do about it. May be empty.
    pub fn advice(&self) -> String {
        self.advice.clone()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.what, &self.place, &self.advice].map(String::as_str);
        f.write_str(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" - "))
    }
}

impl std::error::Error for Error {}

impl From<sawmill_store::Error> for Error {
    fn from(error: sawmill_store::Error) -> Self {
        use sawmill_store::Kind as Of;
        let kind = match error.kind() {
            Of::Usage => Kind::Config,
            Of::Changed => Kind::Changed,
            Of::Cancelled => Kind::Cancelled,
            _ => Kind::Source,
        };
        Self::new(kind, error.what()).at(error.place()).advise(error.advice())
    }
}

impl From<ThreadFailure> for Error {
    fn from(failure: ThreadFailure) -> Self {
        let kind = if failure.is_panic() { Kind::Source } else { Kind::Config };
        Self::new(kind, failure.what()).advise(failure.advice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_parts_are_left_out_of_the_message() {
        let error = Error::new(Kind::Source, "not a Parquet file").advise("give a Parquet file");
        assert_eq!(error.to_string(), "not a Parquet file - give a Parquet file");
        assert_eq!(error.at("a.txt").to_string(), "not a Parquet file - a.txt - give a Parquet file");
    }
}
