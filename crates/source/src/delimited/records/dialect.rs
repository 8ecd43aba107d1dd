//! How text is divided into records and fields, and which fields are NULL.

use std::ops::Range;
use std::path::Path;

use sawmill_profile::{Error, Kind, Result};

use crate::delimited::columns::formats::Formats;
use crate::delimited::content::{UNIT_SEPARATOR, encoding_named};

/// The form of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordForm {
    /// Fields between delimiters.
    #[default]
    Delimited,
    /// A JSON object on each line.
    Json,
}

/// How to treat records that have fewer or more fields than there are columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ragged {
    /// They are errors.
    #[default]
    Refused,
    /// Missing fields are NULL; more fields than columns are an error.
    Filled,
    /// Missing fields are NULL; fields beyond the columns are left out.
    FilledAndCut,
}

/// How text is divided into records and fields, and which fields are NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The form of records. For JSON, only `encoding`, `skip_lines`, `longest_record` and `formats` matter.
    pub records: RecordForm,
    /// The name of the text's encoding; `None`: UTF-8, or UTF-16 with a byte order mark.
    pub encoding: Option<String>,
    /// The byte between fields; `None`: a tab in files named `.tsv` and `.tab`, `|` in `.psv`, else a comma.
    pub delimiter: Option<u8>,
    /// A delimiter of several bytes, instead. Text is copied for it, as text in another encoding is.
    pub long_delimiter: Option<String>,
    /// The byte around fields that contain delimiters and newlines. Within them it is doubled.
    pub quote: Option<u8>,
    /// The byte before a quote, or before itself, within quotes.
    pub escape: Option<u8>,
    /// Lines that start with this byte are skipped.
    pub comment: Option<u8>,
    /// Whether the first record contains the names of the columns.
    pub header: bool,
    /// The names of the columns. If empty, the header has them, or they are `column_1` and so on.
    pub names: Vec<String>,
    /// The words that mean NULL.
    pub nulls: Vec<String>,
    /// Whether these words also mean NULL within quotes.
    pub quoted_nulls: bool,
    /// How many lines to skip at the start of each file.
    pub skip_lines: u64,
    /// Whether the start of a text may show other quotes, an escape and the lines of a title, where it does not fit
    /// [`quote`](Self::quote), [`escape`](Self::escape) and [`skip_lines`](Self::skip_lines).
    pub may_adapt: bool,
    /// How to treat records that have fewer or more fields than there are columns.
    pub ragged: Ragged,
    /// How values are written.
    pub formats: Formats,
    /// The longest record, in bytes: a reader holds a whole record.
    pub longest_record: usize,
}

impl Default for Dialect {
    fn default() -> Self {
        Self {
            records: RecordForm::Delimited,
            encoding: None,
            delimiter: None,
            long_delimiter: None,
            quote: Some(b'"'),
            escape: None,
            comment: None,
            header: true,
            names: Vec::new(),
            nulls: vec![String::new()],
            quoted_nulls: false,
            skip_lines: 0,
            may_adapt: true,
            ragged: Ragged::Refused,
            formats: Formats::default(),
            longest_record: 64 << 20,
        }
    }
}

/// The longest record that a user may allow: positions in a reader's buffer have 32 bits.
const MAX_LENGTH: usize = 1 << 30;

impl Dialect {
    /// Checks that the special bytes are distinct ASCII characters.
    ///
    /// # Errors
    /// Two special bytes that are the same; a byte that cannot be special.
    pub(crate) fn check(&self, delimiter: u8) -> Result<()> {
        let special = [
            ("delimiter", Some(delimiter)),
            ("quote", self.quote),
            ("escape", self.escape.filter(|escape| Some(*escape) != self.quote)),
            ("comment", self.comment),
        ];
        let refused = |what: String| Err(Error::new(Kind::Config, what));
        for (i, (name, byte)) in special.iter().enumerate() {
            let Some(byte) = byte else { continue };
            if !byte.is_ascii() || matches!(byte, b'\n' | b'\r') {
                return refused(format!("the {name} must be one ASCII character other than a line break"));
            }
            if let Some((other, _)) = special[..i].iter().find(|(_, other)| *other == Some(*byte)) {
                return refused(format!("{:?} is both the {other} and the {name}", char::from(*byte)));
            }
        }
        if let Some(long) = &self.long_delimiter {
            let is_special = |byte: u8| matches!(byte, b'\n' | b'\r') || Some(byte) == self.quote;
            if long.is_empty() || long.bytes().any(is_special) {
                return refused(format!("the delimiter {long:?} is empty, or has a line break or a quote"));
            }
        }
        self.formats.check()?;
        self.encoding.as_deref().map_or(Ok(None), encoding_named)?;
        if self.longest_record == 0 || self.longest_record > MAX_LENGTH {
            return refused(format!("the longest record must have 1 to {MAX_LENGTH} bytes"));
        }
        Ok(())
    }

    /// Returns the byte between the fields of a file.
    pub(crate) fn delimiter_of(&self, path: &Path) -> u8 {
        let extension = extension_of(path);
        if self.long_delimiter.is_some() {
            return UNIT_SEPARATOR;
        }
        self.delimiter.unwrap_or(match extension.as_deref() {
            Some("tsv" | "tab") => b'\t',
            Some("psv") => b'|',
            _ => b',',
        })
    }

    /// Returns what determines the names of columns, a part of a load's identity.
    pub(crate) fn names_identity(&self) -> String {
        match self.records {
            RecordForm::Json => String::new(),
            RecordForm::Delimited => format!("header {} names {:?} ", self.header, self.names),
        }
    }

    /// Returns everything that determines the values, a part of a load's identity.
    pub(crate) fn identity(&self) -> String {
        let Self {
            records,
            encoding,
            delimiter,
            long_delimiter,
            quote,
            escape,
            comment,
            header,
            names,
            nulls,
            quoted_nulls,
            skip_lines,
            may_adapt,
            ragged,
            formats,
            longest_record: _,
        } = self;
        if *records == RecordForm::Json {
            return format!("json encoding {encoding:?} skip {skip_lines}{}", formats.identity());
        }
        let mut more = formats.identity();
        if let Some(encoding) = encoding {
            more += &format!(" encoding {encoding}");
        }
        if let Some(long) = long_delimiter {
            more += &format!(" delimiters {long:?}");
        }
        if *ragged != Ragged::Refused {
            more += &format!(" ragged {ragged:?}");
        }
        let default = Self::default();
        let is_plain = (quote, escape, skip_lines) == (&default.quote, &default.escape, &0);
        if !may_adapt && is_plain && *header && names.is_empty() {
            more += " as given";
        }
        let shown = |byte: &Option<u8>| byte.map(char::from);
        format!(
            "delimiter {:?} quote {:?} escape {:?} comment {:?} header {header} names {names:?} null {nulls:?} \
             quoted {quoted_nulls} skip {skip_lines}{more}",
            shown(delimiter),
            shown(quote),
            shown(escape),
            shown(comment)
        )
    }
}

/// Returns the delimiter that the first line of a text names for spreadsheets, as in `sep=;`, and the place of that line
/// without its end.
pub(crate) fn hint(start: &[u8]) -> Option<(u8, Range<usize>)> {
    let from = if start.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let line = start.get(from..)?.split(|byte| matches!(byte, b'\r' | b'\n')).next()?;
    let bare = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
    let [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', delimiter] = bare else { return None };
    let divides = delimiter.is_ascii() && !delimiter.is_ascii_alphanumeric() && *delimiter != b'"';
    divides.then(|| (*delimiter, from..from + line.len()))
}

/// Returns the extension of a name in lower case, without an extension for compression.
pub(crate) fn extension_of(path: &Path) -> Option<String> {
    let lower = |path: &Path| path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let extension = lower(path)?;
    match extension.as_str() {
        "gz" | "zst" | "zstd" | "bz2" | "xz" | "lz4" => lower(Path::new(path.file_stem()?)),
        _ => Some(extension),
    }
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn the_first_line_may_name_the_delimiter() {
        assert_eq!(hint(b"sep=;\r\nid;name\r\n"), Some((b';', 0..5)));
        assert_eq!(hint(b"\xef\xbb\xbf\"SEP=\t\"\nid\tname\n"), Some((b'\t', 3..10)));
        for text in ["sep=\nid\n", "sep=a\n", "sep;name\n1;2\n", "separator=;\n", ""] {
            assert_eq!(hint(text.as_bytes()), None, "{text:?}");
        }
    }
}
