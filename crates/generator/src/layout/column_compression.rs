//! Codecs of single columns: how they are named, and which one each column has.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use crate::encode::compression::Compression;
use crate::error::{Error, Result};
use crate::layout::file_options::FileOptions;

/// A codec and the columns that have it, as `sawmill gen --compression` takes it: `zstd:3` or `name=zstd:3`.
/// By default no page is compressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnCompression {
    /// The path of a column, or of a group: all columns in it. `None` means the columns without a separate
    /// codec.
    pub column: Option<String>,
    /// Their codec.
    pub compression: Compression,
}

impl FromStr for ColumnCompression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The name of a column may contain `=`, the name of a codec does not.
        let (column, compression) = match text.rsplit_once('=') {
            Some((column, compression)) => (Some(column.to_owned()), compression),
            None => (None, text),
        };
        Ok(ColumnCompression { column, compression: compression.parse()? })
    }
}

impl fmt::Display for ColumnCompression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.column {
            Some(column) => write!(f, "{column}={}", self.compression),
            None => self.compression.fmt(f),
        }
    }
}

impl FileOptions {
    /// Sets the codecs of all columns. The order of columns does not matter.
    ///
    /// ```
    /// use sawmill_generator::{Compression, FileOptions};
    /// let mut options = FileOptions::default();
    /// options.set_compressions(&["snappy".parse()?, "name=zstd:3".parse()?])?;
    /// assert_eq!(options.compression, Compression::Snappy);
    /// assert_eq!(options.column_compressions, [("name".to_owned(), Compression::Zstd(3))]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There are two codecs for the columns without one of their own.
    pub fn set_compressions(&mut self, given: &[ColumnCompression]) -> Result<()> {
        let mut others = given.iter().filter(|given| given.column.is_none()).map(|given| given.compression);
        self.compression = others.next().unwrap_or_default();
        if let Some(second) = others.next() {
            let what = format!("two codecs for all columns, {} and {second}", self.compression);
            let advice = "leave one out, or name the columns that have it: COLUMN=CODEC";
            return Err(Error::spec(what, "the file options", advice));
        }
        let of_column = |given: &ColumnCompression| Some((given.column.clone()?, given.compression));
        self.column_compressions = given.iter().filter_map(of_column).collect();
        self.column_compressions.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(())
    }

    /// The codec of each column of a file with `columns` columns. `columns_of` finds the positions of the columns that
    /// a name selects, in ascending order: a column, or all columns of a group.
    ///
    /// # Errors
    /// `columns_of` fails, or two names select the same columns.
    pub fn compressions<E: From<Error>>(
        &self,
        columns: usize,
        columns_of: impl Fn(&str) -> Result<Vec<usize>, E>,
    ) -> Result<Vec<Compression>, E> {
        let mut named = Vec::with_capacity(self.column_compressions.len());
        for (name, compression) in &self.column_compressions {
            named.push((columns_of(name)?, *compression, name));
        }
        // The codec of a column overrides the codec of a group around it.
        named.sort_by_key(|(columns, ..)| Reverse(columns.len()));
        for (i, (columns, _, name)) in named.iter().enumerate() {
            if let Some((.., other)) = named[..i].iter().find(|(others, ..)| others == columns) {
                let what = match name == other {
                    true => format!("two codecs for the column {name:?}"),
                    false => format!("two codecs for the same columns, {other:?} and {name:?}"),
                };
                return Err(Error::spec(what, "the file options", "give a column one codec").into());
            }
        }
        let mut compressions = vec![self.compression; columns];
        for (columns, compression, _) in named {
            for column in columns {
                if let Some(of_column) = compressions.get_mut(column) {
                    *of_column = compression;
                }
            }
        }
        Ok(compressions)
    }
}
