//! Compares the checksums of pages with their bytes, and their sizes with the limits, before a row group is read.
//!
//! The decoders ignore checksums, and allocate what pages claim. The first thread that reads a row group checks
//! each column chunk, page by page, once per run; other threads wait until it is done.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use parquet::basic::{Compression, Type};
use parquet::file::metadata::ColumnChunkMetaData;
use sawmill_footer::{Codec, LargestPages, PageLimits, page_checksums_within};

use crate::error::{Error, Kind, Result};
use crate::parquet_files::reader::FileBytes;

/// The parts of a row group whose checksums were compared in this run: leaf columns, and ranges of their bytes.
type Compared = Arc<Mutex<BTreeSet<(usize, u64, u64)>>>;

/// A column chunk that is about to be read.
pub(crate) struct CheckedChunk {
    pub leaf: usize,
    pub name: String,
    /// The range of its pages in the file.
    pub bytes: Range<u64>,
    pub values: i64,
    limits: PageLimits,
}

impl CheckedChunk {
    /// Returns parts of it to check alone: these ranges, which start and end with pages.
    pub(crate) fn parts(self, ranges: Vec<Range<u64>>) -> impl Iterator<Item = Self> {
        let Self { leaf, name, limits, .. } = self;
        let part = move |bytes| Self { leaf, name: name.clone(), bytes, values: i64::MAX, limits };
        // A range ends with its last page, whatever number of values that holds.
        ranges.into_iter().map(part)
    }

    /// Returns the chunk of a leaf.
    pub(crate) fn new(leaf: usize, chunk: &ColumnChunkMetaData) -> Self {
        let data = chunk.data_page_offset();
        // Some writers set 0 for "no dictionary".
        let dictionary = chunk.dictionary_page_offset().filter(|start| (4..data).contains(start));
        let start = u64::try_from(dictionary.unwrap_or(data)).unwrap_or(0);
        let length = u64::try_from(chunk.compressed_size()).unwrap_or(0);
        let name = chunk.column_path().string();
        let bytes = start..start.saturating_add(length);
        Self { leaf, name, bytes, values: chunk.num_values(), limits: limits(chunk) }
    }
}

/// The limits of the chunk's pages, but for their own size.
fn limits(chunk: &ColumnChunkMetaData) -> PageLimits {
    let column = chunk.column_descr();
    let level = |max: i16| u32::try_from(max).unwrap_or(0);
    PageLimits {
        max_page: 0,
        codec: codec_of(chunk.compression()),
        chunk_size: chunk.uncompressed_size(),
        max_levels: [level(column.max_def_level()), level(column.max_rep_level())],
        value_size: match column.physical_type() {
            Type::BOOLEAN => 1,
            Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            Type::FIXED_LEN_BYTE_ARRAY => u32::try_from(column.type_length()).unwrap_or(0),
        },
    }
}

fn codec_of(compression: Compression) -> Codec {
    match compression {
        Compression::UNCOMPRESSED => Codec::Uncompressed,
        Compression::SNAPPY => Codec::Snappy,
        Compression::GZIP(_) => Codec::Gzip,
        Compression::LZO => Codec::Lzo,
        Compression::BROTLI(_) => Codec::Brotli,
        Compression::LZ4 => Codec::Lz4,
        Compression::ZSTD(_) => Codec::Zstd,
        Compression::LZ4_RAW => Codec::Lz4Raw,
    }
}

/// The column chunks whose checksums were compared in this run.
#[derive(Debug, Default)]
pub(crate) struct PageChecksums {
    off: bool,
    compared: Mutex<HashMap<(u32, u32), Compared>>,
}

impl PageChecksums {
    /// Returns a checker that compares no checksums, only sizes.
    pub(crate) fn off() -> Self {
        Self { off: true, ..Self::default() }
    }

    /// Compares the checksums in the chunks of a row group that were not compared before. Skips pages without
    /// a checksum. No page may be larger than `max_page`.
    ///
    /// # Errors
    /// A page whose bytes differ from those that its writer wrote, that cannot be read, or that is too large. The
    /// error names column and page after `place`.
    pub(crate) fn compare(
        &self,
        (file, row_group): (u32, u32),
        max_page: u64,
        place: &str,
        open: impl FnOnce() -> Result<FileBytes>,
        chunks: impl Iterator<Item = CheckedChunk>,
    ) -> Result<()> {
        let compared = {
            let mut all = self.compared.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry((file, row_group)).or_default())
        };
        let mut compared = compared.lock().unwrap_or_else(PoisonError::into_inner);
        let key = |chunk: &CheckedChunk| (chunk.leaf, chunk.bytes.start, chunk.bytes.end);
        let mut left = chunks.filter(|chunk| !compared.contains(&key(chunk))).peekable();
        if left.peek().is_none() {
            return Ok(());
        }
        let file = open()?;
        let mut right = Vec::new();
        let mut largest = LargestPages::default();
        for chunk in left {
            let key = key(&chunk);
            let CheckedChunk { name, bytes, values, limits, .. } = chunk;
            let limits = PageLimits { max_page, ..limits };
            let found = page_checksums_within(&file, bytes, values, &limits, !self.off);
            largest = largest.and(found.largest);
            if let Err(error) = found.refused.map_or_else(|| largest.check(max_page), Err) {
                let page = Some(error.path()).filter(|page| !page.is_empty());
                let page = page.map(|page| format!(", {page}")).unwrap_or_default();
                return Err(Error::new(Kind::Source, error.what())
                    .at(format!("{place}, column {name:?}{page}"))
                    .advise(error.advice()));
            }
            let what = match (found.wrong, found.unread) {
                (Some(wrong), _) => wrong.to_string(),
                // In a chunk with checksums an unreadable page is an error; in others the decoder reports it.
                (None, Some(error)) if found.checked > 0 => format!("{}: {}", error.path(), error.what()),
                _ => {
                    right.push(key);
                    continue;
                }
            };
            return Err(Error::new(Kind::Source, format!("the file is corrupt: {what}"))
                .at(format!("{place}, column {name:?}"))
                .advise(
                    "write or copy the file again; --no-page-checksums loads the pages without checking them",
                ));
        }
        compared.extend(right);
        Ok(())
    }
}
