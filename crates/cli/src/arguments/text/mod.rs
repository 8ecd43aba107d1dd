//! Options of delimited text, such as CSV, and which files are delimited text.

#[cfg(feature = "csv")]
mod with_csv;
#[cfg(any(test, not(feature = "csv")))]
mod without_csv;

#[cfg(feature = "csv")]
pub(crate) use with_csv::open;
#[cfg(not(feature = "csv"))]
pub(crate) use without_csv::open;

use std::path::Path;

use clap::{Args, ValueEnum};
use sawmill_store::Location;

use crate::arguments::size_arg;
use crate::error::Error;

/// The format of the input files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// By the extension: .csv, .tsv, .tab and .psv are delimited text, all others are Parquet.
    #[default]
    Auto,
    /// Parquet.
    Parquet,
    /// Delimited text, by default with commas.
    Csv,
    /// Delimited text, by default with tabs.
    Tsv,
}

/// Each option names its heading: a heading of the struct would also be that of the options after these.
const HEADING: &str = "Delimited text";

/// How to read delimited text.
#[derive(Args, Debug, Default)]
pub(crate) struct TextArgs {
    /// The format of the files [default: auto, by the extension: .csv, .tsv, .tab and .psv are delimited
    /// text, all others are Parquet].
    #[arg(long, value_enum, hide_possible_values = true, value_name = "auto|parquet|csv|tsv",
        help_heading = HEADING)]
    pub format: Option<InputFormat>,
    /// The character between fields; 'tab' or '\t' is a tab [default: a comma; a tab for .tsv and .tab, | for
    /// .psv].
    #[arg(long, value_name = "CHAR", value_parser = special, help_heading = HEADING)]
    pub delimiter: Option<u8>,
    /// The character around fields that contain delimiters or newlines; within them it is doubled. 'none'
    /// reads quotes as text [default: "].
    #[arg(long, value_name = "CHAR|none", value_parser = special_or_none, help_heading = HEADING)]
    pub quote: Option<Special>,
    /// The character before a quote within quotes, besides doubling it.
    #[arg(long, value_name = "CHAR", value_parser = special, help_heading = HEADING)]
    pub escape: Option<u8>,
    /// The first record has values and not the names of the columns, which are then column_1 and so on, or
    /// those of --names.
    #[arg(long, help_heading = HEADING)]
    pub no_header: bool,
    /// The names of the columns, instead of those of the header.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = HEADING)]
    pub names: Vec<String>,
    /// A word that stands for NULL outside of quotes. May be repeated [default: the empty field; with other
    /// words, give --null '' as well to keep it].
    #[arg(long, value_name = "WORD", help_heading = HEADING)]
    pub null: Vec<String>,
    /// The words of --null stand for NULL within quotes, too.
    #[arg(long, help_heading = HEADING)]
    pub null_quoted: bool,
    /// Skip lines that start with this character.
    #[arg(long, value_name = "CHAR", value_parser = special, help_heading = HEADING)]
    pub comment: Option<u8>,
    /// Skip this many lines at the start of each file, before the header.
    #[arg(long, value_name = "LINES", help_heading = HEADING)]
    pub skip_lines: Option<u64>,
    /// The types of columns, such as 'a=int32,b=decimal(10,2)'; those of others are inferred from a sample:
    /// bool, int16, int32, int64, float32, float64, decimal(P,S), date, time, timestamp, timestamptz (each
    /// also with _ns), uuid, json, text.
    #[arg(long, value_name = "NAME=TYPE,...", help_heading = HEADING)]
    pub types: Vec<String>,
    /// The longest record: each connection holds a whole one [default: 64MiB].
    #[arg(long, value_name = "BYTES", value_parser = size_arg::bytes, allow_hyphen_values = true,
        help_heading = HEADING)]
    pub max_record: Option<u64>,
}

/// A special character, or that there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Special(
    #[cfg_attr(not(feature = "csv"), allow(dead_code, reason = "only delimited text needs it"))]
    pub  Option<u8>,
);

fn special(text: &str) -> Result<u8, String> {
    match (text, text.as_bytes()) {
        ("tab" | "\\t", _) => Ok(b'\t'),
        (_, [byte]) if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(*byte),
        _ => Err("give one ASCII character, or 'tab'".to_owned()),
    }
}

fn special_or_none(text: &str) -> Result<Special, String> {
    if text == "none" { Ok(Special(None)) } else { special(text).map(|byte| Special(Some(byte))) }
}

impl TextArgs {
    /// An option that has a meaning for delimited text alone.
    fn given(&self) -> Option<&'static str> {
        let Self { format: _, delimiter, quote, escape, no_header, names, .. } = self;
        let Self { null, null_quoted, comment, skip_lines, types, max_record, .. } = self;
        let given = [
            ("--delimiter", delimiter.is_some()),
            ("--quote", quote.is_some()),
            ("--escape", escape.is_some()),
            ("--no-header", *no_header),
            ("--names", !names.is_empty()),
            ("--null", !null.is_empty()),
            ("--null-quoted", *null_quoted),
            ("--comment", comment.is_some()),
            ("--skip-lines", skip_lines.is_some()),
            ("--types", !types.is_empty()),
            ("--max-record", max_record.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// Whether the inputs are delimited text. Rejects inputs of both kinds, and options that the other kind
    /// does not have.
    pub(crate) fn is_meant(&self, places: &[Location]) -> Result<bool, Error> {
        let is_text = |place: &Location| match self.format.unwrap_or_default() {
            InputFormat::Auto => match place {
                Location::Path(path) => has_text_extension(path),
                Location::Object(url) => has_text_extension(Path::new(url.key())),
            },
            InputFormat::Parquet => false,
            InputFormat::Csv | InputFormat::Tsv => true,
        };
        let text = places.iter().find(|place| is_text(place));
        let other = places.iter().find(|place| !is_text(place));
        match (text, other) {
            (Some(text), Some(other)) => {
                let advice = "load them one after the other, with --mode append";
                Err(Error::usage(
                    "Parquet files together with delimited text",
                    format!("{text} and {other}"),
                    advice,
                ))
            }
            (None, _) if let Some(option) = self.given() => {
                let what = format!("{option} is available for delimited text only");
                let place = other.map(ToString::to_string).unwrap_or_default();
                Err(Error::usage(what, place, "leave the option out, or add --format csv"))
            }
            (text, _) => Ok(text.is_some()),
        }
    }
}

/// Whether files with this name are delimited text.
pub(crate) fn has_text_extension(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    extension.is_some_and(|extension| matches!(extension.as_str(), "csv" | "tsv" | "tab" | "psv"))
}
