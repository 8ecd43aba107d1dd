//! Options of delimited text, such as CSV, and which files are delimited text.

mod listed_types;
mod table_text;
#[cfg_attr(not(feature = "full"), path = "../../demo_build/with_csv.rs")]
mod with_csv;

pub(crate) use table_text::TableText;
pub(crate) use with_csv::open_text;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use sawmill_cratedb::is_native_type;
use sawmill_store::Location;

use crate::arguments::given::Given;
use crate::arguments::size_arg;
use crate::arguments::target::Destination;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::screen::phases;

/// The format of the input files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// By the extension: .csv, .tsv, .tab and .psv are delimited text, .ndjson and .jsonl are JSON, also before
    /// .gz, .zst, .bz2, .xz and .lz4; all others are Parquet.
    #[default]
    Auto,
    /// Parquet.
    Parquet,
    /// Delimited text, by default with commas.
    Csv,
    /// Delimited text, by default with tabs.
    Tsv,
    /// A JSON object on each line.
    Ndjson,
}

/// What files contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    Delimited,
    Json,
}

/// What `--types` says for the types of the table's columns.
const TABLE: &str = "table";

/// Each option names its heading: a heading of the struct would also apply to the options after it.
const HEADING: &str = "Text";
/// The same for the values of fields.
const VALUES: &str = "Text values";
/// The options that JSON has, too.
const OF_ALL_TEXT: [&str; 7] =
    ["--skip-lines", "--text-encoding", "--true", "--false", "--time-format", "--sample", "--max-record"];

/// How to read delimited text and JSON.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TextArgs {
    #[command(flatten)]
    pub given: Given,
    /// The format of the files [default: auto, by the extension before .gz or the like]. .csv, .tsv, .tab and .psv
    /// are delimited text, .ndjson and .jsonl have a JSON object on each line, all others are Parquet. Sawmill
    /// recognises text compressed with gzip, zstd, bzip2, xz or LZ4 under any name.
    #[arg(long, value_enum, hide_possible_values = true, value_name = "auto|parquet|csv|tsv|ndjson",
        help_heading = HEADING)]
    pub format: Option<InputFormat>,
    /// The separator of fields, one character or several; 'tab' or '\t' is a tab, '\x1f' the byte of this number,
    /// ', *' a comma and any blanks [default: a tab for .tsv and .tab, | for .psv, else a comma, or the one of ; tab |
    /// that fits all records at the start of the file].
    #[arg(long, value_name = "CHARS", value_parser = delimiter, help_heading = HEADING)]
    pub delimiter: Option<String>,
    /// The character around fields that contain delimiters or newlines; within them it is doubled. 'none'
    /// reads quotes as text [default: "].
    #[arg(long, value_name = "CHAR|none", value_parser = special_or_none, help_heading = HEADING)]
    pub quote: Option<Special>,
    /// The character before a quote within quotes, besides doubling it.
    #[arg(long, value_name = "CHAR", value_parser = special, help_heading = HEADING)]
    pub escape: Option<u8>,
    /// The first record has values, not column names. Columns are then called column_1 and so on, or as --names
    /// says.
    #[arg(long, help_heading = HEADING)]
    pub no_header: bool,
    /// The names of the columns, instead of the header's.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = HEADING)]
    pub names: Vec<String>,
    /// A word that means NULL outside quotes. May be repeated [default: the empty field; with other
    /// words, give --null '' as well to keep it].
    #[arg(long, value_name = "WORD", help_heading = VALUES)]
    pub null: Vec<String>,
    /// The words of --null also mean NULL within quotes.
    #[arg(long, help_heading = VALUES)]
    pub null_quoted: bool,
    /// Skip lines that start with this character.
    #[arg(long, value_name = "CHAR", value_parser = special, help_heading = HEADING)]
    pub comment: Option<u8>,
    /// Skip this many lines at the start of each file, before the header.
    #[arg(long, value_name = "LINES", help_heading = HEADING)]
    pub skip_lines: Option<u64>,
    /// The types of columns, such as 'a=int32,b=decimal(10,2),c=date(%d.%m.%Y)', @FILE with one on each line, or
    /// the word table for the column types of an existing PostgreSQL table. May be repeated. Sawmill infers the types
    /// of other columns from a sample: bool, int16, int32, int64, float32, float64, decimal(P,S), date, time,
    /// timestamp, timestamptz (each also with _ns, or with a pattern in parentheses), epoch_s, epoch_ms, epoch_us,
    /// epoch_ns, uuid, json, text. For columns of CrateDB, of Parquet too: geo_point, geo_shape,
    /// float_vector(N), ip, bit(N), char(N).
    #[arg(long, value_name = "NAME=TYPE,...|@FILE|table", help_heading = VALUES)]
    pub types: Vec<String>,
    /// Columns of the table by their names in the files, with their types in SQL.
    #[arg(skip)]
    pub table_types: Vec<(String, String)>,
    /// The columns that an existing table stores as text.
    #[arg(skip)]
    pub table_text: TableText,
    /// Types that only CrateDB has are among the types.
    #[arg(skip)]
    pub for_crate_db: bool,
    /// Fields are text as it is written, because they are written as text again.
    #[arg(skip)]
    pub as_written: bool,
    /// How text is encoded if it is not UTF-8, such as windows-1252, iso-8859-15, shift_jis or utf-16le. Text
    /// with the byte order mark of UTF-16 needs no option.
    #[arg(long, value_name = "NAME", help_heading = HEADING)]
    pub text_encoding: Option<String>,
    /// What to do with records that have fewer or more fields than there are columns: fill makes missing
    /// fields NULL, fill-and-cut also leaves out surplus fields [default: error].
    #[arg(long, value_enum, hide_possible_values = true, value_name = "error|fill|fill-and-cut", help_heading = HEADING)]
    pub ragged: Option<RaggedArg>,
    /// Numbers have a comma before their fraction, as in 12,50.
    #[arg(long, help_heading = VALUES)]
    pub decimal_comma: bool,
    /// The character between groups of three digits, as in 1,234,567 or 1.234.567,89.
    #[arg(long, value_name = "CHAR", value_parser = special, help_heading = VALUES)]
    pub thousands: Option<u8>,
    /// A word for true, in any case. May be repeated [default: true; with the type bool also t, yes, y, on, 1].
    #[arg(long = "true", value_name = "WORD", help_heading = VALUES)]
    pub true_words: Vec<String>,
    /// A word for false, in any case. May be repeated.
    #[arg(long = "false", value_name = "WORD", help_heading = VALUES)]
    pub false_words: Vec<String>,
    /// How dates, times or both are written, besides ISO 8601: a pattern such as '%d.%m.%Y %H:%M' or
    /// '%d/%b/%Y:%H:%M:%S %z'. May be repeated: a column takes the first pattern that fits all values of the
    /// sample, or else each value takes the first that fits it.
    #[arg(long, value_name = "PATTERN", help_heading = VALUES)]
    pub time_format: Vec<String>,
    /// How many records to look at for the types, spread over all files; all looks at every record, so that
    /// none surprises the load [default: 16384].
    #[arg(long, value_name = "RECORDS|all", value_parser = sample, help_heading = VALUES)]
    pub sample: Option<u64>,
    /// The file for records that cannot be read, which are then left out, and how many may be.
    #[arg(skip)]
    pub rejects: Option<(PathBuf, Option<u64>)>,
    /// The longest record: each connection holds a whole one [default: 64MiB].
    #[arg(long, value_name = "BYTES", value_parser = size_arg::bytes, allow_hyphen_values = true,
        help_heading = HEADING)]
    pub max_record: Option<u64>,
}

/// What to do with records that have fewer or more fields than there are columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RaggedArg {
    Error,
    Fill,
    FillAndCut,
}

/// A special character, or that there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Special(pub Option<u8>);

fn delimiter(text: &str) -> Result<String, String> {
    match special(text) {
        Ok(byte) => Ok(char::from(byte).to_string()),
        Err(_) if text.is_empty() || text.contains(['\n', '\r']) => {
            Err("give one character or several, without line breaks".to_owned())
        }
        Err(_) => Ok(text.to_owned()),
    }
}

fn special(text: &str) -> Result<u8, String> {
    let by_number = text.strip_prefix("\\x").and_then(|digits| u8::from_str_radix(digits, 16).ok());
    match (text, text.as_bytes()) {
        ("tab" | "\\t", _) => Ok(b'\t'),
        _ if let Some(byte) = by_number.filter(|byte| byte.is_ascii() && !matches!(byte, b'\n' | b'\r')) => {
            Ok(byte)
        }
        (_, [byte]) if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(*byte),
        _ => Err("give one ASCII character, or 'tab'".to_owned()),
    }
}

fn special_or_none(text: &str) -> Result<Special, String> {
    if text == "none" { Ok(Special(None)) } else { special(text).map(|byte| Special(Some(byte))) }
}

impl TextArgs {
    /// An option that has a meaning for text alone; with JSON, one that has none for JSON.
    fn given(&self, for_json: bool) -> Option<String> {
        let means_nothing = |option: &String| match option.as_str() {
            "--types" => for_json || self.types.is_empty() || self.are_crate_db_s(),
            option => option == "--format" || (for_json && OF_ALL_TEXT.contains(&option)),
        };
        let mut given = self.given.all_of::<Self>().into_iter().filter(|option| !means_nothing(option));
        let rejects = self.rejects.as_ref().filter(|_| !for_json);
        given.next().or(rejects.map(|_| "--rejects FILE.csv".to_owned()))
    }

    /// These options, with the types of the target's columns where `--types table` asks for them.
    ///
    /// # Errors
    /// A target without an existing table; columns that are matched by position.
    pub(crate) fn with_types_of(
        &self,
        target: &Destination,
        rename: &[(String, String)],
        by_position: bool,
    ) -> Result<Cow<'_, Self>> {
        if !self.types.iter().any(|list| list == TABLE) {
            return Ok(match target {
                Destination::CrateDb(_) => Cow::Owned(Self { for_crate_db: true, ..self.clone() }),
                Destination::Postgres(_) => Cow::Borrowed(self),
            });
        }
        let refused = |what: &str| {
            let advice = "give the types by name: --types 'a=int32,b=decimal(10,2)'";
            Err(Error::usage(what, "--types table", advice))
        };
        let Destination::Postgres(postgres) = target else {
            return refused("only the types of PostgreSQL's columns are known");
        };
        if by_position {
            return refused("the table's columns are matched by position, not by name");
        }
        let mut columns = interrupt::during(|control| postgres.columns_of_table(control))?;
        for (name, _) in &mut columns {
            if let Some((in_files, _)) = rename.iter().find(|(_, in_table)| in_table == name) {
                name.clone_from(in_files);
            }
        }
        let types = self.types.iter().filter(|list| *list != TABLE).cloned().collect();
        Ok(Cow::Owned(Self { types, table_types: columns, ..self.clone() }))
    }

    /// The target with those types that only CrateDB has.
    ///
    /// # Errors
    /// A list that cannot be read.
    pub(crate) fn typed(&self, target: Destination, rename: &[(String, String)]) -> Result<Destination> {
        if !self.for_crate_db {
            return Ok(target);
        }
        let in_table = |name: String| match rename.iter().find(|(in_files, _)| *in_files == name) {
            Some((_, in_table)) => in_table.clone(),
            None => name,
        };
        let native = listed_types::listed(&self.types)?.into_iter().filter(|(_, of)| is_native_type(of));
        let types = native.map(|(name, of)| (in_table(name), of)).collect();
        Ok(target.with(|postgres| postgres, |crate_db| crate_db.with(|options| options.types = types)))
    }

    /// Whether only CrateDB has the given types: they are for files of any format.
    fn are_crate_db_s(&self) -> bool {
        let listed = listed_types::listed(&self.types);
        self.for_crate_db && listed.is_ok_and(|types| types.iter().all(|(_, of)| is_native_type(of)))
    }

    /// The files of --rejects that take records of text that cannot be read, and rows that the database refuses.
    ///
    /// # Errors
    /// Two files for the same.
    pub(crate) fn files_of_rejects<'a>(
        &self,
        inputs: &[PathBuf],
        rejects: &'a [PathBuf],
        json: bool,
    ) -> Result<(Option<&'a Path>, Option<&'a Path>)> {
        let (mut lines, mut rows) = (None, None);
        for file in rejects {
            let (place, what) = match self.takes_rejects(inputs, file, json) {
                true => (&mut lines, "two files for records that cannot be read"),
                false => (&mut rows, "two files for rows that the database refuses"),
            };
            if place.replace(file.as_path()).is_some() {
                let place = format!("--rejects {}", file.display());
                return Err(Error::usage(
                    what,
                    place,
                    "name one FILE.csv for records of text, the other not",
                ));
            }
        }
        Ok((lines, rows))
    }

    /// Whether a file of --rejects takes records of text that cannot be read: it is named as CSV, or as NDJSON
    /// if `json` says so, and the inputs are text or may contain some.
    fn takes_rejects(&self, inputs: &[PathBuf], rejects: &Path, json: bool) -> bool {
        let extension = rejects.extension().map(|name| name.to_string_lossy().to_lowercase());
        let is_named_so = match extension.as_deref() {
            Some("csv" | "tsv" | "txt") => true,
            Some("ndjson" | "jsonl") => json,
            _ => false,
        };
        let is_text = match self.format.unwrap_or_default() {
            InputFormat::Auto => inputs.iter().any(|input| has_text_extension(input) || input.is_dir()),
            InputFormat::Parquet => false,
            InputFormat::Csv | InputFormat::Tsv | InputFormat::Ndjson => true,
        };
        is_named_so && is_text
    }

    /// Whether an option asks for the meaning of values, beyond their text.
    pub(crate) fn has_values(&self) -> bool {
        let words = [&self.types, &self.true_words, &self.false_words, &self.time_format];
        words.iter().any(|given| !given.is_empty())
            || self.decimal_comma
            || self.thousands.is_some()
            || self.sample.is_some()
    }

    /// These options, with `rejects` as the file of records that cannot be read, up to `most`.
    pub(crate) fn with_rejects(&self, rejects: Option<&Path>, most: Option<u64>) -> Cow<'_, Self> {
        let Some(rejects) = rejects else { return Cow::Borrowed(self) };
        Cow::Owned(Self { rejects: Some((rejects.to_owned(), most)), ..self.clone() })
    }

    /// What kind of text the inputs are; `None` for Parquet. Rejects inputs of several kinds, and options that
    /// the kind does not have.
    pub(crate) fn meant(&self, places: &[Location]) -> Result<Option<TextKind>> {
        let kind = |place: &Location| match self.format.unwrap_or_default() {
            InputFormat::Auto => match place {
                Location::Path(path) => text_kind(path),
                Location::Object(url) => text_kind(Path::new(url.key())),
            },
            InputFormat::Parquet => None,
            InputFormat::Csv | InputFormat::Tsv => Some(TextKind::Delimited),
            InputFormat::Ndjson => Some(TextKind::Json),
        };
        let first = places.first();
        let first_kind = first.and_then(kind);
        if let (Some(first), Some(other)) = (first, places.iter().find(|place| kind(place) != first_kind)) {
            let advice = "load them one after the other, with --mode append";
            return Err(Error::usage("files of several formats", format!("{first} and {other}"), advice));
        }
        let place = || first.map(ToString::to_string).unwrap_or_default();
        match first_kind {
            None if let Some(option) = self.given(false) => {
                let what = format!("{option} is available for text only");
                let advice = "leave the option out, or add --format csv or --format ndjson";
                Err(Error::usage(what, place(), advice))
            }
            Some(TextKind::Json) if let Some(option) = self.given(true) => {
                let what = format!("{option} is available for delimited text only");
                Err(Error::usage(what, place(), "leave the option out"))
            }
            kind => Ok(kind),
        }
    }
}

fn sample(text: &str) -> Result<u64, String> {
    if text == "all" { Ok(u64::MAX) } else { phases::count(text).map_err(|error| error.to_string()) }
}

/// Whether files with this name are text.
pub(crate) fn has_text_extension(path: &Path) -> bool {
    text_kind(path).is_some()
}

/// The kind of text by the extension, before a compressed file's; `None` if it is not text.
pub(crate) fn text_kind(path: &Path) -> Option<TextKind> {
    let extension =
        |path: &Path| path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let of_text = match extension(path).as_deref() {
        Some("gz" | "zst" | "zstd" | "bz2" | "xz" | "lz4") => {
            path.file_stem().and_then(|stem| extension(Path::new(stem)))
        }
        of_text => of_text.map(str::to_owned),
    };
    match of_text.as_deref()? {
        "csv" | "tsv" | "tab" | "psv" => Some(TextKind::Delimited),
        "ndjson" | "jsonl" => Some(TextKind::Json),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_of_a_compressed_file_is_that_before_the_last() {
        for name in ["a.csv", "a.CSV.GZ", "a.tsv.zst", "a.b.psv.xz", "a.tab.lz4", "a.csv.bz2"] {
            assert!(has_text_extension(Path::new(name)), "{name}");
        }
        for name in ["a.gz", "csv", "a.csv.zip", "a.parquet", "a.csv.gz.gz"] {
            assert!(!has_text_extension(Path::new(name)), "{name}");
        }
    }
}
