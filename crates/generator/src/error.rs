//! The errors of the generator, in three parts: what went wrong, where, and what to do.

use std::fmt;
use std::io;
use std::path::Path;

/// An error of the generator.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    what: String,
    place: String,
    advice: String,
    leaves_files: bool,
}

/// The kinds of errors that a caller may want to distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The dataset spec is not valid, or the requested layout is impossible.
    Spec,
    /// A file could not be written.
    Io,
    /// Another run is writing the same files.
    Busy,
    /// A dataset cannot be finished: some of its files are missing or damaged.
    Incomplete,
    /// The caller's cancel flag was set.
    Cancelled,
}

/// The problem and its remedy. The caller adds the place.
pub(crate) type Complaint = (String, String);

/// The result of fallible functions.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of a place that the caller writes to.
    pub fn new(
        kind: ErrorKind,
        what: impl Into<String>,
        place: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Error { kind, what: what.into(), place: place.into(), advice: advice.into(), leaves_files: false }
    }

    pub(crate) fn spec(what: impl Into<String>, place: impl Into<String>, advice: impl Into<String>) -> Self {
        Error::new(ErrorKind::Spec, what, place, advice)
    }

    /// `doing` is a verb like "writing" or "creating"; `need` is the approximate number of bytes that were
    /// still to be written to the file, if known.
    pub(crate) fn io(error: &io::Error, doing: &str, path: &Path, need: Option<u64>) -> Self {
        let advice = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                let room =
                    need.map_or_else(String::new, |n| format!(" (about {n} bytes of this file are missing)"));
                format!("make room or write somewhere else{room}, then run the same command again")
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "choose a directory with write permission".to_owned()
            }
            io::ErrorKind::NotFound => "check that the directory exists".to_owned(),
            io::ErrorKind::BrokenPipe => "the reader of the output closed it".to_owned(),
            _ => "fix the cause, then run the same command again".to_owned(),
        };
        Error::new(ErrorKind::Io, format!("{doing} failed: {error}"), path.display().to_string(), advice)
    }

    /// Another run is working in `place`.
    pub(crate) fn busy(what: &str, place: &Path) -> Self {
        let advice = "wait until it ends; --resume and --overwrite wait automatically";
        Error::new(ErrorKind::Busy, what, place.display().to_string(), advice)
    }

    /// A codec failed on the page of a column.
    pub(crate) fn page(error: &io::Error, column: &str) -> Self {
        let (what, place) = (format!("compressing a page failed: {error}"), format!("column {column}"));
        Error::new(ErrorKind::Io, what, place, "choose another compression")
    }

    /// The error of a job that its caller cancelled.
    pub fn cancelled() -> Self {
        let advice = "unfinished files were removed; run the same command again to generate them";
        Error::new(ErrorKind::Cancelled, "interrupted", "", advice)
    }

    /// The same error of a run that leaves complete files, or none.
    pub(crate) fn leaving_files(self, leaves_files: bool) -> Self {
        Error { leaves_files, ..self }
    }

    /// Whether the run made or kept complete files before it failed.
    pub fn leaves_files(&self) -> bool {
        self.leaves_files
    }

    /// The same error, located in the file at `path`.
    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        let file = path.display().to_string();
        self.place = if self.place.is_empty() { file } else { format!("{file}, {}", self.place) };
        self
    }

    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What went wrong.
    pub fn what(&self) -> String {
        self.what.clone()
    }

    /// Where: a file, or the path of a field in the dataset spec.
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
        let parts = [&self.what, &self.place, &self.advice];
        let parts: Vec<&str> = parts.into_iter().map(String::as_str).filter(|p| !p.is_empty()).collect();
        f.write_str(&parts.join(" - "))
    }
}

impl std::error::Error for Error {}

impl From<sawmill_profile::ThreadFailure> for Error {
    fn from(failure: sawmill_profile::ThreadFailure) -> Self {
        let kind = if failure.is_panic() { ErrorKind::Io } else { ErrorKind::Spec };
        Error::new(kind, failure.what(), "", failure.advice())
    }
}

impl From<sawmill_store::Error> for Error {
    fn from(error: sawmill_store::Error) -> Self {
        use sawmill_store::Kind;
        let kind = match error.kind() {
            Kind::Cancelled => return Error::cancelled(),
            Kind::Usage => ErrorKind::Spec,
            Kind::Exists => ErrorKind::Busy,
            _ => ErrorKind::Io,
        };
        Error::new(kind, error.what(), error.place(), error.advice())
    }
}
