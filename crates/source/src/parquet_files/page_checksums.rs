//! Compares the checksums of pages with their bytes, their sizes with the limits, and their levels with the rows,
//! before a row group is read.
//!
//! The decoders ignore checksums and some faults of levels, and allocate what pages claim. The first thread that reads
//! a row group checks each column chunk, page by page, once per run; other threads wait until it is done.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::PageLocation;
use sawmill_inspect::{LargestPages, PageLimits, check_pages_within, page_limits_59};
use sawmill_profile::{Error, Kind, Result};

use crate::parquet_files::reader::{FileBytes, Headers};

/// The parts of a row group that this run has compared.
#[derive(Debug, Default)]
struct Compared {
    /// Leaf columns, and ranges of their bytes.
    parts: BTreeSet<(usize, u64, u64)>,
    /// How many bytes a row may take in each leaf column, decoded.
    rows: BTreeMap<usize, u64>,
    /// The headers of pages that state what their page is not, corrected.
    headers: Headers,
    /// Where a page index contradicts the pages, which column it is of, and how.
    misplaced: Option<(String, String)>,
}

impl Compared {
    /// Refuses an index that leads to other rows than the wanted ones.
    fn refuse_misplaced(&self, selects: bool) -> Result<()> {
        let Some((place, what)) = self.misplaced.as_ref().filter(|_| selects) else { return Ok(()) };
        Err(Error::new(Kind::Source, format!("the page index is wrong: {what}")).at(place).advise(
            "write the file again, such as with sawmill convert, which reads all rows without the index",
        ))
    }
}

/// How the index of a chunk contradicts its pages, which begin at these places after so many rows.
fn misplaced(index: &[PageLocation], starts: &[(u64, u64)]) -> Option<String> {
    let mut first = None;
    starts.iter().find_map(|(offset, before)| {
        let at = index.binary_search_by_key(offset, |page| page.offset.cast_unsigned()).ok()?;
        let stated = index.get(at)?.first_row_index.cast_unsigned();
        let found = first.get_or_insert(stated.wrapping_sub(*before)).wrapping_add(*before);
        (found != stated)
            .then(|| format!("the page at byte {offset} begins with row {found}, and not {stated}"))
    })
}

/// A column chunk that is about to be read.
pub(crate) struct CheckedChunk<'m> {
    pub leaf: usize,
    pub name: String,
    /// The range of its pages in the file.
    pub bytes: Range<u64>,
    pub values: i64,
    limits: PageLimits,
    index: &'m [PageLocation],
}

impl<'m> CheckedChunk<'m> {
    /// Returns parts of it to check alone: these ranges, which start and end with pages.
    pub(crate) fn parts(self, ranges: Vec<Range<u64>>) -> impl Iterator<Item = Self> {
        let Self { leaf, name, limits, index, .. } = self;
        let limits = PageLimits { rows: None, corrects_rows: false, ..limits };
        let part = move |bytes| Self { leaf, name: name.clone(), bytes, values: i64::MAX, limits, index };
        // A range ends with its last page, whatever number of values that holds.
        ranges.into_iter().map(part)
    }

    /// Returns the chunk of a leaf, with its page index, in a row group of a file by this writer. No page may be larger
    /// than `max_page`.
    pub(crate) fn new(
        leaf: usize,
        (chunk, index): (&ColumnChunkMetaData, &'m [PageLocation]),
        group: &RowGroupMetaData,
        (created_by, max_page): (Option<&str>, u64),
    ) -> Self {
        let (bytes, limits) = page_limits_59(chunk, created_by, max_page);
        let limits = PageLimits { rows: u64::try_from(group.num_rows()).ok(), ..limits };
        Self { leaf, name: chunk.column_path().string(), bytes, values: chunk.num_values(), limits, index }
    }
}

type Shared = Arc<Mutex<Compared>>;

/// The column chunks whose checksums were compared in this run.
#[derive(Debug, Default)]
pub(crate) struct PageChecksums {
    off: bool,
    compared: Mutex<HashMap<(u32, u32), Shared>>,
}

impl PageChecksums {
    /// Returns a checker that compares no checksums, only sizes and levels.
    pub(crate) fn off() -> Self {
        Self { off: true, ..Self::default() }
    }

    /// Compares the checksums in the chunks of a row group that were not compared before. Skips pages without
    /// a checksum. The largest pages of all columns may be as large as several of `max_page`.
    ///
    /// # Errors
    /// A page whose bytes differ from those that its writer wrote, that cannot be read, that is too large, or whose
    /// levels are damaged. The error names column and page after `place`. If some rows are wanted and not all, a page
    /// index that misplaces rows.
    pub(crate) fn compare<'m>(
        &self,
        ((file, row_group), selects): ((u32, u32), bool),
        max_page: u64,
        place: &str,
        open: impl FnOnce() -> Result<FileBytes>,
        chunks: impl Iterator<Item = CheckedChunk<'m>>,
    ) -> Result<()> {
        let compared = self.of_group((file, row_group));
        let mut compared = compared.lock().unwrap_or_else(PoisonError::into_inner);
        let key = |chunk: &CheckedChunk<'_>| (chunk.leaf, chunk.bytes.start, chunk.bytes.end);
        let mut left = chunks.filter(|chunk| !compared.parts.contains(&key(chunk))).peekable();
        if left.peek().is_none() {
            return compared.refuse_misplaced(selects);
        }
        let file = open()?;
        let (mut right, mut rows, mut restated) = (Vec::new(), Vec::new(), Vec::new());
        let (mut largest, mut wrong_index) = (LargestPages::default(), None);
        for chunk in left {
            let key = key(&chunk);
            let CheckedChunk { name, bytes, values, limits, index, .. } = chunk;
            let found = check_pages_within(&file, bytes, values, &limits, !self.off);
            largest = largest.and(found.largest);
            rows.push((key.0, found.largest.row));
            restated.extend(found.restated);
            if let Err(error) = found.refused.map_or_else(|| largest.check(max_page), Err) {
                let page = Some(error.path()).filter(|page| !page.is_empty());
                let page = page.map(|page| format!(", {page}")).unwrap_or_default();
                return Err(Error::new(Kind::Source, error.what())
                    .at(format!("{place}, column {name:?}{page}"))
                    .advise(error.advice()));
            }
            let what = match (found.wrong, found.unread) {
                (Some(wrong), _) => wrong,
                // In a chunk with checksums an unreadable page is an error; in others the decoder reports it.
                (None, Some(error)) if found.checked > 0 => format!("{}: {}", error.path(), error.what()),
                _ => {
                    let wrong = misplaced(index, &found.starts);
                    wrong_index =
                        wrong_index.or(wrong.map(|what| (format!("{place}, column {name:?}"), what)));
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
        compared.parts.extend(right);
        if !restated.is_empty() {
            let restated = restated.into_iter().map(|(place, header)| (place, header.into()));
            Arc::make_mut(&mut compared.headers).extend(restated);
        }
        for (leaf, row) in rows {
            let known = compared.rows.entry(leaf).or_default();
            *known = row.max(*known);
        }
        compared.misplaced = compared.misplaced.take().or(wrong_index);
        compared.refuse_misplaced(selects)
    }

    /// Returns how many bytes a row may take, decoded, in the columns of a row group that were compared.
    pub(crate) fn row_size(&self, group: (u32, u32)) -> u64 {
        let compared = self.of_group(group);
        let compared = compared.lock().unwrap_or_else(PoisonError::into_inner);
        compared.rows.values().fold(0, |all, row| all.saturating_add(*row))
    }

    /// Returns the headers of pages that readers of a row group must see in place of the file's.
    pub(crate) fn headers(&self, group: (u32, u32)) -> Headers {
        let compared = self.of_group(group);
        Arc::clone(&compared.lock().unwrap_or_else(PoisonError::into_inner).headers)
    }

    fn of_group(&self, group: (u32, u32)) -> Shared {
        let mut all = self.compared.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(group).or_default())
    }
}
