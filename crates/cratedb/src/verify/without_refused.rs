//! The sums of units without the rows that the server refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use sawmill_loader::{BatchEncoder, Block, RecordedUnit, Refusal, Tally};
use sawmill_source::{Result, Unit, UnitKey};

use crate::encode::bodies::Bodies;
use crate::encode::encoder::{CrateEncoder, EncodePlan};

/// Sums up units of the source as the table has them. The encoder leaves out rows that cannot be represented, as in
/// the load. Rows that the server refused are subtracted by their recorded sum.
pub(crate) struct WithoutRefused {
    inner: CrateEncoder,
    refused: Arc<BTreeMap<UnitKey, Tally>>,
    /// Refused rows of the unit.
    of_unit: Tally,
}

impl WithoutRefused {
    /// The sums of refused rows by unit.
    pub(crate) fn refused<'u>(
        units: impl Iterator<Item = (&'u UnitKey, &'u RecordedUnit)>,
    ) -> Arc<BTreeMap<UnitKey, Tally>> {
        Arc::new(units.filter_map(|(key, unit)| Some((*key, unit.refused.clone()?))).collect())
    }

    pub(crate) fn new(
        encode: &Arc<EncodePlan>,
        bodies: &Arc<Bodies>,
        refused: &Arc<BTreeMap<UnitKey, Tally>>,
    ) -> Self {
        Self {
            inner: CrateEncoder::new(Arc::clone(encode), Arc::clone(bodies)),
            refused: Arc::clone(refused),
            of_unit: Tally::empty(encode.plan.columns.len()),
        }
    }
}

impl BatchEncoder for WithoutRefused {
    fn begin_unit(&mut self, unit: &Unit) {
        self.inner.begin_unit(unit);
        self.of_unit = Tally::empty(self.of_unit.non_null.len());
        // Another version may have cut the row group into smaller units.
        let end = UnitKey { first_row: unit.key.first_row + unit.rows, ..unit.key };
        self.refused.range(unit.key..end).for_each(|(_, refused)| self.of_unit.add(refused));
    }

    fn encode(
        &mut self,
        batch: &RecordBatch,
        _emit: &mut dyn FnMut(Block) -> Result<()>,
    ) -> Result<(), Refusal> {
        self.inner.encode(batch, &mut |_| Ok(()))
    }

    fn end_unit(&mut self, _emit: &mut dyn FnMut(Block) -> Result<()>) -> Result<Tally> {
        Ok(self.inner.end_unit(&mut |_| Ok(()))?.minus(&self.of_unit))
    }
}
