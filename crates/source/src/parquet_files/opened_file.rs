//! One opened file or object: its footer read again, its bytes opened again, and whether they are still the
//! same.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use arrow_schema::Schema;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use sawmill_footer::{Footer, Options};
use sawmill_inspect::page_limits_59;
use sawmill_profile::{Error, Kind, Result};
use sawmill_store::{
    Fault, Object, ObjectReader, ObjectUrl, PlannedReader, ReadAhead, RequestPlan, are_inputs_confined,
    open_input, open_regular_input,
};

use crate::columns::common::without_dictionaries;
use crate::hive::Folder;
use crate::object_bytes::{ObjectBytes, PlannedBytes};
use crate::parquet_files::guarded::guarded;
use crate::parquet_files::left_out::LeftOut;
use crate::parquet_files::reader::{FileBytes, Readable};
use crate::parquet_files::stamp::Stamp;

/// Opens an object of a store.
pub type OpenObject<'a> = &'a (dyn Fn(&ObjectUrl) -> Result<ObjectReader, sawmill_store::Error> + Sync);

/// An opened file.
pub(crate) struct OpenedFile {
    pub path: PathBuf,
    pub reader: ArrowReaderMetadata,
    /// The file's own names of columns that its table names otherwise.
    pub(super) names: HashMap<String, String>,
    /// Columns that cannot be read, and were not wanted.
    pub(super) left_out: Vec<LeftOut>,
    /// The positions of rows that its table has deleted, in ascending order.
    pub(super) deleted: Arc<[Range<u64>]>,
    /// The places of the columns of the common schema.
    pub columns: Arc<[ColumnPlace]>,
    /// The columns that its folders name and that it does not contain itself.
    pub folders: Vec<Folder>,
    /// Whether some columns have only NULLs, hence no type; they may have one in other files.
    pub untyped: bool,
    /// Whether some columns have a narrower type than the common schema.
    pub narrow: bool,
    pub(super) row_groups: Vec<RowGroup>,
    pub(super) origin: Origin,
    /// See [`fingerprint`].
    pub(super) footer: String,
    /// The longest footer that the reader accepts, in bytes.
    pub(super) max_footer: u64,
}

/// Where a file is, and what shows that it has not changed.
pub(super) enum Origin {
    Path(Stamp),
    /// An object, and the first error of reading it.
    Object(Object, Fault),
}

/// The place of a column's values in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnPlace {
    /// The n-th of the file's fields.
    Field(usize),
    /// The n-th of the columns that its folders name.
    Folder(usize),
}

#[derive(Clone, Copy)]
pub(super) struct RowGroup {
    pub rows: u64,
    pub bytes: u64,
    /// Bytes of its pages without compression.
    pub decoded: u64,
}

impl OpenedFile {
    /// Makes the reader produce plain values where other files do not have dictionaries.
    pub(super) fn unfold(&mut self, common: &Schema) -> Result<()> {
        let Some(wanted) = without_dictionaries(self.reader.schema(), common) else { return Ok(()) };
        let options = ArrowReaderOptions::new().with_schema(Arc::new(wanted));
        let metadata = Arc::clone(self.reader.metadata());
        self.reader = guarded(|| ArrowReaderMetadata::try_new(metadata, options))
            .map_err(|error| not_readable(&error).at(self.path.display().to_string()))?;
        Ok(())
    }

    /// Returns the name of a column in the file's footer.
    pub(crate) fn name_in_file<'a>(&'a self, name: &'a str) -> &'a str {
        self.names.get(name).map_or(name, String::as_str)
    }

    /// Returns the rows of a row group that are not deleted, counted from its start; `None` if no row is
    /// deleted.
    pub(super) fn kept(&self, row_group: usize) -> Option<Vec<Range<u64>>> {
        let start: u64 = self.row_groups.iter().take(row_group).map(|group| group.rows).sum();
        let end = start + self.row_groups.get(row_group)?.rows;
        let first = self.deleted.partition_point(|rows| rows.end <= start);
        let deleted = self.deleted[first..].iter().take_while(|rows| rows.start < end);
        let (mut kept, mut at) = (Vec::new(), start);
        for rows in deleted {
            if rows.start > at {
                kept.push(at - start..rows.start - start);
            }
            at = rows.end.min(end);
        }
        if at < end {
            kept.push(at - start..end - start);
        }
        let keeps_all = matches!(kept.as_slice(), [all] if *all == (0..end - start));
        (!keeps_all).then_some(kept)
    }

    /// Returns the options for reading its footer.
    pub(crate) fn footer_options(&self) -> Options {
        Options::new().max_footer(self.max_footer)
    }

    /// Reads the file's footer again.
    pub(crate) fn footer(&self, options: &Options) -> Result<Footer> {
        match &self.origin {
            Origin::Path(_) => open_footer(&self.path, options).map_err(refused_footer),
            Origin::Object(object, fault) => {
                let bytes =
                    ObjectBytes(ObjectReader::new(object.clone(), Vec::new()).with_fault(fault.clone()));
                let footer = Footer::read(&bytes, &self.path.display().to_string(), options);
                footer.map_err(|error| self.fault().unwrap_or_else(|| refused_footer(error)))
            }
        }
    }

    /// Returns the error of its store, if reading the object failed.
    pub(crate) fn fault(&self) -> Option<Error> {
        match &self.origin {
            Origin::Path(_) => None,
            Origin::Object(_, fault) => fault.get().cloned().map(|error| match error.kind() {
                sawmill_store::Kind::Changed => self.changed(),
                _ => error.into(),
            }),
        }
    }

    /// Returns the error that explains why bytes of the file could not be read, if one does.
    pub(crate) fn check_readable(&self) -> Result<()> {
        match self.fault() {
            Some(fault) => Err(fault),
            None => self.reopen().map(drop),
        }
    }

    /// Whether a field of the file is one of the chosen columns.
    pub(super) fn reads(&self, field: usize) -> bool {
        self.columns.contains(&ColumnPlace::Field(field))
    }

    /// Returns the bytes of each column chunk of a row group whose field is wanted; with `rows`, only of the
    /// pages that hold one of them, where an index tells their places.
    pub(crate) fn ranges(
        &self,
        row_group: usize,
        is_wanted: impl Fn(usize) -> bool,
        rows: Option<&[Range<u64>]>,
    ) -> Vec<Vec<Range<u64>>> {
        let metadata = self.reader.metadata();
        let schema = metadata.file_metadata().schema_descr();
        let Some(group) = metadata.row_groups().get(row_group) else { return Vec::new() };
        let chunks = group.columns().iter().enumerate();
        let chunks = chunks.filter(|(leaf, _)| is_wanted(schema.get_column_root_idx(*leaf)));
        let length = match &self.origin {
            Origin::Path(_) => u64::MAX,
            Origin::Object(object, _) => object.size(),
        };
        let within = |range: Range<u64>| range.start.min(length)..range.end.min(length);
        let ranges = |(leaf, chunk)| -> Vec<Range<u64>> {
            let (whole, _) = page_limits_59(chunk, None, 0);
            let pages = rows.and_then(|rows| self.pages(row_group, leaf, &whole, rows));
            pages.unwrap_or_else(|| vec![whole]).into_iter().map(within).collect()
        };
        chunks.map(ranges).collect()
    }

    /// Returns the bytes of a chunk's dictionary and of its pages that hold one of these rows, pages without
    /// gaps between them as one range. `None` without an index.
    pub(super) fn pages(
        &self,
        row_group: usize,
        leaf: usize,
        whole: &Range<u64>,
        rows: &[Range<u64>],
    ) -> Option<Vec<Range<u64>>> {
        let metadata = self.reader.metadata();
        let group_rows = u64::try_from(metadata.row_groups().get(row_group)?.num_rows()).ok()?;
        let pages = metadata.offset_index()?.get(row_group)?.get(leaf)?.page_locations();
        let first = u64::try_from(pages.first()?.offset).ok()?;
        let mut ranges: Vec<Range<u64>> = std::iter::once(whole.start.min(first)..first).collect();
        let mut rows = rows.iter().peekable();
        for (at, page) in pages.iter().enumerate() {
            let start = u64::try_from(page.offset).ok()?;
            let end = start.checked_add(u64::try_from(page.compressed_page_size).ok()?)?;
            let first_row = u64::try_from(page.first_row_index).ok()?;
            let end_row = pages
                .get(at + 1)
                .map_or(Some(group_rows), |next| u64::try_from(next.first_row_index).ok())?;
            while rows.next_if(|rows| rows.end <= first_row).is_some() {}
            if rows.peek().is_none_or(|rows| rows.start >= end_row) {
                continue;
            }
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => ranges.push(start..end),
            }
        }
        ranges.retain(|range| !range.is_empty());
        Some(ranges)
    }

    /// Whether it is an object in a store.
    pub(crate) fn is_object(&self) -> bool {
        matches!(self.origin, Origin::Object(..))
    }

    /// Opens the file again to read ranges of the column chunks of a row group: all of an object's ranges, or
    /// parts. Several readers can share all bytes of an object's ranges that fit into the budget: if one may,
    /// they are requested even for a reader that needs parts. Also returns the range to read at once, and
    /// whether readers share the bytes.
    pub(crate) fn reopen_for(
        &self,
        chunks: &[Vec<Range<u64>>],
        in_parts: bool,
        may_share: bool,
        how: ReadAhead,
    ) -> Result<(Readable, Range<u64>, bool)> {
        match &self.origin {
            Origin::Path(_) => {
                let ranges = || chunks.iter().flatten();
                let start = ranges().map(|range| range.start).min().unwrap_or(0);
                let end = ranges().map(|range| range.end).max().unwrap_or(0);
                Ok((self.reopen()?, start..end, false))
            }
            Origin::Object(object, fault) => {
                let mut plan = RequestPlan::streams(chunks, how);
                let is_shared = may_share && plan.is_whole();
                if in_parts && !is_shared {
                    plan = RequestPlan::parts(chunks, how);
                }
                let reader = PlannedReader::new(object.clone(), plan, fault.clone());
                reader.begin();
                Ok((Arc::new(PlannedBytes(reader)), 0..0, is_shared))
            }
        }
    }

    /// Opens the file again for reading. Checks that a file has not changed; a changed object is an error
    /// when it is read.
    pub(crate) fn reopen(&self) -> Result<Readable> {
        let stamp = match &self.origin {
            Origin::Path(stamp) => stamp,
            Origin::Object(object, fault) => {
                let reader = ObjectReader::new(object.clone(), Vec::new()).with_fault(fault.clone());
                return Ok(Arc::new(ObjectBytes(reader)));
            }
        };
        let place = self.path.display().to_string();
        let file = open_input(&self.path).map_err(|error| unreadable(&error).at(&place))?;
        let metadata = file.metadata().map_err(|error| unreadable(&error).at(&place))?;
        if Stamp::new(&metadata) != *stamp {
            return Err(self.changed());
        }
        Ok(Arc::new(file))
    }

    /// Checks that a footer is still the footer of the opened file.
    pub(crate) fn check_footer(&self, footer: &Footer, length: u64) -> Result<()> {
        if fingerprint(footer, length) == self.footer { Ok(()) } else { Err(self.changed()) }
    }

    /// Returns the error for a file that has changed since it was opened.
    pub(crate) fn changed(&self) -> Error {
        changed_file(&self.path.display().to_string())
    }

    /// Returns the stored bytes of each row group.
    pub(crate) fn row_groups(&self) -> impl Iterator<Item = u64> {
        self.row_groups.iter().map(|group| group.bytes)
    }

    /// Returns the rows of each row group.
    pub(crate) fn rows_of_groups(&self) -> impl Iterator<Item = u64> {
        self.row_groups.iter().map(|group| group.rows)
    }
}

/// A file or an object whose footer was read.
pub(super) struct Begun {
    /// The canonical path, or the URL.
    pub path: PathBuf,
    pub length: u64,
    pub origin: Origin,
    /// The version of the file that a load records, to notice later changes; see [`SourceFile::stamp`].
    pub recorded: Option<String>,
    pub footer: Footer,
    pub file: FileBytes,
}

/// Opens the footer of an input file, in the folder that inputs are confined to.
///
/// # Errors
/// The file cannot be opened, is outside of the folder, or has no footer that can be read.
pub fn open_footer(path: &Path, options: &Options) -> Result<Footer, sawmill_footer::Error> {
    if !are_inputs_confined() {
        return Footer::open_with(path, options);
    }
    let name = path.display().to_string();
    let opened = open_regular_input(path).map_err(|error| {
        sawmill_footer::Error::new(format!("opening failed: {error}")).in_file(name.as_str())
    });
    Footer::read(&opened?, &name, options)
}

pub(super) fn begin_file(path: &Path, max_footer: u64) -> Result<Begun> {
    let failed = |error: std::io::Error| unreadable(&error).at(path.display().to_string());
    let canonical = path.canonicalize().map_err(failed)?;
    let metadata = canonical.metadata().map_err(failed)?;
    let stamp = Stamp::new(&metadata);
    let footer = open_footer(&canonical, &Options::new().max_footer(max_footer)).map_err(refused_footer)?;
    let file = open_input(&canonical).map_err(failed)?;
    Ok(Begun {
        path: canonical,
        length: metadata.len(),
        recorded: stamp.recorded(SystemTime::now()),
        origin: Origin::Path(stamp),
        footer,
        file: FileBytes::new(Arc::new(file), metadata.len(), 0..0),
    })
}

pub(super) fn begin_object(url: &ObjectUrl, objects: OpenObject<'_>, max_footer: u64) -> Result<Begun> {
    let fault = Fault::default();
    let bytes = ObjectBytes(objects(url)?.with_fault(fault.clone()));
    let (object, name) = (bytes.0.object().clone(), url.to_string());
    let footer = Footer::read(&bytes, &name, &Options::new().max_footer(max_footer))
        .map_err(|error| fault.get().cloned().map_or_else(|| refused_footer(error), Error::from))?;
    let recorded = object.stamp();
    let length = object.size();
    let file = FileBytes::new(Arc::new(bytes), length, 0..0);
    Ok(Begun { path: name.into(), length, recorded, origin: Origin::Object(object, fault), footer, file })
}

/// Returns the length of the file and the XXH3-128 hash of its footer. The footer contains sizes, offsets and
/// statistics of every column chunk, so most changes of the content change it, but not all: the `identity`
/// room of `sawmill-loader` says what else is compared.
pub fn fingerprint(footer: &Footer, length: u64) -> String {
    format!("{length}:{:032x}", xxhash_rust::xxh3::xxh3_128(footer.bytes()))
}

/// Returns the error for a file that has changed since it was opened.
pub(crate) fn changed_file(name: &str) -> Error {
    Error::new(Kind::Changed, "the file changed while it was loaded").at(name).advise(
        "bring back the file as it was and run the same command again to go on, or forget the load and start afresh",
    )
}

/// Returns the error for a footer that cannot be decoded.
pub(crate) fn refused_footer(error: sawmill_footer::Error) -> Error {
    Error::new(Kind::Source, error.what()).at(error.place()).advise(error.advice())
}

pub(super) fn not_readable(error: &parquet::errors::ParquetError) -> Error {
    Error::new(Kind::Source, format!("the file cannot be read: {error}"))
        .advise("if it is corrupt, write or copy it again")
}

pub(crate) fn unreadable(error: &std::io::Error) -> Error {
    let advice = match error.kind() {
        std::io::ErrorKind::NotFound => "check the name",
        std::io::ErrorKind::PermissionDenied => "check its permissions",
        _ => "",
    };
    Error::new(Kind::Source, format!("the file cannot be read: {error}")).advise(advice)
}
