//! A decoder for callers that open footers one by one.

use std::path::Path;
use std::sync::Arc;

use crate::decode::carried::Carried;
use crate::error::Result;
use crate::footer::Footer;
use crate::open::buffer::FooterBytes;
use crate::open::source::RangeReader;
use crate::options::Options;

/// Decodes one footer after the other and uses what one taught for the next: the schema if its bytes are the
/// same, and the shapes of column chunks. [`Footer::open_many`] has its own; a decoder is for callers that get footers
/// one by one, such as a cache or a server.
///
/// [`Footer::decode`] returns the same footers. A decoder is faster for files of one writer: 1 row group of 10 columns
/// of many types takes about half the time. It keeps at most some 6 MiB.
///
/// ```
/// use sawmill_footer::{Decoder, Options};
///
/// # let footer = sawmill_footer::Footer::open("../../fixtures/foreign/pyarrow_plain.parquet")?;
/// # let files = [footer.bytes().to_vec(), footer.bytes().to_vec()];
/// let mut decoder = Decoder::new(Options::new());
/// for footer in files {
///     let footer = decoder.decode(footer)?;
///     assert_eq!(footer.num_row_groups(), 3);
/// }
/// # Ok::<(), sawmill_footer::Error>(())
/// ```
pub struct Decoder {
    options: Options,
    carried: Carried,
}

impl Decoder {
    /// A decoder that decodes what the options ask for.
    pub fn new(options: Options) -> Self {
        Self { options, carried: Carried::first_of_many() }
    }

    /// A decoder of a single footer, which learns nothing for others.
    pub(crate) fn of_one(options: Options) -> Self {
        Self { options, carried: Carried::default() }
    }

    /// The options that it decodes with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Like [`Footer::decode`].
    ///
    /// Costs what the function of the same name of [`Footer`] does, less what this decoder learned: shapes,
    /// and the schema where its bytes are the same.
    ///
    /// # Errors
    ///
    /// As for [`Footer::decode`].
    pub fn decode(&mut self, bytes: impl Into<FooterBytes>) -> Result<Footer> {
        Footer::decode_after(bytes.into(), &self.options, None, None, &mut self.carried)
    }

    /// Like [`Footer::open_with`].
    ///
    /// Costs what the function of the same name of [`Footer`] does, less what this decoder learned: shapes,
    /// and the schema where its bytes are the same.
    ///
    /// # Errors
    ///
    /// As for [`Footer::open_with`].
    pub fn open(&mut self, path: impl AsRef<Path>) -> Result<Footer> {
        Footer::open_after(path.as_ref(), &self.options, &mut self.carried)
    }

    /// Like [`Footer::read`].
    ///
    /// Costs what the function of the same name of [`Footer`] does, less what this decoder learned: shapes,
    /// and the schema where its bytes are the same.
    ///
    /// # Errors
    ///
    /// As for [`Footer::read`].
    pub fn read<R: RangeReader + ?Sized>(&mut self, reader: &R, name: &str) -> Result<Footer> {
        Footer::read_after(reader, name, &self.options, &mut self.carried)
    }

    /// Decodes the footer of a file of this name and length.
    pub(crate) fn decode_in_file(&mut self, bytes: FooterBytes, name: &str, file_len: u64) -> Result<Footer> {
        let name = Some(Arc::new(name.to_owned()));
        Footer::decode_after(bytes, &self.options, name, Some(file_len), &mut self.carried)
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("options", &self.options).finish_non_exhaustive()
    }
}
