//! Compares rows that are read back in the order of their numbers with what is known of each.

use sawmill_source::{Error, Kind, Result};

use crate::mix::block::{Blocks, fields};
use crate::proof::states::RowState;
use crate::result::proof::Proof;
use crate::work::rows::SharedTable;

/// Blocks of expected rows that are kept: of a version each.
const KEPT: usize = 4;
/// Examples of what is wrong.
const EXAMPLES: usize = 10;

/// A comparison that is under way.
pub(crate) struct Check<'a> {
    table: &'a SharedTable,
    proof: Proof,
    blocks: Blocks,
    /// The next number that was not looked at.
    next: u64,
}

impl<'a> Check<'a> {
    pub(crate) fn new(table: &'a SharedTable) -> Self {
        let proof = Proof { table: table.name.clone(), ..Proof::default() };
        Self { table, proof, blocks: Blocks::new(KEPT), next: 0 }
    }

    /// The next row in the order of numbers, as it was read back.
    pub(crate) fn row(&mut self, row: &[u8]) -> Result<()> {
        let number = fields(row).next().flatten().and_then(|field| field.try_into().ok());
        let number = number.map(i64::from_be_bytes).and_then(|number| u64::try_from(number).ok());
        match number {
            Some(number) => self.found(number, |expected| expected == row),
            None => {
                self.foreign();
                Ok(())
            }
        }
    }

    /// A row with a number that no run writes.
    pub(crate) fn foreign(&mut self) {
        self.proof.foreign += 1;
        self.proof.read_back += 1;
    }

    /// The next row in the order of numbers; `is` compares what was read back with an encoded row.
    pub(crate) fn found(&mut self, number: u64, is: impl Fn(&[u8]) -> bool) -> Result<()> {
        if !self.table.is_ours(number) {
            return Ok(());
        }
        let state = self.table.states.get(number);
        let mut version = |version| self.blocks.row(&self.table.maker, number, version).map(&is);
        let equal = match state {
            RowState::Untouched | RowState::Outside => true,
            RowState::Updated => version(1)?,
            RowState::MaybeUpdated | RowState::MaybeDeletedUpdated => version(0)? || version(1)?,
            _ => version(0)?,
        };
        self.note(number, state, equal);
        Ok(())
    }

    /// Counts a row that is there, and whether it has one of the values that it may have.
    fn note(&mut self, number: u64, state: RowState, equal: bool) {
        self.proof.read_back += 1;
        if number < self.next {
            self.proof.doubled += 1;
            self.example(number, "is there twice");
            return;
        }
        self.missing(number);
        self.next = number + 1;
        self.count(state);
        match state {
            RowState::Untouched => {
                self.proof.foreign += 1;
                self.example(number, "is there, and this run did not write it");
            }
            RowState::Failed | RowState::Deleted => {
                self.proof.failed_but_found += 1;
                let what =
                    if state == RowState::Failed { "its insertion was refused" } else { "it was deleted" };
                self.example(number, &format!("is there, although {what}"));
            }
            RowState::Outside => {}
            _ if !equal => {
                self.proof.different += 1;
                self.example(number, "has other values than were written");
            }
            RowState::Acknowledged | RowState::Updated | RowState::MaybeUpdated => self.proof.found += 1,
            _ => self.proof.unknown_found += 1,
        }
    }

    /// The rows before `number` are not there.
    fn missing(&mut self, number: u64) {
        for missing in self.next..number.min(self.table.states.high()) {
            let state = self.table.states.get(missing);
            self.count(state);
            if matches!(state, RowState::Acknowledged | RowState::Updated | RowState::MaybeUpdated) {
                self.proof.lost += 1;
                self.example(missing, "was acknowledged and is not there");
            }
        }
    }

    fn count(&mut self, state: RowState) {
        let proof = &mut self.proof;
        match state {
            RowState::Untouched | RowState::Outside => return,
            RowState::Acknowledged | RowState::Updated | RowState::MaybeUpdated => proof.acknowledged += 1,
            RowState::Failed => proof.failed += 1,
            RowState::Deleted => {}
            RowState::Unknown
            | RowState::MaybeDeleted
            | RowState::MaybeDeletedUpdated
            | RowState::Changing => {
                proof.unknown += 1;
            }
        }
        proof.written += 1;
    }

    fn example(&mut self, number: u64, what: &str) {
        if self.proof.examples.len() < EXAMPLES {
            self.proof.examples.push(format!("row {number} {what}"));
        }
    }

    /// All rows were passed: what is not there is missing.
    pub(crate) fn end(mut self) -> Result<Proof> {
        self.missing(u64::MAX);
        match self.table.states.is_broken() {
            true => Err(Error::new(
                Kind::Output,
                "what is known of the rows could not be kept in a temporary file",
            )
            .at(std::env::temp_dir().display().to_string())
            .advise("free some space there, or set TMPDIR, and run the same command again")),
            false => Ok(self.proof),
        }
    }
}
