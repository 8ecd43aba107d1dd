//! A file whose footer is decoded, as the views see it.

use std::cell::{OnceCell, RefCell};
use std::fs::File;
use std::path::{Path, PathBuf};

use sawmill_footer::{ChunkDetails, ColumnChunk, Footer, Statistics};

use crate::error::Error;
use crate::footer::text::escape::escaped;
use crate::footer::text::values::{Reader, meaning};

/// A footer with what views share: the columns' names, and the first fault that they met in what is
/// decoded only when asked for.
pub(crate) struct OpenFile {
    pub footer: Footer,
    /// The file's name as nearly as text can have it, for programs.
    pub path: String,
    /// The same, fit for a screen.
    pub name: String,
    place: PathBuf,
    opened: OnceCell<Option<File>>,
    columns: OnceCell<Vec<Column>>,
    fault: RefCell<Option<Error>>,
}

/// What all chunks of a decoded column have in common.
pub(crate) struct Column {
    /// The names from the root down, joined by dots, as they stand in the file.
    pub path: String,
    /// `INT64`, `FIXED_LEN_BYTE_ARRAY(16)`.
    pub physical_type: String,
    /// What the values mean, if anything says so: `STRING`.
    pub logical_type: Option<String>,
    pub reader: Reader,
}

impl Column {
    pub(crate) fn of(leaf: sawmill_footer::Element<'_>) -> Self {
        // A leaf is an element with a physical type.
        let physical = leaf.physical_type().unwrap_or(sawmill_footer::PhysicalType::Unknown(-1));
        Column {
            path: leaf.path(),
            physical_type: crate::footer::views::schema::physical_type(leaf),
            logical_type: meaning(leaf).map(|logical| logical.to_string()),
            reader: Reader::new(leaf, physical),
        }
    }
}

impl OpenFile {
    pub(crate) fn new(path: &Path, footer: Footer) -> Self {
        OpenFile {
            footer,
            path: path.display().to_string(),
            name: name_of(path),
            place: path.to_owned(),
            opened: OnceCell::new(),
            columns: OnceCell::new(),
            fault: RefCell::new(None),
        }
    }

    /// The decoded columns in the order of the file.
    pub(crate) fn columns(&self) -> &[Column] {
        self.columns.get_or_init(|| {
            let leaves = (0..self.footer.num_columns())
                .filter_map(|position| self.footer.schema().leaf(self.footer.leaf_of(position)?));
            leaves.map(Column::of).collect()
        })
    }

    /// The statistics of a chunk. Malformed ones are as if there were none, and remembered.
    pub(crate) fn statistics<'a>(&self, chunk: &ColumnChunk<'a>) -> Option<Statistics<'a>> {
        self.or_fault(chunk.statistics()).flatten()
    }

    /// Everything else that the footer says of a chunk, in the same manner.
    pub(crate) fn details<'a>(&self, chunk: &ColumnChunk<'a>) -> ChunkDetails<'a> {
        self.or_fault(chunk.details()).unwrap_or_default()
    }

    /// The places of a chunk's indexes and bloom filter, in the same manner.
    pub(crate) fn locations<'a>(&self, chunk: &ColumnChunk<'a>) -> ChunkDetails<'a> {
        self.or_fault(chunk.locations()).unwrap_or_default()
    }

    /// The file, opened again for what does not stand in the footer; none where that fails.
    pub(crate) fn reader(&self) -> Option<&File> {
        let open = || {
            let failed = |error: std::io::Error| {
                let what = format!("opening the file again failed: {error}");
                self.fail(|| Error::failure(what, &self.name, ""));
            };
            File::open(&self.place).map_err(failed).ok()
        };
        self.opened.get_or_init(open).as_ref()
    }

    /// What was read; a fault is remembered.
    pub(crate) fn or_fault<T>(&self, result: Result<T, sawmill_footer::Error>) -> Option<T> {
        result.map_err(|error| self.fail(|| failure(&error))).ok()
    }

    /// Remembers what is wrong with the file, unless something else is already.
    pub(crate) fn fail(&self, fault: impl FnOnce() -> Error) {
        self.fault.borrow_mut().get_or_insert_with(fault);
    }

    /// The first fault that a view met.
    pub(crate) fn into_fault(self) -> Option<Error> {
        self.fault.into_inner()
    }
}

/// The error of a file. Its parts may hold names from the file.
pub(crate) fn failure(error: &sawmill_footer::Error) -> Error {
    let safe = |text: String| escaped(&text).into_owned();
    Error::failure(safe(error.what()), safe(error.place()), safe(error.advice()))
}

/// A path as a screen shows it.
pub(crate) fn name_of(path: &Path) -> String {
    escaped(&path.display().to_string()).into_owned()
}
