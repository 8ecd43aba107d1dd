//! What generated files can hold.

use clap::ValueEnum;

/// What files hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Parquet,
    /// Arrow IPC: files, a stream on standard output.
    Arrow,
    /// One JSON object a line.
    Ndjson,
    /// Comma-separated values behind a line of names; not for nested columns. Null is nothing, the empty string "".
    Csv,
}

impl Format {
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
            Format::Ndjson => "ndjson",
            Format::Csv => "csv",
        }
    }

    /// Its name on the command line, which is also that of its files.
    pub(crate) fn name(self) -> &'static str {
        self.extension()
    }

    /// Whether a terminal would show nothing but gibberish.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Format::Parquet | Format::Arrow)
    }
}
