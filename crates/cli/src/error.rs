//! The command's error type: `error: what - where - what to do`, and an exit code.

use std::path::Path;
use std::{fmt, io};

use sawmill_inspect::JsonSafe;
use serde::Serialize;

use crate::screen::escape::short;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Error {
    what: String,
    place: String,
    advice: String,
    pub exit: Exit,
    /// The possible remains of a load that failed with this error: none (`None`), an unfinished load (`false`), or a
    /// complete table (`true`).
    pub made_table: Option<bool>,
}

/// Exit codes. clap uses 2 for an invalid command line, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Exit {
    /// The command could not do its work.
    Failure = 1,
    /// The arguments contradict each other or the input.
    Usage = 2,
    /// A benchmark was slower than allowed.
    Slower = 3,
    /// The target differs from the source.
    Mismatch = 4,
    /// Stopped by Ctrl-C (128 + SIGINT) or another signal.
    Interrupted = 130,
    /// The reader of our output went away (128 + SIGPIPE). No error is printed.
    BrokenPipe = 141,
}

/// The result of fallible functions.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn new(
        exit: Exit,
        what: impl Into<String>,
        place: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Error { what: what.into(), place: place.into(), advice: advice.into(), exit, made_table: None }
    }

    pub(crate) fn usage(
        what: impl Into<String>,
        place: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self::new(Exit::Usage, what, place, advice)
    }

    pub(crate) fn failure(
        what: impl Into<String>,
        place: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self::new(Exit::Failure, what, place, advice)
    }

    /// A sub-command, an option or an input that only the full build has.
    pub(crate) fn not_built(named: impl Into<String>) -> Self {
        let advice = "install the full build: cargo install --path crates/cli --profile dist --features full; or run it: cargo run \
                      --release --features full -- ...";
        Self::usage("the demo's build of sawmill leaves it out", named, advice)
    }

    /// Standard output could not be written.
    pub(crate) fn output(error: &io::Error) -> Self {
        let exit = match error.kind() {
            io::ErrorKind::BrokenPipe => Exit::BrokenPipe,
            _ => Exit::Failure,
        };
        Self::new(
            exit,
            format!("writing failed: {error}"),
            "standard output",
            "free some space, or write elsewhere",
        )
    }

    /// An output failed. `doing` is a verb like "writing".
    pub(crate) fn of_output(doing: &str, path: &Path, error: &io::Error) -> Self {
        if let Some(store) = error.get_ref().and_then(|cause| cause.downcast_ref::<sawmill_store::Error>()) {
            return store.clone().into();
        }
        let advice = match error.kind() {
            io::ErrorKind::BrokenPipe => return Self::output(error),
            io::ErrorKind::StorageFull => {
                "free some space or write elsewhere, then run the same command again"
            }
            io::ErrorKind::NotFound => "create the folder first",
            io::ErrorKind::AlreadyExists => "--overwrite replaces it",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "write to another folder",
            _ => "fix the cause, then run the same command again",
        };
        Self::failure(format!("{doing} failed: {error}"), path.display().to_string(), advice)
    }

    /// The error of files that are wrong or could not be read: the only one, or their number once each is reported.
    pub(crate) fn of_files(mut failed: Vec<Error>, files: usize) -> Result<()> {
        match failed.len() {
            0 | 1 => failed.pop().map_or(Ok(()), Err),
            wrong => {
                failed.iter().for_each(crate::report);
                Err(Self::failure(format!("{wrong} of {files} files are wrong or could not be read"), "", ""))
            }
        }
    }

    /// The same error about a file that the user knows by another name.
    pub(crate) fn renamed(self, path: &str, name: &str) -> Self {
        let Error { what, place, advice, .. } = &self;
        let [what, place, advice] = [what, place, advice].map(|part| part.replace(path, name));
        Error { what, place, advice, ..self }
    }

    /// The same error, in one of several tables if it names only a field.
    pub(crate) fn in_table(self, table: &str) -> Self {
        match self.place.strip_prefix("field ") {
            Some(field) => Error { place: format!("table {table}, field {field}"), ..self },
            None => self,
        }
    }

    /// The same error with more to its advice.
    pub(crate) fn advise_also(self, more: &str) -> Self {
        Error { advice: format!("{}; {more}", self.advice), ..self }
    }

    /// The same error with other advice if its own names one of these options.
    pub(crate) fn advise_instead_of(self, options: &[&str], advice: &str) -> Self {
        match options.iter().any(|option| self.advice.contains(option)) {
            true => Error { advice: advice.to_owned(), ..self },
            false => self,
        }
    }

    /// Marks an error that happened after the table was complete.
    pub(crate) fn after_loading(self) -> Self {
        Error { made_table: Some(true), ..self }
    }

    /// The error's parts, for programs.
    pub(crate) fn parts(&self) -> serde_json::Value {
        let Self { what, place, advice, exit, .. } = self;
        serde_json::json!({
            "code": exit, "exit": *exit as u8, "what": short(what), "where": short(place), "advice": short(advice),
        })
    }

    /// The error for programs, on one line: `{"error": {"code", "exit", "what", "where", "advice"}}`. The codes are
    /// stable, as the exit codes are.
    pub(crate) fn json(&self) -> String {
        let mut line = Vec::new();
        // A vector takes all bytes.
        let _ = serde_json::json!({ "error": self.parts() })
            .serialize(&mut serde_json::Serializer::new(JsonSafe(&mut line)));
        String::from_utf8_lossy(&line).into_owned()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.what, &self.place, &self.advice];
        let parts: Vec<_> =
            parts.into_iter().filter(|part| !part.is_empty()).map(|part| short(part)).collect();
        f.write_str(&parts.join(" - "))
    }
}

impl From<sawmill_generator::Error> for Error {
    fn from(error: sawmill_generator::Error) -> Self {
        use sawmill_generator::ErrorKind;
        // The library names its feature, the command its build.
        if error.what().ends_with("the feature tpch") {
            return Self::not_built(error.place().to_owned());
        }
        let reader_gone = io::Error::from_raw_os_error(libc::EPIPE).to_string();
        let exit = match error.kind() {
            ErrorKind::Io if error.what().ends_with(&reader_gone) => Exit::BrokenPipe,
            ErrorKind::Spec => Exit::Usage,
            ErrorKind::Io | ErrorKind::Busy => Exit::Failure,
            ErrorKind::Incomplete => Exit::Mismatch,
            ErrorKind::Cancelled => Exit::Interrupted,
        };
        Self::new(exit, error.what(), error.place(), error.advice())
    }
}

impl From<sawmill_profile::ThreadFailure> for Error {
    fn from(failure: sawmill_profile::ThreadFailure) -> Self {
        Self::failure(failure.what(), "", failure.advice())
    }
}

impl From<sawmill_localpg::Error> for Error {
    fn from(error: sawmill_localpg::Error) -> Self {
        Self::failure(error.what(), error.place(), error.advice())
    }
}

impl From<sawmill_store::Error> for Error {
    fn from(error: sawmill_store::Error) -> Self {
        use sawmill_store::Kind;
        let exit = match error.kind() {
            Kind::Usage => Exit::Usage,
            Kind::Cancelled => Exit::Interrupted,
            _ => Exit::Failure,
        };
        Self::new(exit, error.what(), error.place(), error.advice())
    }
}

impl From<sawmill_inspect::Error> for Error {
    fn from(error: sawmill_inspect::Error) -> Self {
        Self::failure(error.what(), error.place(), error.advice())
    }
}

/// It may contain names from the file, which `sawmill-inspect` escapes.
impl From<sawmill_footer::Error> for Error {
    fn from(error: sawmill_footer::Error) -> Self {
        sawmill_inspect::Error::from(error).into()
    }
}

impl From<sawmill_profile::Error> for Error {
    fn from(error: sawmill_profile::Error) -> Self {
        use sawmill_profile::Kind;
        let exit = match error.kind() {
            Kind::Cancelled => Exit::Interrupted,
            Kind::Config => Exit::Usage,
            Kind::Mismatch => Exit::Mismatch,
            _ => Exit::Failure,
        };
        let made_table = match error.kind() {
            Kind::Config | Kind::Exists | Kind::Busy | Kind::Schema | Kind::Failed => None,
            _ => Some(false),
        };
        Error { made_table, ..Self::new(exit, error.what(), error.place(), error.advice()) }
    }
}
