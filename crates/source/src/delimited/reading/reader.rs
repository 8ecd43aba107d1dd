//! Reads units: the records of a range become batches.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::SchemaRef;
use sawmill_profile::{Error, Kind, Result};

use crate::delimited::columns::arrays::Fields;
use crate::delimited::files::{Columns, DelimitedFiles, Place};
use crate::delimited::json::{Misfit, decode};
use crate::delimited::records::cursor::{Cursor, MAX_CELLS, not_utf8};
use crate::delimited::records::leading::Split;
use crate::delimited::records::place::shown;
use crate::delimited::records::splitter::{Cell, extent};
use crate::delimited::text_file::TextFile;
use crate::ordered::RowAddress;
use crate::units::{Unit, UnitReader};

/// Reads some columns of the files.
pub(crate) struct DelimitedReader<'a> {
    source: &'a DelimitedFiles,
    places: Vec<Place>,
    schema: SchemaRef,
    batch_rows: usize,
    cursor: Option<Cursor<'a>>,
    /// The file of the cursor and the record that it reads next.
    at: (u32, u64),
    left: u64,
    cells: Vec<Cell>,
}

impl<'a> DelimitedReader<'a> {
    /// A reader of the chosen columns at these positions.
    pub(crate) fn new(source: &'a DelimitedFiles, columns: &[usize], batch_rows: usize) -> Self {
        let (places, schema) = source.columns_at(columns);
        let (at, left) = ((u32::MAX, 0), 0);
        Self { source, places, schema, batch_rows, cursor: None, at, left, cells: Vec::new() }
    }
}

impl UnitReader for DelimitedReader<'_> {
    fn start(&mut self, unit: &Unit) -> Result<()> {
        let file = self.source.file(unit.key.file)?;
        let (number, row) = (unit.key.file, unit.key.first_row);
        if self.at != (number, row) || self.cursor.is_none() {
            let mut cursor = match self.cursor.take().filter(|_| self.at.0 == number) {
                Some(cursor) => cursor,
                None => Cursor::open(file)?,
            };
            file.move_to(&mut cursor, row, &mut self.cells)?;
            self.cursor = Some(cursor);
            self.at = (number, row);
        }
        self.left = unit.rows;
        Ok(())
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.next(None)
    }
}

impl DelimitedReader<'_> {
    /// The bytes that contain the records of the last batch, and the place of the first of them in the file.
    pub(crate) fn buffer(&self) -> Option<(&[u8], u64)> {
        self.cursor.as_ref().map(Cursor::buffer)
    }

    /// Returns the unit's next batch, and replaces `addresses` by the addresses of its records.
    pub(crate) fn next(&mut self, addresses: Option<&mut Vec<RowAddress>>) -> Result<Option<RecordBatch>> {
        if self.left == 0 {
            return Ok(None);
        }
        // After an error its place is not known.
        let Some(mut cursor) = self.cursor.take() else { return Ok(None) };
        let file = cursor.file();
        // A line of JSON is one field, of many columns.
        let most = self.batch_rows.min(4 * MAX_CELLS / self.places.len().max(1)).max(1);
        let most = self.left.min(most as u64) as usize;
        let split = file.split_for(&self.places);
        let rows = cursor.records(most, split, &mut self.cells)?;
        if rows == 0 {
            return Err(file.changed());
        }
        self.left -= rows as u64;
        self.at.1 += rows as u64;
        let (bytes, base) = cursor.buffer();
        if let Some(addresses) = addresses {
            addresses.clear();
            addresses.extend(self.cells.chunks_exact(split.cells()).map(|record| {
                let (start, end) = extent(record);
                RowAddress { file: self.at.0, at: base + u64::from(start), len: end - start }
            }));
        }
        let offset = |at: u64| base + at;
        let cells = &mut self.cells;
        let batch = Batch { source: self.source, file, cells, split, bytes, offset: &offset, rows };
        let batch = batch.build(&self.places, &self.schema)?;
        self.cursor = Some(cursor);
        Ok(Some(batch))
    }
}

/// Records of one file that become one batch.
pub(crate) struct Batch<'b> {
    pub source: &'b DelimitedFiles,
    pub file: &'b TextFile,
    pub cells: &'b mut [Cell],
    /// Which cells a record has. Columns that are wanted have one of their own.
    pub split: Split,
    pub bytes: &'b [u8],
    /// The place in the file of a byte of `bytes`.
    pub offset: &'b dyn Fn(u64) -> u64,
    pub rows: usize,
}

impl Batch<'_> {
    pub(crate) fn build(self, places: &[Place], schema: &SchemaRef) -> Result<RecordBatch> {
        let Self { source, file, cells, split, bytes, offset, rows } = self;
        let start = cells.first().map_or(0, |cell| cell.start);
        let end = cells.last().map_or(0, |cell| cell.end);
        let bytes = &bytes[start as usize..end as usize];
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => Cow::Owned(
                text_of_cells(bytes, cells, start)
                    .map_err(|at| not_utf8(file, offset(u64::from(start) + at as u64)))?,
            ),
        };
        let text = text.as_ref();
        for cell in cells.iter_mut() {
            (cell.start, cell.end) = (cell.start - start, cell.end - start);
        }
        let cells = &*cells;
        let of_json = match &source.columns {
            Columns::Json(columns) => {
                let misfit = |misfit: Misfit| {
                    let (what, advice) = misfit.message();
                    let at = file.place(offset(u64::from(start) + misfit.at as u64));
                    let column = match misfit.path.as_str() {
                        "" => String::new(),
                        path => format!(", column {path:?}"),
                    };
                    Error::new(Kind::Value, what).at(at + &column).advise(advice)
                };
                let is_wanted = (0..columns.len()).map(|at| places.contains(&Place::Column(at)));
                let is_wanted: Vec<bool> = is_wanted.collect();
                decode(text, cells, columns, &is_wanted, &source.dialect.formats).map_err(misfit)?
            }
            Columns::Delimited(_) => Vec::new(),
        };
        let columns = split.cells();
        let array = |place: &Place| -> Result<ArrayRef> {
            let common = match place {
                Place::Folder(at) => {
                    return file
                        .folders
                        .get(*at)
                        .map(|folder| folder.value.array(rows))
                        .ok_or_else(|| file.changed());
                }
                Place::Column(common) => *common,
            };
            let Columns::Delimited(types) = &source.columns else {
                let array = of_json.get(common).cloned().flatten();
                return array.ok_or_else(|| file.changed());
            };
            let typing = types[common];
            let wanted = typing.of;
            let Some(column) = file.places.get(common).copied().flatten() else {
                return Ok(new_null_array(wanted.field("").data_type(), rows));
            };
            let fields = Fields {
                text,
                cells,
                column,
                columns,
                splitter: &file.splitter,
                dialect: &source.dialect,
                trims: false,
            };
            typing.array_of(fields).map_err(|row| {
                let cell = cells[row * columns + column];
                let value = &text.as_bytes()[cell.start as usize..cell.end as usize];
                let name = &file.columns[column];
                let at = offset(u64::from(start) + u64::from(cell.start));
                let sample = if typing.inferred { ", infer it from all records (--sample all)" } else { "" };
                Error::new(Kind::Value, format!("{} is not of type {wanted}", shown(value)))
                    .at(format!("{}, column {name:?}", file.place(at)))
                    .advise(format!(
                        "correct the value, give the column another type (--types '{name}=text'){sample}, name the \
                         words that stand for NULL (--null), or leave such records out with --rejects FILE.csv"
                    ))
            })
        };
        let arrays = places.iter().map(array).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
            .map_err(|error| Error::new(Kind::Source, error.to_string()).at(&file.name))
    }
}

/// The text of the cells only, each in its place. Left-out records and comments lie between them, and need
/// not be UTF-8. `start` is the place of the text in the bytes that the cells are ranges of.
///
/// # Errors
/// The place of bytes in a cell that are not UTF-8.
fn text_of_cells(bytes: &[u8], cells: &[Cell], start: u32) -> Result<String, usize> {
    let mut kept = vec![b' '; bytes.len()];
    for cell in cells {
        let range = cell.start.saturating_sub(start) as usize..cell.end.saturating_sub(start) as usize;
        if let (Some(from), Some(to)) = (bytes.get(range.clone()), kept.get_mut(range)) {
            to.copy_from_slice(from);
        }
    }
    String::from_utf8(kept).map_err(|error| error.utf8_error().valid_up_to())
}
