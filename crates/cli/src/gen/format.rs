//! The format of generated files.

use clap::ValueEnum;

/// The format of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Parquet,
    /// Arrow IPC: the file format, or the stream format on standard output.
    Arrow,
    /// One JSON object on each line.
    Ndjson,
    /// Comma-separated values after a line of names; not for nested columns. Null is empty, the empty string
    /// is "".
    Csv,
}

impl Format {
    /// The extension of its files, which is also its name on the command line.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
            Format::Ndjson => "ndjson",
            Format::Csv => "csv",
        }
    }

    /// Whether a terminal cannot show it.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Format::Parquet | Format::Arrow)
    }
}
