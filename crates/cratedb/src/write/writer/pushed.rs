//! Rows of statements, which are handed in block by block instead of being taken from a channel.

use sawmill_loader::{Block, Tally};
use sawmill_source::{Control, Result, Unit};

use super::CrateWriter;

impl CrateWriter {
    /// Begins a unit whose rows have not been sent before.
    pub(crate) fn begin_pushed(&mut self, unit: &Unit) {
        self.begin(unit);
    }

    /// Sends rows of the unit, and returns when each of them is in.
    ///
    /// # Errors
    /// A row that the server refuses; no answer where rows cannot be repeated; no connection.
    pub(crate) fn push(&mut self, unit: &Unit, block: Block, control: &Control<'_>) -> Result<()> {
        let batch = self.batch_of(unit, block)?;
        self.send_batch(&batch, control)
    }

    /// Ends the unit, whose rows are all in.
    pub(crate) fn end_pushed(&mut self, unit: Unit, tally: Tally, control: &Control<'_>) -> Result<()> {
        self.record(vec![(unit, tally)], control).map(drop)
    }
}
