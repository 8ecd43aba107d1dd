//! Makes a row group: draws rows a page at a time, and encodes the pages of each column into its chunk.

use std::borrow::Cow;
use std::ops::Range;

use sawmill_profile::span;

use crate::error::Result;
use crate::layout::rows::GroupBytes;
use crate::shred::block::{Shredded, Shredder};
use crate::write::column_chunk::ColumnChunk;
use crate::write::page::maker::PageMaker;
use crate::write::page::rows::{PageRows, Repetition};
use crate::write::plan::FilePlan;

/// Makes row groups one after the other and reuses its memory.
pub(crate) struct RowGroupMaker<'a> {
    shredder: Shredder<'a>,
    pages: PageMaker<'a>,
    /// It only samples rows: values that do not fit their column are not an error.
    is_sample: bool,
}

impl<'a> RowGroupMaker<'a> {
    /// # Errors
    /// The codec cannot be set up.
    pub(crate) fn new(plan: &'a FilePlan<'a>, seed: u64) -> Result<Self> {
        Ok(RowGroupMaker {
            shredder: Shredder::new(plan.dataset, seed),
            pages: PageMaker::new(plan)?,
            is_sample: false,
        })
    }

    /// Makes row groups for measurements only, from rows that may not have been requested.
    pub(crate) fn of_samples(mut self) -> Self {
        self.is_sample = true;
        self
    }

    /// Draws and encodes `rows`, numbered over the whole dataset, into `chunks` in pages of at most `page_rows`. It stops
    /// after the page that reaches `most` bytes, and returns the end of the rows made. It calls `check`
    /// before each page.
    ///
    /// # Errors
    /// `check` fails, or a page cannot be encoded.
    pub(crate) fn make(
        &mut self,
        rows: Range<u64>,
        page_rows: u64,
        most: GroupBytes,
        check: &dyn Fn() -> Result<()>,
        chunks: &mut [ColumnChunk],
    ) -> Result<u64> {
        chunks.iter_mut().for_each(ColumnChunk::clear);
        self.pages.group_rows = rows.end - rows.start;
        let mut at = rows.start;
        while at < rows.end {
            check()?;
            let end = rows.end.min(at.saturating_add(page_rows));
            let drawing = span("draw");
            let shredded = match self.is_sample {
                true => self.shredder.sample(at..end).0,
                false => self.shredder.rows_up_to(at..end, most.drawn())?,
            };
            drop(drawing);
            at += shredded.rows as u64;
            add_pages(&mut self.pages, shredded, chunks)?;
            let (stored, raw) = bytes_of(chunks);
            if !self.is_sample && most.reached(stored, raw) {
                break;
            }
        }
        finish_chunks(&mut self.pages, chunks)?;
        Ok(at)
    }
}

/// The bytes of chunks in the file, and before compression.
pub(crate) fn bytes_of(chunks: &[ColumnChunk]) -> (u64, u64) {
    let stored: usize = chunks.iter().map(|chunk| chunk.bytes()).sum();
    (stored as u64, chunks.iter().map(|chunk| chunk.raw_bytes as u64).sum())
}

/// An empty chunk for each column of the plan.
pub(crate) fn empty_chunks(plan: &FilePlan<'_>) -> Vec<ColumnChunk> {
    let mut chunks = Vec::new();
    chunks.resize_with(plan.leaves.len(), ColumnChunk::default);
    chunks
}

/// Appends rows to the chunks of their columns.
pub(crate) fn add_pages(
    maker: &mut PageMaker<'_>,
    shredded: &Shredded,
    chunks: &mut [ColumnChunk],
) -> Result<()> {
    let encoding = span("encode");
    encoding.add_rows(shredded.rows as u64);
    let plan = maker.plan;
    // The repetition levels of a list are encoded once, for its first column.
    let mut lists: Vec<Option<Repetition<'_>>> = Vec::new();
    lists.resize_with(shredded.lists.len(), || None);
    for ((field, leaf), chunk) in plan.leaves.iter().zip(chunks) {
        let column = &shredded.leaves[leaf.index];
        let repetition = column.list.map(|list| {
            &*lists[list].get_or_insert_with(|| {
                Repetition::new(Cow::Borrowed(&shredded.lists[list]), field.levels.repetition)
            })
        });
        chunk.add_rows(maker, &PageRows::whole(field, leaf, column, shredded.rows, repetition))?;
    }
    Ok(())
}

pub(crate) fn finish_chunks(maker: &mut PageMaker<'_>, chunks: &mut [ColumnChunk]) -> Result<()> {
    chunks.iter_mut().enumerate().try_for_each(|(column, chunk)| chunk.finish(maker, column))
}
