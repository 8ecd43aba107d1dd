//! Reads units of Parquet files with the `parquet` crate; if that fails, finds the column that cannot be decoded.
//! `page_checksums` checks the pages of a row group before the crate sees them.

mod arrangement;
mod broken_text;
mod file_bytes;
mod row_numbers;

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use arrow_array::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Encoding;
use parquet::errors::ParquetError;

use crate::columns::united::as_wanted;
use crate::parquet_files::files::ParquetFiles;
use crate::parquet_files::filtered::Filtered;
use crate::parquet_files::guarded::{Panicked, fault_of_page, guarded, undecodable};
use crate::parquet_files::opened_file::OpenedFile;
use crate::parquet_files::page_checksums::CheckedChunk;
use crate::units::{Read, Source, Unit, UnitKey, UnitReader};
use arrangement::{Arrangement, Chosen};
pub use file_bytes::FileBytes;
pub(crate) use file_bytes::{Headers, Readable};
use sawmill_profile::{Error, Kind, Result};

/// A reader that stays open between units of the same row group.
pub(crate) struct ParquetReader<'a> {
    source: &'a ParquetFiles,
    /// The condition on rows, if there is one.
    filter: Option<&'a Filtered<'a>>,
    batch_rows: usize,
    /// Whether filtered rows have their row numbers.
    numbering: bool,
    /// Whether text that is not UTF-8 comes as bytes, and whether the open row group's text does.
    broken_text: bool,
    text_as_bytes: bool,
    /// The rows of a row group that are read, if not all; and the fields of its file, besides the columns.
    part: Option<(Vec<Range<u64>>, Vec<usize>)>,
    /// The positions of the columns to read in the source's schema; `None` for all.
    only: Option<Vec<usize>>,
    open: Option<OpenRowGroup>,
    /// The file of the row group being opened, through which its checksums and all its columns are read.
    opening: Option<FileBytes>,
    /// How to assemble the columns from the reads of the open row group's file.
    arrangement: Option<Arrangement>,
    unit: UnitKey,
    /// Rows of the unit not yet delivered.
    left: u64,
}

struct OpenRowGroup {
    batches: ParquetRecordBatchReader,
    /// The window of the row group that they are in, if rows are filtered.
    window: Option<usize>,
    /// The next row.
    at: UnitKey,
    /// The rest of a batch after the end of its unit.
    rest: Option<RecordBatch>,
}

/// Returns the rows of a decoded batch, given their bytes in the file's pages: wide rows come in small
/// batches.
fn rows_of_width(bytes: i64) -> usize {
    const DECODED: usize = 16 * 1024 * 1024;
    DECODED / usize::try_from(bytes).unwrap_or(0).clamp(1, DECODED)
}

/// Returns how many rows may be decoded at once if one may take this many bytes: few values of a dictionary may come
/// again and again.
pub fn rows_within(row_size: u64) -> usize {
    const MAX_DECODED: u64 = 32 << 20;
    usize::try_from(MAX_DECODED / row_size.max(1)).unwrap_or(usize::MAX).max(1)
}

impl<'a> ParquetReader<'a> {
    pub(crate) fn new(source: &'a ParquetFiles, filter: Option<&'a Filtered<'a>>, batch_rows: usize) -> Self {
        let unit = UnitKey { file: 0, row_group: 0, first_row: 0 };
        let batch_rows = batch_rows.max(1);
        Self {
            source,
            filter,
            batch_rows,
            numbering: false,
            broken_text: false,
            text_as_bytes: false,
            part: None,
            only: None,
            open: None,
            opening: None,
            arrangement: None,
            unit,
            left: 0,
        }
    }

    /// Reads this.
    pub(crate) fn reading(mut self, read: Read<'_>) -> Self {
        self.only = read.columns.map(<[usize]>::to_vec);
        (self.numbering, self.broken_text) = (read.numbered, read.broken_text);
        self
    }

    /// Reads these rows of a row group alone, and these fields of its file besides the columns.
    pub(crate) fn part(mut self, rows: Vec<Range<u64>>, fields: Vec<usize>) -> Self {
        self.part = Some((rows, fields));
        self
    }

    /// Opens the file of a row group for all that is read of it next.
    pub(crate) fn opening(mut self, key: UnitKey) -> Result<Self> {
        self.opening = Some(self.opened(key)?);
        Ok(self)
    }

    /// Returns what to read of a file.
    fn chosen(&self, file: &OpenedFile) -> Chosen {
        let fields = file.reader.schema().fields().len();
        match &self.only {
            None => Chosen::new(file.columns.iter().copied(), fields),
            Some(only) => {
                Chosen::new(only.iter().filter_map(|column| file.columns.get(*column).copied()), fields)
            }
        }
    }

    fn rows_of_batch(&self, file: &OpenedFile, key: UnitKey) -> usize {
        let group = file.reader.metadata().row_groups().get(key.row_group as usize);
        let width = group.map_or(0, |group| group.total_byte_size() / group.num_rows().max(1));
        let checked = self.source.checksums.row_size((key.file, key.row_group));
        self.batch_rows.min(rows_of_width(width)).min(rows_within(checked))
    }

    /// Compares the checksums of the pages in the columns of a row group that are read, and in the fields
    /// `more` of the file.
    pub(crate) fn compare_checksums(&self, key: UnitKey, more: &[usize]) -> Result<()> {
        let Some(file) = self.source.opened.get(key.file as usize) else { return Ok(()) };
        let metadata = file.reader.metadata();
        let group_number = key.row_group as usize;
        let Some(group) = metadata.row_groups().get(group_number) else { return Ok(()) };
        let schema = metadata.file_metadata().schema_descr();
        let created_by = metadata.file_metadata().created_by();
        let fields = self.chosen(file).fields;
        let is_read = |leaf: usize| {
            let field = schema.get_column_root_idx(leaf);
            more.contains(&field) || fields.as_ref().is_none_or(|fields| fields.binary_search(&field).is_ok())
        };
        // In an object, only the pages to read are worth a request.
        let rows = if file.is_object() { self.rows_to_read(key) } else { None };
        let index = metadata.offset_index().and_then(|index| index.get(group_number));
        let chunks = group.columns().iter().enumerate().filter(|(leaf, _)| is_read(*leaf));
        let chunks = chunks.flat_map(|(leaf, chunk)| {
            let index =
                index.and_then(|index| index.get(leaf)).map_or(&[][..], |index| index.page_locations());
            let chunk = CheckedChunk::new(leaf, (chunk, index), group, (created_by, self.source.max_page));
            let pages = rows.as_ref().and_then(|rows| file.pages(group_number, leaf, &chunk.bytes, rows));
            let (whole, parts) = match pages {
                None => (Some(chunk), None),
                Some(pages) => (None, Some(chunk.parts(pages))),
            };
            whole.into_iter().chain(parts.into_iter().flatten())
        });
        let (place, selects) =
            (self.place(key), self.part.is_some() || self.filter.is_some() || key.first_row > 0);
        let group = ((key.file, key.row_group), selects);
        let stop = self.source.stop.as_ref();
        let open = || Ok(self.bytes(key)?.stopped_by(stop.cloned()));
        let compared = self.source.checksums.compare(group, self.source.max_page, &place, open, chunks);
        compared.map_err(|error| match stop.is_some_and(|stop| stop.load(Relaxed)) {
            true => Error::cancelled(),
            false => self.fault(key).unwrap_or(error),
        })
    }

    /// Opens the file of a row group again, and reads the row group's bytes if they are few.
    fn bytes(&self, key: UnitKey) -> Result<FileBytes> {
        match &self.opening {
            Some(bytes) => Ok(bytes.clone()),
            None => self.opened(key),
        }
    }

    fn opened(&self, key: UnitKey) -> Result<FileBytes> {
        let Some(file) = self.source.opened.get(key.file as usize) else {
            return Err(Error::new(Kind::Source, format!("there is no file {}", key.file)));
        };
        let fields = self.chosen(file).fields;
        let of_condition = self.filter.map(|filter| filter.fields(key)).unwrap_or_default();
        let more = self.part.as_ref().map_or(&of_condition, |(_, fields)| fields);
        let is_wanted = |field: usize| {
            more.contains(&field) || fields.as_ref().is_none_or(|fields| fields.binary_search(&field).is_ok())
        };
        let rows = if file.is_object() { self.rows_to_read(key) } else { None };
        let ranges = file.ranges(key.row_group as usize, is_wanted, rows.as_deref());
        let length = self.source.files().get(key.file as usize).map_or(0, |file| file.bytes);
        // Another connection may read the same row group.
        let group = (key.file, key.row_group, self.filter.is_some());
        let may_share = file.is_object() && self.reads_all();
        let lock = || self.source.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shared = may_share.then(lock);
        if let Some(bytes) = shared.as_ref().and_then(|shared| shared.get(&group)?.upgrade()) {
            return Ok(FileBytes::new(bytes, length, 0..0));
        }
        // A reader that starts within the row group skips the pages before.
        let in_parts = key.first_row > 0;
        let (opened, first, is_shared) =
            file.reopen_for(&ranges, in_parts, may_share, self.source.read_ahead)?;
        if let Some(shared) = shared.as_mut().filter(|_| is_shared) {
            shared.retain(|_, bytes| bytes.strong_count() > 0);
            shared.insert(group, Arc::downgrade(&opened));
        }
        drop(shared);
        Ok(FileBytes::new(opened, length, first))
    }

    /// Returns the rows of a row group that are read, from its first window on that has some; `None` if all
    /// of them are.
    fn rows_to_read(&self, key: UnitKey) -> Option<Vec<Range<u64>>> {
        match &self.part {
            Some((rows, _)) => Some(rows.clone()),
            None => self.filter.and_then(|filter| filter.rows_from(key)),
        }
    }

    /// Whether it reads row groups with all columns of the source.
    fn reads_all(&self) -> bool {
        self.only.is_none() && self.part.is_none()
    }

    /// Returns the bytes of a row group that were requested before, if it is the expected one.
    fn take_expected(&self, key: UnitKey) -> Option<FileBytes> {
        if !self.reads_all() || key.first_row > 0 {
            return None;
        }
        let mut expected = self.source.expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.take_if(|(group, _)| *group == (key.file, key.row_group)).map(|(_, bytes)| bytes)
    }

    /// Returns a builder of a reader of all rows of a row group.
    pub(crate) fn builder(&self, key: UnitKey) -> Result<ParquetRecordBatchReaderBuilder<FileBytes>> {
        self.builder_with(key, false)
    }

    fn builder_with(
        &self,
        key: UnitKey,
        numbering: bool,
    ) -> Result<ParquetRecordBatchReaderBuilder<FileBytes>> {
        let Some(file) = self.source.opened.get(key.file as usize) else {
            return Err(Error::new(Kind::Source, format!("there is no file {}", key.file)));
        };
        let failed = |error: ParquetError| self.unreadable(&error.to_string());
        let metadata = self.metadata(file, key).map_err(failed)?;
        let metadata = match numbering {
            false => metadata,
            true => row_numbers::with_row_numbers(&metadata).map_err(failed)?,
        };
        let headers = self.source.checksums.headers((key.file, key.row_group));
        let bytes = self.bytes(key)?.with_headers(headers);
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(bytes, metadata);
        let rows = self.rows_of_batch(file, key);
        let reader = reader.with_row_groups(vec![key.row_group as usize]).with_batch_size(rows);
        match self.chosen(file).fields {
            None => Ok(reader),
            Some(wanted) => {
                let mask = ProjectionMask::roots(reader.parquet_schema(), wanted);
                Ok(reader.with_projection(mask))
            }
        }
    }

    /// Returns the rows of a row group from the first row of `key` on; if rows are filtered, the rows of its
    /// window.
    fn batches_from(&self, key: UnitKey) -> Result<(ParquetRecordBatchReader, Option<usize>)> {
        let file = self.source.opened.get(key.file as usize);
        if self.filter.is_none() && file.is_some_and(|file| file.kept(key.row_group as usize).is_some()) {
            return Err(Error::new(
                Kind::Config,
                "rows of the file are deleted, and all of them would be read",
            )
            .at(self.place(key))
            .advise("write the table's rows to other files first: sawmill convert delta:FOLDER --out FILE"));
        }
        match self.filter.and_then(|filter| filter.position(key)) {
            None => Ok((self.build(self.builder(key)?, key.first_row)?, None)),
            Some(position) => {
                let passing = self.passing(key, position.window, position.before)?;
                Ok((passing, Some(position.window)))
            }
        }
    }

    /// Returns the rows of a window that pass, except the first `but_for`.
    fn passing(&self, key: UnitKey, window: usize, but_for: u64) -> Result<ParquetRecordBatchReader> {
        let builder = self.builder_with(key, self.numbering)?;
        let builder = match self.filter {
            Some(filter) => filter.filter(key, window, builder),
            None => builder,
        };
        self.build(builder, but_for)
    }

    fn build(
        &self,
        builder: ParquetRecordBatchReaderBuilder<FileBytes>,
        but_for: u64,
    ) -> Result<ParquetRecordBatchReader> {
        guarded(|| builder.with_offset(but_for as usize).build())
            .map_err(|error| self.corrupt(&fault_of_page(&error)))
    }

    /// Returns the next batch of the open row group, or its fault.
    fn next_of_group(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Some(open) = &mut self.open else { return Ok(None) };
            if let Some(rest) = open.rest.take() {
                return Ok(Some(rest));
            }
            let next = match guarded(|| open.batches.next().transpose()) {
                Ok(batch) => batch,
                Err(_) if self.broken_text && !self.text_as_bytes => {
                    // Perhaps some text is not UTF-8. Other faults are found again.
                    let at = open.at;
                    self.text_as_bytes = true;
                    let (batches, window) = self.batches_from(at)?;
                    self.open = Some(OpenRowGroup { batches, window, at, rest: None });
                    continue;
                }
                Err(error) => return Err(self.corrupt(&fault_of_page(&error))),
            };
            let (window, at) = (open.window, open.at);
            let further = self.filter.zip(window).and_then(|(filter, window)| filter.next_window(at, window));
            match (next, further) {
                (None, Some(window)) => {
                    let batches = self.passing(at, window, 0)?;
                    self.open = Some(OpenRowGroup { batches, window: Some(window), at, rest: None });
                }
                (next, _) => return Ok(next),
            }
        }
    }

    /// The metadata for the readers of a row group's file.
    fn metadata(&self, file: &OpenedFile, key: UnitKey) -> Result<ArrowReaderMetadata, ParquetError> {
        match self.text_as_bytes {
            false => Ok(file.reader.clone()),
            // Conditions compare text.
            true => broken_text::text_as_bytes(
                &file.reader,
                &self.filter.map(|filter| filter.fields(key)).unwrap_or_default(),
            ),
        }
    }

    /// Finds the first text of a leaf column that is not UTF-8.
    fn broken_text(&self, key: UnitKey, leaf: usize) -> Option<(u64, String)> {
        let file = self.source.opened.get(key.file as usize)?;
        // Among filtered rows its number is not known.
        let from = if self.filter.is_some() { 0 } else { key.first_row };
        let bytes = self.bytes(key).ok()?;
        let found = guarded::<_, Panicked>(|| {
            Ok(broken_text::first(bytes, &file.reader, (key.row_group as usize, leaf), from))
        });
        found.ok().flatten()
    }

    fn place(&self, key: UnitKey) -> String {
        let name = self.source.files().get(key.file as usize).map(|file| file.name.as_str());
        format!("{}, row group {}", name.unwrap_or_default(), key.row_group)
    }

    /// Returns the error of the store, if reading the unit's object failed.
    fn fault(&self, key: UnitKey) -> Option<Error> {
        self.source.opened.get(key.file as usize).and_then(OpenedFile::fault)
    }

    /// Returns the error for a row group that cannot be read.
    fn unreadable(&self, what: &str) -> Error {
        let advice = match self.part {
            Some(_) => "write or copy the file again",
            None => "write or copy the file again; rows of other units that were committed remain",
        };
        Error::new(Kind::Source, format!("the file is corrupt: {what}"))
            .at(self.place(self.unit))
            .advise(advice)
    }

    /// Finds the column that cannot be decoded, by reading the row group column by column.
    fn corrupt(&self, what: &str) -> Error {
        let key = self.unit;
        if let Some(fault) = self.fault(key) {
            return fault;
        }
        let place = self.place(key);
        let columns = self.source.opened.get(key.file as usize).map(|file| {
            let schema = file.reader.metadata().file_metadata().schema_descr();
            let is_read = |leaf: &usize| match &self.part {
                Some((_, fields)) => fields.contains(&schema.get_column_root_idx(*leaf)),
                None => true,
            };
            let leaves = (0..schema.num_columns()).filter(is_read);
            let named = |leaf| (leaf, schema.column(leaf).path().string(), schema.get_column_root_idx(leaf));
            leaves.map(named).collect::<Vec<_>>()
        });
        let columns = columns.unwrap_or_default();
        let leaf = match undecodable(columns.iter().map(|(leaf, ..)| *leaf), || self.builder(key)) {
            Ok(leaf) => leaf,
            Err(error) => return error,
        };
        let Some((leaf, name, column)) = columns.iter().find(|(one, ..)| leaf == Some(*one)) else {
            return self.unreadable(what).at(place);
        };
        // A map's keys and values are only decoded together: the fault may be in a later leaf of the column.
        let later = columns.iter().filter(|(later, _, top)| later >= leaf && top == column);
        let mut faults = later.filter_map(|(leaf, name, _)| Some((self.broken_text(key, *leaf)?, name)));
        if let Some(((row, what), name)) = faults.next() {
            return Error::new(Kind::Value, what)
                .at(format!("{place}, row {row}, column {name:?}"))
                .advise("rows count from 0 in their row group; correct the value in the source");
        }
        let without = self.without_dictionary(key, *leaf);
        let without = without.filter(|_| what.contains("is damaged") || what.contains("dictionary"));
        self.unreadable(&without.unwrap_or_else(|| what.to_owned())).at(format!("{place}, column {name:?}"))
    }

    /// The error of a part of a row group that cannot be decoded, as [`next_batch`](UnitReader::next_batch) returns it
    /// for a unit.
    pub(crate) fn corrupt_part(mut self, key: UnitKey, what: &str) -> Error {
        self.unit = key;
        self.corrupt(what)
    }

    /// The fault of a column chunk whose values refer to a dictionary that does not precede them.
    fn without_dictionary(&self, key: UnitKey, leaf: usize) -> Option<String> {
        let metadata = self.source.opened.get(key.file as usize)?.reader.metadata();
        let chunk = metadata.row_groups().get(key.row_group as usize)?.columns().get(leaf)?;
        let of_dictionary =
            |of: Encoding| matches!(of, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY);
        let data = chunk.data_page_offset();
        let dictionary = chunk.dictionary_page_offset();
        if !chunk.encodings().any(of_dictionary) || dictionary.is_some_and(|dictionary| dictionary < data) {
            return None;
        }
        let dictionary =
            dictionary.map_or("missing or impossible".to_owned(), |dictionary| dictionary.to_string());
        Some(format!(
            "the values refer to a dictionary, which the footer does not place before them: dictionary_page_offset is \
             {dictionary}, data_page_offset {data}"
        ))
    }
}

impl UnitReader for ParquetReader<'_> {
    fn start(&mut self, unit: &Unit) -> Result<()> {
        self.unit = unit.key;
        self.left = unit.rows;
        if self.open.as_ref().is_some_and(|open| open.at == unit.key) {
            return Ok(());
        }
        (self.open, self.opening, self.text_as_bytes) = (None, None, false);
        let expected = self.take_expected(unit.key);
        self.opening = Some(match expected {
            Some(bytes) => bytes,
            None => self.bytes(unit.key)?,
        });
        let of_condition = self.filter.map(|filter| filter.fields(unit.key)).unwrap_or_default();
        self.compare_checksums(unit.key, &of_condition)?;
        let file = self.source.opened.get(unit.key.file as usize);
        let arrangement =
            |file| Arrangement::new(self.chosen(file), &file.folders, self.rows_of_batch(file, unit.key));
        self.arrangement = file.map(arrangement);
        let opened = self.batches_from(unit.key);
        // All later reads of the row group use the file that was just checked.
        self.opening = None;
        let (batches, window) = opened?;
        self.open = Some(OpenRowGroup { batches, window, at: unit.key, rest: None });
        Ok(())
    }

    fn expect(&mut self, unit: &Unit) {
        let key = unit.key;
        let is_object = self.source.opened.get(key.file as usize).is_some_and(OpenedFile::is_object);
        if !is_object || !self.reads_all() || key.first_row > 0 {
            return;
        }
        let mut expected = self.source.expected.lock().unwrap_or_else(PoisonError::into_inner);
        if expected.as_ref().is_none_or(|(group, _)| *group != (key.file, key.row_group)) {
            // If this fails, the row group's start reports the error.
            *expected = self.opened(key).ok().map(|bytes| ((key.file, key.row_group), bytes));
        }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.left == 0 {
            return Ok(None);
        }
        let batch = match self.next_of_group() {
            Ok(Some(batch)) if batch.num_rows() > 0 => batch,
            Ok(_) => {
                self.open = None;
                return Err(self.corrupt(&format!("{} rows are missing at its end", self.left)));
            }
            Err(error) => {
                self.open = None;
                return Err(error);
            }
        };
        let rows = (batch.num_rows() as u64).min(self.left) as usize;
        self.left -= rows as u64;
        if let Some(open) = &mut self.open {
            open.at.first_row += rows as u64;
            if rows < batch.num_rows() {
                open.rest = Some(batch.slice(rows, batch.num_rows() - rows));
            }
        }
        let batch = batch.slice(0, rows);
        let Some(file) = self.source.opened.get(self.unit.file as usize) else { return Ok(Some(batch)) };
        let failed = |error: arrow_schema::ArrowError| Error::new(Kind::Source, error.to_string());
        let windowed = self.open.as_ref().is_some_and(|open| open.window.is_some());
        let (batch, numbers) = match self.numbering && windowed {
            false => (batch, None),
            true => {
                let metadata = file.reader.metadata();
                row_numbers::split_off(batch, metadata, self.unit.row_group).map_err(failed)?
            }
        };
        let batch = match &self.arrangement {
            None => batch,
            Some(arrangement) => arrangement.columns(batch).map_err(failed)?,
        };
        let append = |batch| row_numbers::append(batch, numbers).map(Some).map_err(failed);
        if !file.untyped && !file.narrow {
            return append(batch);
        }
        let fields = self.source.schema().fields();
        let wanted = (0..batch.num_columns()).map(|place| match &self.only {
            None => fields.get(place),
            Some(only) => only.get(place).and_then(|column| fields.get(*column)),
        });
        append(as_wanted(&batch, wanted, file.untyped).map_err(failed)?)
    }
}
