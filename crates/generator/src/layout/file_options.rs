//! How rows become a Parquet file: encodings, codec, page version, statistics, indexes, Bloom filters,
//! and the keys and values in the footer.

use crate::encode::bloom_filter::BLOOM_FALSE_POSITIVES;
use crate::encode::compression::Compression;
use crate::encode::values::Encoding;

/// The default page size before compression, 1 MiB. When a page exceeds it, its rows are split.
pub(crate) const PAGE_BYTES: u64 = 1 << 20;

/// The layout of data pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageVersion {
    /// Levels and values compressed together.
    #[default]
    V1,
    /// Uncompressed levels before the values; the header counts rows and nulls.
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

/// The statistics to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum StatisticsLevel {
    /// No statistics.
    None,
    /// Bounds, null counts and size statistics for each column chunk.
    Chunk,
    /// Also for each page: in the column index or, without page indexes, in the page header.
    #[default]
    Page,
}

impl StatisticsLevel {
    /// All levels, from the least to the most.
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

/// A requested Bloom filter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BloomColumn {
    /// The path of the column, names joined with dots.
    pub column: String,
    /// The share of absent values that the filter reports as possibly present.
    pub false_positives: f64,
}

/// How to write files. [`FileOptions::default`] are the defaults of `sawmill gen`.
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
    /// The encoding of every column whose type allows it; other columns use the default. By default, columns
    /// drawn from listed values use a dictionary, and so do names in row groups with many of them; all other
    /// columns are plain.
    pub encoding: Option<Encoding>,
    /// The encodings of individual columns, by path. For a repeated column, the last one counts.
    pub column_encodings: Vec<(String, Encoding)>,
    /// The codec of the columns that `column_compressions` does not name.
    pub compression: Compression,
    /// The codecs of individual columns, by path. The path of a group means all columns in it that are not
    /// named themselves.
    pub column_compressions: Vec<(String, Compression)>,
    /// The layout of data pages.
    pub page_version: PageVersion,
    /// The page size before compression. A larger page is split, but a row never is.
    pub page_bytes: u64,
    /// The statistics to write.
    pub statistics: StatisticsLevel,
    /// Whether to write offset indexes and, with page statistics, column indexes.
    pub page_index: bool,
    /// Whether page headers contain the CRC-32 of the page.
    pub page_checksums: bool,
    /// The columns that have Bloom filters.
    pub bloom: Vec<BloomColumn>,
    /// Key-value metadata for the footer.
    pub key_values: Vec<(String, String)>,
}

impl Default for FileOptions {
    fn default() -> Self {
        FileOptions {
            encoding: None,
            column_encodings: Vec::new(),
            compression: Compression::default(),
            column_compressions: Vec::new(),
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
