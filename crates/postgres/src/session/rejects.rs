//! The rows that a session's load has rejected: read from their records, and written to their file.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_array::RecordBatch;
use sawmill_loader::{BatchEncoder, Block, Encoders, LoadState, Refusal, Session, Tally};
use sawmill_pgcopy::Column;
use sawmill_source::{Control, Read, Result, Source, Unit, UnitKey};

use super::PostgresSession;
use crate::encode::canonical_row::CanonicalRow;
use crate::encode::encoders::{RejectingEncoder, SummingEncoder};
use crate::rejected::bad_records::{BadRecords, row_groups};
use crate::rejected::file::RejectsFile;
use crate::table::catalogue::Link;
use crate::verify::tuples::Tuples;

impl PostgresSession<'_> {
    /// The rejected rows, as the source counts them.
    pub(super) fn refused(&self, link: Link<'_>) -> Result<Option<BadRecords>> {
        if self.rejected() == 0 {
            return Ok(None);
        }
        let (records, id) = (self.plan.checkpoints.on(link), &self.plan.load_id);
        let loaded = self.source().unwrap_or(self.source);
        let (groups, mut refused) = (row_groups(self.source), BadRecords::new(&std::env::temp_dir())?);
        let mut are_known = true;
        for keys in
            records.rejecting_units(id)?.chunk_by(|a, b| (a.file, a.row_group) == (b.file, b.row_group))
        {
            let mut rows = BTreeSet::new();
            for key in keys {
                let rejects = records.rejects(id, *key)?;
                let numbers: Vec<u64> = rejects.iter().map(|reject| reject.row).collect();
                rows.extend(loaded.rows_in_group(*key, &numbers)?);
            }
            if let Some(group) = keys.first().and_then(|key| groups.get(&(key.file, key.row_group))) {
                are_known &= refused.add_group(self.source, group, &rows)?;
            }
        }
        Ok(are_known.then_some(refused))
    }

    /// Writes the file of a complete load if it does not exist: an earlier run could not write it or did not
    /// name it, or it has been removed since.
    pub(super) fn write_missing_rejects(&self, control: &Control<'_>) -> Result<()> {
        let file = self.postgres.rejects.as_ref().filter(|rejects| !rejects.path.exists());
        match file {
            Some(_) if self.state == LoadState::Complete && self.rejected() > 0 => {
                self.with_connection(control, |link| self.write_rejects(link))
            }
            _ => Ok(()),
        }
    }

    /// Writes the file of rejected rows before the load counts as complete. If a run is killed in between,
    /// the next one writes the file again.
    pub(super) fn write_rejects(&self, link: Link<'_>) -> Result<()> {
        let Some(options) = &self.postgres.rejects else { return Ok(()) };
        let (records, id) = (self.plan.checkpoints.on(link), &self.plan.load_id);
        let source = self.source().unwrap_or(self.source);
        let plan = source.plan(self.record.unit_rows);
        let units: HashMap<UnitKey, Unit> = plan.into_iter().flatten().map(|unit| (unit.key, unit)).collect();
        let read = Read { broken_text: true, ..Read::default() };
        let mut reader = source.open(read, self.options.batch_rows);
        let mut file = RejectsFile::create(&options.path, self.postgres.rejects_of(source, &self.table))?;
        for key in records.rejecting_units(id)? {
            let rejects = records.rejects(id, key)?;
            if let Some(unit) = units.get(&key) {
                file.unit(unit, &rejects, reader.as_mut())?;
            }
        }
        file.finish()
    }
}

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
