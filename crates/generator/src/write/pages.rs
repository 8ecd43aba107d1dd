//! Encoded pages without files: a program passes the row groups of a layout and receives pages in a
//! [`PageSink`].

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::error::Error;
use crate::layout::file_options::FileOptions;
use crate::layout::rows::{GroupBytes, Layout, PlannedGroups};
use crate::spec::dataset::Dataset;
use crate::write::plan::FilePlan;
use crate::write::row_group::RowGroupMaker;

/// A row group of a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowGroup {
    /// The number of its file.
    pub file: u32,
    /// Its position among the row groups of its file.
    pub row_group: u32,
    /// Its rows, numbered over the whole dataset.
    pub rows: Range<u64>,
}

/// The row groups of a layout, file by file.
#[derive(Debug)]
pub struct RowGroups<'a>(PlannedGroups<'a>);

impl Iterator for RowGroups<'_> {
    type Item = RowGroup;

    fn next(&mut self) -> Option<RowGroup> {
        let unit = self.0.next()?;
        Some(RowGroup { file: unit.file as u32, row_group: unit.row_group as u32, rows: unit.rows })
    }
}

/// A page in the format of a file: header, then body.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Page<'a> {
    /// The position of its column.
    pub column: usize,
    /// The path of its column, names joined with dots.
    pub path: &'a str,
    /// Its rows; 0 for a dictionary page.
    pub rows: usize,
    /// Header and body.
    pub bytes: &'a [u8],
}

/// Receives pages.
///
/// ```
/// use sawmill_generator::{Dataset, FileOptions, Layout, Page, PageSink};
///
/// /// Bytes of each column.
/// struct Sizes(Vec<usize>);
///
/// impl PageSink for Sizes {
///     fn page(&mut self, page: Page<'_>) -> std::io::Result<()> {
///         self.0[page.column] += page.bytes.len();
///         Ok(())
///     }
/// }
///
/// let dataset = Dataset::built_in("contacts").unwrap()?;
/// let layout = Layout::new(10_000, 1)?;
/// let mut sizes = Sizes(vec![0; dataset.columns()]);
/// for group in dataset.row_groups(&layout) {
///     dataset.write_pages(&group, &layout, &FileOptions::default(), 42, &false.into(), &mut sizes)?;
/// }
/// assert!(sizes.0.iter().all(|bytes| *bytes > 0));
/// # Ok::<(), sawmill_generator::Error>(())
/// ```
pub trait PageSink {
    /// Receives a page. Pages of a column arrive in order, the columns of a row group one after the other.
    ///
    /// # Errors
    /// The sink cannot take the page. It receives no more pages.
    fn page(&mut self, page: Page<'_>) -> io::Result<()>;
}

impl Dataset {
    /// The row groups of `layout`.
    pub fn row_groups<'a>(&self, layout: &'a Layout) -> RowGroups<'a> {
        RowGroups(layout.planned_groups((0..layout.files).collect(), 1))
    }

    /// Makes a row group and hands its pages to `sink`.
    ///
    /// # Errors
    /// The options do not fit the dataset, the sink fails, or `cancel` becomes true.
    pub fn write_pages(
        &self,
        group: &RowGroup,
        layout: &Layout,
        options: &FileOptions,
        seed: u64,
        cancel: &AtomicBool,
        sink: &mut dyn PageSink,
    ) -> Result<(), Error> {
        let plan = FilePlan::new(options, self, None)?;
        let mut maker = RowGroupMaker::new(&plan, seed)?;
        let check = || if cancel.load(Relaxed) { Err(Error::cancelled()) } else { Ok(()) };
        // A sink receives the whole row group, whatever its size.
        let whole = GroupBytes { stored: None, raw: u64::MAX };
        maker.make(group.rows.clone(), layout.page_rows, whole, &check)?;
        for ((field, leaf), chunk) in plan.leaves.iter().zip(&maker.chunks) {
            // The dictionary page comes before the data pages.
            let dictionary = usize::from(chunk.dictionary_bytes > 0);
            for (i, bytes) in chunk.pieces().enumerate() {
                let rows = i.checked_sub(dictionary).and_then(|i| chunk.pages.get(i)).map_or(0, |p| p.rows);
                let page = Page { column: leaf.index, path: &field.path, rows, bytes };
                let place = || format!("column {}, row group {}", field.path, group.row_group);
                sink.page(page).map_err(|e| Error::io(&e, "taking a page", Path::new(&place()), None))?;
            }
        }
        Ok(())
    }
}
