//! A file whose footer is decoded, as the views see it.

use std::cell::{OnceCell, RefCell};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use sawmill_footer::{ChunkDetails, ColumnChunk, Footer, RangeReader, Statistics};

use crate::error::Error;
use crate::file::column::Column;
use crate::text::escape::escaped;
use crate::text::style::TextStyle;

/// A decoded footer, its file, and how to write it for people.
///
/// Views decode statistics, page indexes and other details on demand. If that fails, they show what there is,
/// and the first fault is kept for [`OpenFile::into_fault`]. What they return are errors of the output alone.
pub struct OpenFile {
    pub(crate) footer: Footer,
    /// The file's name for programs. Bytes that are not UTF-8 are replaced.
    pub(crate) path: String,
    /// The file's name for a terminal.
    pub(crate) name: String,
    pub(crate) style: TextStyle,
    place: PathBuf,
    /// Whether there is more than a footer: known once, because it takes a walk over all chunks.
    has_data: OnceCell<bool>,
    opened: OnceCell<Option<Box<dyn RangeReader>>>,
    columns: OnceCell<Vec<Column>>,
    fault: RefCell<Option<Error>>,
    pub(crate) is_stopped: fn() -> bool,
}

/// A local file whose pages are read until the user stops it.
struct LocalFile {
    file: File,
    is_stopped: fn() -> bool,
}

impl RangeReader for LocalFile {
    fn len(&self) -> io::Result<u64> {
        RangeReader::len(&self.file)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        RangeReader::read_exact_at(&self.file, offset, buffer)
    }

    fn is_stopped(&self) -> bool {
        (self.is_stopped)()
    }
}

impl OpenFile {
    /// The footer of the file at `path`. Views read the file again for parts outside of the footer, such as
    /// page indexes.
    pub fn new(path: &Path, footer: Footer, style: TextStyle) -> Self {
        OpenFile {
            footer,
            path: path.display().to_string(),
            name: name_of(path),
            style,
            place: path.to_owned(),
            has_data: OnceCell::new(),
            opened: OnceCell::new(),
            columns: OnceCell::new(),
            fault: RefCell::new(None),
            is_stopped: || false,
        }
    }

    /// Ends checks once `is_stopped` returns true, which costs a call for each page and finding.
    #[must_use]
    pub fn stopped_by(self, is_stopped: fn() -> bool) -> Self {
        Self { is_stopped, ..self }
    }

    /// The footer of a file on another machine, called `name`. Views read parts outside of the footer
    /// from `reader`.
    pub fn over(name: &Path, footer: Footer, style: TextStyle, reader: Box<dyn RangeReader>) -> Self {
        OpenFile { opened: OnceCell::from(Some(reader)), ..Self::new(name, footer, style) }
    }

    /// The footer.
    pub fn footer(&self) -> &Footer {
        &self.footer
    }

    /// The file's name, fit for a terminal.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first fault that a view found.
    pub fn into_fault(self) -> Option<Error> {
        self.fault.into_inner()
    }

    /// Whether a view found a fault.
    pub(crate) fn has_fault(&self) -> bool {
        self.fault.borrow().is_some()
    }

    /// The decoded column chunks, row group by row group.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = ColumnChunk<'_>> {
        self.footer.row_groups().flat_map(|group| group.columns())
    }

    /// The decoded columns in the order of the file.
    pub(crate) fn columns(&self) -> &[Column] {
        self.columns.get_or_init(|| {
            let leaves = (0..self.footer.num_columns())
                .filter_map(|position| self.footer.schema().leaf(self.footer.leaf_of(position)?));
            leaves.map(Column::new).collect()
        })
    }

    /// The column of a chunk.
    pub(crate) fn column(&self, chunk: &ColumnChunk<'_>) -> &Column {
        &self.columns()[chunk.position()]
    }

    /// The statistics of a chunk. Malformed ones are a fault, and shown as absent.
    pub(crate) fn statistics<'a>(&self, chunk: &ColumnChunk<'a>) -> Option<Statistics<'a>> {
        self.or_fault(chunk.statistics()).flatten()
    }

    /// Everything else that the footer states of a chunk, in the same manner.
    pub(crate) fn details<'a>(&self, chunk: &ColumnChunk<'a>) -> ChunkDetails<'a> {
        self.or_fault(chunk.details()).unwrap_or_default()
    }

    /// The places of a chunk's indexes and bloom filter, in the same manner.
    pub(crate) fn locations<'a>(&self, chunk: &ColumnChunk<'a>) -> ChunkDetails<'a> {
        self.or_fault(chunk.locations()).unwrap_or_default()
    }

    /// The file, opened again for parts outside of the footer; `None` if that fails or there are none.
    pub(crate) fn reader(&self) -> Option<&dyn RangeReader> {
        let has_data = || {
            let checked = self.footer.check_has_data("pages");
            checked
                .map_err(|error| self.fail(|| Error::new(error.what(), &self.name, error.advice())))
                .is_ok()
        };
        if !*self.has_data.get_or_init(has_data) {
            return None;
        }
        let open = || -> Option<Box<dyn RangeReader>> {
            let failed = |error: io::Error| {
                let what = format!("opening the file again failed: {error}");
                self.fail(|| Error::new(what, &self.name, ""));
            };
            let file = File::open(&self.place).map_err(failed).ok()?;
            Some(Box::new(LocalFile { file, is_stopped: self.is_stopped }))
        };
        self.opened.get_or_init(open).as_deref()
    }

    /// The result; an error becomes the file's fault.
    pub(crate) fn or_fault<T>(&self, result: Result<T, sawmill_footer::Error>) -> Option<T> {
        result.map_err(|error| self.fail(|| error.into())).ok()
    }

    /// Keeps the fault of the file, unless it has one already.
    pub(crate) fn fail(&self, fault: impl FnOnce() -> Error) {
        self.fault.borrow_mut().get_or_insert_with(fault);
    }
}

/// A path as a terminal shows it.
pub(crate) fn name_of(path: &Path) -> String {
    escaped(&path.display().to_string()).into_owned()
}
