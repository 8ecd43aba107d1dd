//! Encodes Arrow batches as rows of PostgreSQL's binary COPY format.
//!
//! The format is row-major (<https://www.postgresql.org/docs/current/sql-copy.html>): a 16-bit field count,
//! then each field as a 32-bit length and its bytes. Arrow is column-major. A block of [`BLOCK`] rows is
//! transposed in three steps: the columns add up the length of each row ([`layout`](super::layout)), the row
//! lengths are summed into positions, and the columns write their fields one after the other, each advancing
//! the positions ([`write`](super::write)). Neighbouring fixed-width columns of one width without NULLs in
//! the block are written together ([`fields`](super::fields)). Buffers have the configured size and are
//! reused, and nothing is allocated per row.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use bytes::Bytes;

use crate::arrays::checked_text::checked_text;
use crate::arrays::fault::Fault;
use crate::arrays::marks::{is_json, value_type};
use crate::conversion::ColumnConversion;
use crate::rows::buffers::{Buffer, Buffers};
use crate::rows::layout::{BoundColumn, ColumnLayout};
use crate::rows::observer::RowObserver;
use crate::rows::write;
use crate::types::column_type::ColumnType;
use crate::types::pg_type::PgType;
use crate::types::value_options::ValueOptions;
use crate::values::element::Element;
use crate::values::fixed_width::BLOCK;
use crate::values::native::NativeLayout;

/// The header of a binary COPY, before the first row: signature, flags, length of the extension.
pub const HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The trailer of a binary COPY, after the last row: a field count of -1.
pub const TRAILER: [u8; 2] = (-1i16).to_be_bytes();

/// A column and its planned encoding.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name in the target.
    pub name: String,
    /// Its position in the source's batches.
    pub source: usize,
    /// Its type in the target.
    pub column_type: ColumnType,
    /// The conversion of its arrays before they are encoded.
    conversion: Option<ColumnConversion>,
    element: Element,
    /// Whether the source has text, which comes as bytes if some of it is not UTF-8.
    text: bool,
}

impl Column {
    /// Plans the encoding of a field into a column. The error says why there is none; it is empty if there is
    /// nothing to add to "the types do not fit".
    pub fn new(
        field: &Field,
        source: usize,
        column_type: ColumnType,
        options: &ValueOptions,
    ) -> Result<Self, String> {
        let conversion = ColumnConversion::plan(field, &column_type, options)?;
        let sent = match &conversion {
            None => Cow::Borrowed(field),
            Some(conversion) => {
                Cow::Owned(field.clone().with_data_type(conversion.output(field.data_type())))
            }
        };
        let element = match column_type.plain() {
            // Without validity bits its NULLs would count as values of whatever type.
            _ if *sent.data_type() == DataType::Null => Element::Null,
            Some(pg_type) => Element::choose(&sent, pg_type)?,
            // The wire format, which a conversion has made of text.
            None if *sent.data_type() == DataType::LargeBinary => Element::Bytes,
            None => Element::Native(NativeLayout::choose(&sent, &column_type)?),
        };
        let text = value_type(field).is_string();
        Ok(Self { name: field.name().clone(), source, column_type, conversion, element, text })
    }

    /// How values are converted to the column's type, such as `read from its text`; `None` if they fit as they are.
    pub fn conversion(&self) -> Option<String> {
        self.conversion.as_ref().map(ToString::to_string)
    }
}

/// Returns the columns of a new table for this schema: of the types that [`PgType::natural`] returns, and
/// `jsonb` for text that is marked as JSON.
///
/// # Errors
/// The first column without a PostgreSQL type, and why it has none.
pub fn natural_columns(schema: &Schema, options: &ValueOptions) -> Result<Arc<Vec<Column>>, String> {
    let column = |(source, field): (usize, &FieldRef)| {
        let pg_type = if is_json(field) { Ok(PgType::Jsonb) } else { PgType::natural(field) };
        let column =
            pg_type.and_then(|pg_type| Column::new(field, source, ColumnType::Plain(pg_type), options));
        column.map_err(|what| format!("column {:?}: {what}", field.name()))
    };
    schema.fields().iter().enumerate().map(column).collect::<Result<Vec<_>, _>>().map(Arc::new)
}

/// A rejected value: its place, and the reason.
#[derive(Debug)]
pub struct Refused {
    /// Row in the batch, counted from 0.
    pub row: usize,
    /// Name of the column.
    pub column: String,
    /// The value, and its fault.
    pub what: String,
}

/// Encodes batches into buffers.
pub struct CopyEncoder {
    pub(super) columns: Arc<Vec<Column>>,
    pub(super) layouts: Vec<ColumnLayout>,
    buffers: Arc<Buffers>,
    pub(super) buffer: Buffer,
    pub(super) buffer_rows: u64,
    /// The rows of the next block: fewer if values are so long that few rows fill a buffer. The others would be laid out,
    /// and their text searched for 0x00, again and again.
    block: usize,
    /// The lengths, then the positions, of the rows of a block.
    pub(super) positions: [u32; BLOCK],
    pub(super) starts: [u32; BLOCK],
    /// The converted values of a few columns.
    pub(super) words: [[u64; BLOCK]; write::MAX_TOGETHER],
}

/// The function that receives full buffers and the number of rows in each; an `Err` ends the encoding.
pub type Emit<'a, E> = &'a mut dyn FnMut(Bytes, u64) -> Result<(), E>;

/// The reason why a batch was not encoded completely.
#[derive(Debug)]
pub enum Stop<E> {
    /// A value cannot be encoded. The rows before it are encoded.
    Refused(Refused),
    /// The server that reads a column's text did not answer.
    Unanswered(String),
    /// The function that receives buffers failed.
    Emit(E),
}

impl<E: fmt::Display> fmt::Display for Stop<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(Refused { row, column, what }) => write!(f, "row {row}, column {column:?}: {what}"),
            Self::Unanswered(what) => f.write_str(what),
            Self::Emit(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error> std::error::Error for Stop<E> {}

impl CopyEncoder {
    /// Returns an encoder of batches into these columns.
    pub fn new(columns: Arc<Vec<Column>>, buffers: Arc<Buffers>) -> Self {
        Self {
            layouts: columns.iter().map(|_| ColumnLayout::default()).collect(),
            buffer: buffers.take(),
            buffer_rows: 0,
            block: BLOCK,
            positions: [0; BLOCK],
            starts: [0; BLOCK],
            words: [[0; BLOCK]; write::MAX_TOGETHER],
            columns,
            buffers,
        }
    }

    /// Encodes a batch; passes full buffers to `emit`, with the number of rows in each.
    ///
    /// # Errors
    /// A value that cannot be encoded, or what `emit` returns.
    pub fn batch<E>(&mut self, batch: &RecordBatch, emit: Emit<'_, E>) -> Result<(), Stop<E>> {
        self.observed_batch(batch, &mut (), emit)
    }

    /// Encodes a batch, and shows each encoded row to `observer` once.
    ///
    /// # Errors
    /// As [`batch`](Self::batch).
    pub fn observed_batch<E>(
        &mut self,
        batch: &RecordBatch,
        observer: &mut dyn RowObserver,
        emit: Emit<'_, E>,
    ) -> Result<(), Stop<E>> {
        let columns = Arc::clone(&self.columns);
        let refused = |place: usize, fault: Fault| {
            let column = columns.get(place).map(|column| column.name.clone()).unwrap_or_default();
            Stop::Refused(Refused { row: fault.row, column, what: place_path(&fault) })
        };
        let mut arrays: Vec<Cow<'_, ArrayRef>> = Vec::with_capacity(columns.len());
        for (place, column) in columns.iter().enumerate() {
            let Some(array): Option<&ArrayRef> = batch.columns().get(column.source) else {
                return Err(refused(place, Fault::new(0, "the batch does not have this column")));
            };
            let faulty = |fault: Fault| match fault.unanswered {
                true => Stop::Unanswered(fault.what),
                false => refused(place, fault),
            };
            let array = match array.as_binary_view_opt().filter(|_| column.text) {
                None => Cow::Borrowed(array),
                Some(bytes) => Cow::Owned(checked_text(bytes).map_err(faulty)?),
            };
            let array = match &column.conversion {
                None => array,
                Some(conversion) => Cow::Owned(conversion.apply(&array).map_err(faulty)?),
            };
            if array.len() != batch.num_rows() {
                let what = format!("the column has {} of the batch's {} rows", array.len(), batch.num_rows());
                return Err(refused(place, Fault::new(0, what)));
            }
            arrays.push(array);
        }
        let mut bound = Vec::with_capacity(columns.len());
        let all = columns.iter().zip(&mut self.layouts).zip(&arrays);
        for (place, ((column, layout), array)) in all.enumerate() {
            let bind = BoundColumn::bind(&column.element, array, layout);
            bound.push(bind.map_err(|fault| refused(place, fault))?);
        }
        let mut first = 0;
        while first < batch.num_rows() {
            let asked = self.block.min(batch.num_rows() - first);
            let of_batch = |(place, fault): (usize, Fault)| refused(place, fault.after(first));
            let (rows, bytes) = self.lay_out(&bound, first, asked).map_err(of_batch)?;
            if self.buffer.filled + bytes > self.buffer.room() && self.buffer.filled > 0 {
                self.flush(emit)?;
            }
            let (fitting, bytes) = self.fitting(rows, bytes);
            self.write_rows(&bound, first, fitting, bytes, observer).map_err(of_batch)?;
            self.block = if fitting < asked { fitting.max(1) } else { BLOCK.min(2 * self.block) };
            first += fitting;
        }
        Ok(())
    }

    /// Passes the rows in the buffer to `emit`.
    pub fn flush<E>(&mut self, emit: Emit<'_, E>) -> Result<(), Stop<E>> {
        if self.buffer.filled == 0 {
            return Ok(());
        }
        let full = std::mem::replace(&mut self.buffer, self.buffers.take());
        let rows = std::mem::take(&mut self.buffer_rows);
        emit(full.into_bytes(&self.buffers), rows).map_err(Stop::Emit)
    }
}

fn place_path(fault: &Fault) -> String {
    match fault.path.as_str() {
        "" => fault.what.clone(),
        path => format!("{} at {path}", fault.what),
    }
}
