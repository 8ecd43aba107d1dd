//! The encoder as the loader's worker sees it.

use super::{CopyEncoder, Refused, Stop};
use crate::engine::content_sum::Tally;
use crate::engine::target::{BatchEncoder, Block, Refusal};
use crate::error::{Error, Kind, Result};

impl BatchEncoder for CopyEncoder {
    fn encode(
        &mut self,
        batch: &arrow_array::RecordBatch,
        emit: &mut dyn FnMut(Block) -> Result<()>,
    ) -> Result<(), Refusal> {
        let mut emit = |bytes, rows| emit(Block::new(bytes, rows));
        self.batch(batch, &mut emit).map_err(|stop| match stop {
            Stop::Refused(Refused { row, column, what }) => Refusal::Value { row, column, what },
            Stop::Emit(error) => Refusal::Stopped(error),
        })
    }

    fn end_unit(&mut self, emit: &mut dyn FnMut(Block) -> Result<()>) -> Result<Tally> {
        let mut emit = |bytes, rows| emit(Block::new(bytes, rows));
        match self.flush(&mut emit) {
            Ok(()) => Ok(self.take_tally()),
            Err(Stop::Emit(error)) => Err(error),
            Err(Stop::Refused(refused)) => Err(Error::new(Kind::Value, refused.what)),
        }
    }
}
