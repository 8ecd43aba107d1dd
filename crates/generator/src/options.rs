//! How rows become a Parquet file: encodings, codec, page version, statistics, indexes, Bloom filters,
//! and the keys and values in the footer.

use crate::encode::bloom_filter::BLOOM_FALSE_POSITIVES;
use crate::encode::compression::Compression;
use crate::encode::values::Encoding;

/// Bytes of a page's body, before compression, beyond which rows go into the next page: 1 MiB.
pub(crate) const PAGE_BYTES: u64 = 1 << 20;

/// The layout of data pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageVersion {
    /// Levels and values compressed together.
    #[default]
    V1,
    /// Levels before the values, never compressed; the header counts rows and nulls.
    V2,
}

impl PageVersion {
    /// 1 or 2.
    pub fn number(self) -> u32 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

/// Which statistics are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum StatisticsLevel {
    /// None at all.
    None,
    /// Bounds, null counts and size statistics of each column chunk.
    Chunk,
    /// Of each page too: in the column index or, without page indexes, in the header of the page.
    #[default]
    Page,
}

impl StatisticsLevel {
    /// All levels, from less to more.
    pub const ALL: [Self; 3] = [Self::None, Self::Chunk, Self::Page];

    /// Its name on the command line and in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Chunk => "chunk",
            Self::Page => "page",
        }
    }
}

/// A Bloom filter that is asked for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BloomColumn {
    /// The path of the column, names joined with dots.
    pub column: String,
    /// The share of absent values for which the filter says "maybe".
    pub false_positives: f64,
}

/// How files are written. [`FileOptions::default`] is what `sawmill gen` does unasked.
///
/// ```
/// use sawmill_generator::{Compression, Encoding, FileOptions, PageVersion};
/// let mut options = FileOptions::default();
/// options.compression = Compression::Snappy;
/// options.page_version = PageVersion::V2;
/// options.column_encodings.push(("name".to_owned(), Encoding::DeltaByteArray));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FileOptions {
    /// The encoding of every column whose type allows it; the others have their own. Without one,
    /// columns drawn from listed values have a dictionary, and so have names where a row group has many
    /// of them; all others are plain.
    pub encoding: Option<Encoding>,
    /// The encodings of single columns, by path; the last one of a column counts.
    pub column_encodings: Vec<(String, Encoding)>,
    /// The codec of all pages.
    pub compression: Compression,
    /// The layout of data pages.
    pub page_version: PageVersion,
    /// Bytes of a page's body, before compression, beyond which it is cut; a row is never cut.
    pub page_bytes: u64,
    /// Which statistics are written.
    pub statistics: StatisticsLevel,
    /// Whether offset indexes and, with page statistics, column indexes are written.
    pub page_index: bool,
    /// Whether the headers of pages have the CRC-32 of the pages' bytes.
    pub page_checksums: bool,
    /// The columns that have Bloom filters.
    pub bloom: Vec<BloomColumn>,
    /// Keys and values for the footer.
    pub key_values: Vec<(String, String)>,
}

impl Default for FileOptions {
    fn default() -> Self {
        FileOptions {
            encoding: None,
            column_encodings: Vec::new(),
            compression: Compression::default(),
            page_version: PageVersion::default(),
            page_bytes: PAGE_BYTES,
            statistics: StatisticsLevel::default(),
            page_index: true,
            page_checksums: false,
            bloom: Vec::new(),
            key_values: Vec::new(),
        }
    }
}

impl BloomColumn {
    /// A filter of the column at `path` with one false positive in a hundred.
    pub fn new(path: impl Into<String>) -> Self {
        BloomColumn { column: path.into(), false_positives: BLOOM_FALSE_POSITIVES }
    }
}
