//! The source's current rows, encoded for the table, to be compared with the loaded ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use sawmill_loader::{BatchEncoder, Block, Encoders, Refusal, Session, Tally};
use sawmill_pgcopy::Column;
use sawmill_source::{Control, Result, Source, Unit};

use super::PostgresSession;
use crate::encode::canonical_row::CanonicalRow;
use crate::encode::rejecting::RejectingEncoder;
use crate::encode::summing::SummingEncoder;
use crate::rejected::bad_records::BadRecords;
use crate::verify::tuples::Tuples;

impl PostgresSession<'_> {
    /// Encoders of the rows that are in the table.
    pub(super) fn encoders_of_loaded<'e>(
        &'e self,
        source: &dyn Source,
        control: &Control<'_>,
    ) -> Result<Box<Encoders<'e>>> {
        if self.rejected() == 0 {
            return Ok(Box::new(|| self.encoder()));
        }
        let (checkpoints, id) = (&self.plan.checkpoints, &self.plan.load_id);
        let refused = self.with_connection(control, |link| {
            let mut refused = BadRecords::new(&std::env::temp_dir())?;
            refused.add_recorded(source, &checkpoints.on(link), id)?;
            Ok(Arc::new(refused))
        })?;
        Ok(Box::new(move || {
            let encoder = SummingEncoder::new(Arc::clone(&self.columns), Arc::clone(&self.buffers));
            Ok(Box::new(WithoutRefused::new(encoder, Arc::clone(&refused), Arc::clone(&self.columns))))
        }))
    }
}

/// Sums the rows of units, without the rejected ones.
struct WithoutRefused {
    inner: RejectingEncoder,
    refused: Arc<BadRecords>,
    columns: Arc<Vec<Column>>,
    first_row: u64,
    /// The unit's rejected rows.
    of_unit: Result<BTreeSet<u64>>,
    tuples: Tuples,
}

impl WithoutRefused {
    fn new(encoder: SummingEncoder, refused: Arc<BadRecords>, columns: Arc<Vec<Column>>) -> Self {
        Self {
            inner: RejectingEncoder::new(encoder),
            refused,
            first_row: 0,
            of_unit: Ok(BTreeSet::new()),
            tuples: no_tuples(&columns),
            columns,
        }
    }
}

fn no_tuples(columns: &[Column]) -> Tuples {
    Tuples::new(columns.len(), CanonicalRow::new(columns, false), false)
}

impl BatchEncoder for WithoutRefused {
    fn begin_unit(&mut self, unit: &Unit) {
        self.inner.begin_unit(unit);
        self.first_row = unit.key.first_row;
        self.of_unit = self.refused.rows_of(unit);
        self.tuples = no_tuples(&self.columns);
    }

    fn encode(
        &mut self,
        batch: &RecordBatch,
        _emit: &mut dyn FnMut(Block) -> Result<()>,
    ) -> Result<(), Refusal> {
        let Self { inner, of_unit, tuples, first_row, .. } = self;
        let refused = of_unit.as_ref().map_err(|error| Refusal::Stopped(error.clone()))?;
        inner.encode(batch, &mut |block| tuples.feed_without(refused, *first_row, &block))
    }

    fn end_unit(&mut self, _emit: &mut dyn FnMut(Block) -> Result<()>) -> Result<Tally> {
        let Self { inner, of_unit, tuples, first_row, columns, .. } = self;
        let refused = of_unit.as_ref().map_err(Clone::clone)?;
        inner.end_unit(&mut |block| tuples.feed_without(refused, *first_row, &block))?;
        Ok(std::mem::replace(tuples, no_tuples(columns)).into_sums().whole)
    }
}
