//! Compares the checksums of pages with their bytes before a row group is read.
//!
//! What decodes pages does not look at them. Each column chunk that is read is walked once in a run, page by page, by
//! whoever comes to its row group first; others wait until it is known to be right.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use parquet::file::metadata::ColumnChunkMetaData;
use sawmill_footer::page_checksums;

use crate::error::{Error, Kind, Result};
use crate::parquet_files::reader::FileBytes;

/// The columns of a row group, by their leaves, whose checksums were compared in this run.
type Compared = Arc<Mutex<BTreeSet<usize>>>;

/// A column chunk that is read.
pub(crate) struct Chunk {
    pub leaf: usize,
    pub name: String,
    /// Where its pages stand in the file.
    pub bytes: Range<u64>,
    pub values: i64,
}

impl Chunk {
    /// The chunk of a leaf.
    pub(crate) fn new(leaf: usize, chunk: &ColumnChunkMetaData) -> Self {
        let data = chunk.data_page_offset();
        // Some writers say 0 for no dictionary.
        let dictionary = chunk.dictionary_page_offset().filter(|start| (4..data).contains(start));
        let start = u64::try_from(dictionary.unwrap_or(data)).unwrap_or(0);
        let length = u64::try_from(chunk.compressed_size()).unwrap_or(0);
        let name = chunk.column_path().string();
        Self { leaf, name, bytes: start..start.saturating_add(length), values: chunk.num_values() }
    }
}

/// Which column chunks were compared in this run.
#[derive(Debug, Default)]
pub(crate) struct PageChecksums {
    off: bool,
    compared: Mutex<HashMap<(u32, u32), Compared>>,
}

impl PageChecksums {
    /// Compares none.
    pub(crate) fn off() -> Self {
        Self { off: true, ..Self::default() }
    }

    /// Compares the checksums in the chunks of a row group that were not compared before.
    /// Pages without a checksum are passed over.
    ///
    /// # Errors
    /// A page whose bytes are not those that its writer had, or one that cannot be read; the column and the page are
    /// named behind `place`.
    pub(crate) fn compare(
        &self,
        (file, row_group): (u32, u32),
        place: &str,
        open: impl FnOnce() -> Result<FileBytes>,
        chunks: impl Iterator<Item = Chunk>,
    ) -> Result<()> {
        if self.off {
            return Ok(());
        }
        let compared = {
            let mut all = self.compared.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry((file, row_group)).or_default())
        };
        let mut compared = compared.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = chunks.filter(|chunk| !compared.contains(&chunk.leaf)).peekable();
        if left.peek().is_none() {
            return Ok(());
        }
        let file = open()?;
        let mut right = Vec::new();
        for chunk in left {
            let Chunk { leaf, name, bytes, values } = chunk;
            let found = page_checksums(&file, bytes, values);
            let what = match (found.wrong, found.unread) {
                (Some(wrong), _) => wrong.to_string(),
                // Of a chunk with checksums nothing is taken unseen; of others the decoder says what is wrong.
                (None, Some(error)) if found.checked > 0 => format!("{}: {}", error.path(), error.what()),
                _ => {
                    right.push(leaf);
                    continue;
                }
            };
            return Err(Error::new(Kind::Source, format!("the file is corrupt: {what}"))
                .at(format!("{place}, column {name:?}"))
                .advise(
                    "write or copy the file again; --no-page-checksums loads what the pages hold, right or wrong",
                ));
        }
        compared.extend(right);
        Ok(())
    }
}
