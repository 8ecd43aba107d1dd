//! How text is divided into records and fields, and which fields are NULL.

use std::path::Path;

use crate::error::{Error, Kind, Result};

/// How text is divided into records and fields, and which fields are NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The byte between fields; `None`: a tab in files named `.tsv` and `.tab`, `|` in `.psv`, else a comma.
    pub delimiter: Option<u8>,
    /// The byte around fields that contain delimiters and newlines. Within them it is doubled.
    pub quote: Option<u8>,
    /// The byte before a quote, or before itself, within quotes.
    pub escape: Option<u8>,
    /// Lines that start with this byte are skipped.
    pub comment: Option<u8>,
    /// Whether the first record contains the names of the columns.
    pub header: bool,
    /// The names of the columns; empty: those of the header, or `column_1` and so on.
    pub names: Vec<String>,
    /// The words that stand for NULL.
    pub nulls: Vec<String>,
    /// Whether they do within quotes, too.
    pub quoted_nulls: bool,
    /// How many lines to skip at the start of each file.
    pub skip_lines: u64,
    /// The longest record, in bytes: a reader holds a whole record.
    pub longest_record: usize,
}

impl Default for Dialect {
    fn default() -> Self {
        Self {
            delimiter: None,
            quote: Some(b'"'),
            escape: None,
            comment: None,
            header: true,
            names: Vec::new(),
            nulls: vec![String::new()],
            quoted_nulls: false,
            skip_lines: 0,
            longest_record: 64 << 20,
        }
    }
}

/// The longest record that a user may allow: positions in a reader's buffer have 32 bits.
const LONGEST: usize = 1 << 30;

impl Dialect {
    /// Checks that the special bytes are distinct ASCII characters.
    ///
    /// # Errors
    /// Two special bytes that are the same; a byte that cannot be special.
    pub(super) fn check(&self, delimiter: u8) -> Result<()> {
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
        if self.longest_record == 0 || self.longest_record > LONGEST {
            return refused(format!("the longest record must have 1 to {LONGEST} bytes"));
        }
        Ok(())
    }

    /// Returns the byte between the fields of a file.
    pub(super) fn delimiter_of(&self, path: &Path) -> u8 {
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        self.delimiter.unwrap_or(match extension.as_deref() {
            Some("tsv" | "tab") => b'\t',
            Some("psv") => b'|',
            _ => b',',
        })
    }

    /// Returns everything that determines the values, a part of a load's identity.
    pub(super) fn identity(&self) -> String {
        let Self {
            delimiter, quote, escape, comment, header, names, nulls, quoted_nulls, skip_lines, ..
        } = self;
        let shown = |byte: &Option<u8>| byte.map(char::from);
        format!(
            "delimiter {:?} quote {:?} escape {:?} comment {:?} header {header} names {names:?} null {nulls:?} \
             quoted {quoted_nulls} skip {skip_lines}",
            shown(delimiter),
            shown(quote),
            shown(escape),
            shown(comment)
        )
    }
}
