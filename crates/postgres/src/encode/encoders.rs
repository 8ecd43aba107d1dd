//! Encoders that sum up the rows, and leave out those that cannot be encoded.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use bytes::Bytes;
use sawmill_loader::{BatchEncoder, Block, Mark, Marks, Refusal, Tally};
use sawmill_pgcopy::{Buffers, Column, CopyEncoder, Emit, EncodedRows, Refused, RowObserver, Stop};
use sawmill_source::{Error, Kind, Result, Unit};

use crate::encode::canonical_row::CanonicalRow;
use crate::nested::flat_tables::RecordNumbers;

/// Encodes batches, and sums the encoded rows.
pub(crate) struct SummingEncoder {
    encoder: CopyEncoder,
    sum: RowSum,
    /// For columns that do not take every value, what to say of one that is refused.
    pub hints: Arc<BTreeMap<String, String>>,
}

/// The error for text that the server was asked to read, and did not.
pub(super) fn unanswered(what: String) -> Error {
    Error::new(Kind::Connection, what)
        .advise("run the same command again: what was committed stays and is not loaded twice")
}

/// The sum of the rows since the last call.
struct RowSum {
    /// How rows are hashed.
    canonical: CanonicalRow,
    tally: Tally,
}

impl RowObserver for RowSum {
    fn rows(&mut self, rows: &EncodedRows<'_>) {
        for (count, values) in self.tally.non_null.iter_mut().zip(rows.non_null()) {
            *count += values as u64;
        }
        for row in rows.iter() {
            self.tally.content_sum.add(self.canonical.row(row));
        }
        self.tally.rows += rows.row_count() as u64;
    }
}

impl SummingEncoder {
    pub(crate) fn new(columns: Arc<Vec<Column>>, buffers: Arc<Buffers>) -> Self {
        let sum =
            RowSum { canonical: CanonicalRow::new(&columns, false), tally: Tally::empty(columns.len()) };
        Self { sum, encoder: CopyEncoder::new(columns, buffers), hints: Arc::default() }
    }

    /// Encodes a batch, and emits full buffers with their number of rows.
    pub(crate) fn batch<E>(&mut self, batch: &RecordBatch, emit: Emit<'_, E>) -> Result<(), Stop<E>> {
        self.encoder.observed_batch(batch, &mut self.sum, emit)
    }

    /// Emits the rest of the buffer.
    pub(crate) fn flush(&mut self, emit: Emit<'_, Error>) -> Result<()> {
        self.encoder.flush(emit).map_err(|stop| match stop {
            Stop::Emit(error) => error,
            Stop::Unanswered(what) => unanswered(what),
            Stop::Refused(refused) => Error::new(Kind::Value, refused.what),
        })
    }

    /// Rows that were encoded since the last [`take_tally`](Self::take_tally).
    pub(crate) fn rows(&self) -> u64 {
        self.sum.tally.rows
    }

    /// The sum of the rows encoded since the last call. Call [`flush`](Self::flush) first.
    pub(crate) fn take_tally(&mut self) -> Tally {
        let empty = Tally::empty(self.sum.tally.non_null.len());
        std::mem::replace(&mut self.sum.tally, empty)
    }
}

impl BatchEncoder for SummingEncoder {
    fn encode(
        &mut self,
        batch: &RecordBatch,
        emit: &mut dyn FnMut(Block) -> Result<()>,
    ) -> Result<(), Refusal> {
        let mut emit = |bytes, rows| emit(Block::new(bytes, rows));
        self.batch(batch, &mut emit).map_err(|stop| match stop {
            Stop::Refused(Refused { row, column, what }) => {
                let hint = self.hints.get(&column).map_or_else(String::new, |hint| format!(": {hint}"));
                Refusal::Value { row, column, what: what + &hint }
            }
            Stop::Unanswered(what) => Refusal::Stopped(unanswered(what)),
            Stop::Emit(error) => Refusal::Stopped(error),
        })
    }

    fn end_unit(&mut self, emit: &mut dyn FnMut(Block) -> Result<()>) -> Result<Tally> {
        self.flush(&mut |bytes, rows| emit(Block::new(bytes, rows)))?;
        Ok(self.take_tally())
    }
}

/// Rows that are encoded at once after a refusal; the number doubles after each success.
const AFTER_REFUSAL: usize = 16;

/// Emits blocks that say the number of each of their rows in the unit, or of its record, and which rows
/// between them were refused.
pub(crate) struct RejectingEncoder {
    inner: SummingEncoder,
    numbering: Numbering,
    passed: Passed,
}

/// Numbers rows within their unit.
#[derive(Default)]
struct Numbering {
    /// The row of the unit with which the next batch begins.
    next: u32,
    /// Set if rows belong to records, whose numbers are in the first column.
    records: Option<Arc<RecordNumbers>>,
    /// Number of the unit's first record.
    first_record: u64,
}

impl Numbering {
    fn begin(&mut self, unit: &Unit) {
        self.next = 0;
        self.first_record = self.records.as_ref().map_or(0, |records| records.of_unit(unit.key));
    }

    /// The number of a batch's row, or the number of its record.
    fn number(&self, batch: &RecordBatch, row: usize) -> u32 {
        let records = self.records.as_ref().and_then(|_| batch.columns().first());
        match records.and_then(|numbers| numbers.as_primitive_opt::<Int64Type>()) {
            Some(numbers) => (numbers.value(row) as u64).saturating_sub(self.first_record) as u32,
            None => self.next + row as u32,
        }
    }
}

/// Rows that were encoded and not yet emitted.
#[derive(Default)]
struct Passed {
    /// Rows of the unit that are in the encoder's buffer, in order.
    rows: VecDeque<u32>,
    /// Rows that were refused since the last block, and why.
    refused: Vec<(u32, String)>,
}

impl Passed {
    fn block(&mut self, bytes: Bytes, rows: u64) -> Block {
        let numbers = self.rows.drain(..(rows as usize).min(self.rows.len())).collect();
        let refused = std::mem::take(&mut self.refused);
        Block { bytes, rows, marks: Some(Box::new(Marks { numbers, refused, ..Marks::default() })) }
    }
}

/// The end of each row in a block of a [`RejectingEncoder`], and its number in the unit. Computed only when
/// single rows are needed: the server takes most blocks whole.
pub(crate) fn marked_rows(block: &Block) -> impl Iterator<Item = Mark> {
    let numbers = block.marks.iter().flat_map(|marks| &marks.numbers);
    row_ends(&block.bytes).zip(numbers).map(|(end, row)| Mark { end, row: *row })
}

/// The end of each encoded row, without an incomplete last one.
pub(crate) fn row_ends(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (count, _) = bytes.get(at..)?.split_first_chunk::<2>()?;
        at += 2;
        for _ in 0..u16::from_be_bytes(*count) {
            let (length, _) = bytes.get(at..)?.split_first_chunk::<4>()?;
            at += 4 + i32::from_be_bytes(*length).max(0) as usize;
        }
        (at <= bytes.len()).then_some(at as u32)
    })
}

impl RejectingEncoder {
    pub(crate) fn new(inner: SummingEncoder) -> Self {
        Self { inner, numbering: Numbering::default(), passed: Passed::default() }
    }

    /// Numbers each row by its record. The rows must belong to a flat table, whose first column numbers the
    /// records.
    pub(crate) fn of_records(mut self, records: &Arc<RecordNumbers>) -> Self {
        self.numbering.records = Some(Arc::clone(records));
        self
    }

    /// Encodes rows `first..first + rows` of a batch. If one is refused, returns the number of rows encoded
    /// before and the refused row, both counted from `first`.
    fn some_rows(
        &mut self,
        batch: &RecordBatch,
        first: usize,
        rows: usize,
        emit: &mut dyn FnMut(Block) -> Result<()>,
    ) -> Result<Option<(usize, Refused)>> {
        let Self { inner, passed, numbering } = self;
        passed.rows.extend((first..first + rows).map(|row| numbering.number(batch, row)));
        let before = inner.rows();
        let tried = {
            let mut emit = |bytes, rows| emit(passed.block(bytes, rows));
            inner.batch(&batch.slice(first, rows), &mut emit)
        };
        match tried {
            Ok(()) => Ok(None),
            Err(Stop::Emit(error)) => Err(error),
            Err(Stop::Unanswered(what)) => Err(unanswered(what)),
            Err(Stop::Refused(refused)) => {
                let encoded = (inner.rows() - before) as usize;
                passed.rows.truncate(passed.rows.len().saturating_sub(rows - encoded));
                Ok(Some((encoded, refused)))
            }
        }
    }
}

impl BatchEncoder for RejectingEncoder {
    fn begin_unit(&mut self, unit: &Unit) {
        self.numbering.begin(unit);
        self.passed = Passed::default();
    }

    fn encode(
        &mut self,
        batch: &RecordBatch,
        emit: &mut dyn FnMut(Block) -> Result<()>,
    ) -> Result<(), Refusal> {
        let end = batch.num_rows();
        let (mut first, mut step) = (0, end);
        while first < end {
            let rows = step.min(end - first);
            match self.some_rows(batch, first, rows, emit).map_err(Refusal::Stopped)? {
                None => {
                    first += rows;
                    step = step.saturating_mul(2);
                }
                Some((encoded, refused)) => {
                    let row = refused.row;
                    first += encoded;
                    match row - encoded.min(row) {
                        0 => {
                            let why = format!("column {:?}: {}", refused.column, refused.what);
                            self.passed.refused.push((self.numbering.number(batch, first), why));
                            first += 1;
                            step = AFTER_REFUSAL;
                        }
                        // An earlier row may be refused in a column that was not encoded yet.
                        rows_before => step = rows_before,
                    }
                }
            }
        }
        self.numbering.next += end as u32;
        Ok(())
    }

    fn end_unit(&mut self, emit: &mut dyn FnMut(Block) -> Result<()>) -> Result<Tally> {
        let Self { inner, passed, .. } = self;
        inner.flush(&mut |bytes, rows| emit(passed.block(bytes, rows)))?;
        if !passed.refused.is_empty() {
            emit(passed.block(Bytes::new(), 0))?;
        }
        Ok(inner.take_tally())
    }
}
