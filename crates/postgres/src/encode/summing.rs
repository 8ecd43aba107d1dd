//! The encoder that the loader's workers use: rows of binary COPY and their sums.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use sawmill_loader::{BatchEncoder, Block, Refusal, Tally};
use sawmill_pgcopy::{Buffers, Column, CopyEncoder, Emit, EncodedRows, Refused, RowObserver, Stop};
use sawmill_source::{Error, Kind, Result};

use crate::encode::canonical_row::CanonicalRow;

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
