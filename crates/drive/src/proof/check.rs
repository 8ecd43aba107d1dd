//! Compares rows, read back in the order of their numbers, with the known state of each.

use std::sync::atomic::Ordering::Relaxed;

use sawmill_profile::format_counted;
use sawmill_source::{Error, Kind, Result};

use crate::mix::block::{fields, version_of, with_version};
use crate::proof::states::{Known, RowState};
use crate::result::proof::{EXAMPLES, Proof};
use crate::work::rows::SharedTable;

/// A comparison that is under way.
pub(crate) struct Check<'a> {
    table: &'a SharedTable,
    proof: Proof,
    /// The next number to check.
    next: u64,
}

impl<'a> Check<'a> {
    pub(crate) fn new(table: &'a SharedTable) -> Self {
        let proof = Proof {
            table: table.name.clone(),
            updates: table.updates.load(Relaxed),
            wrong_reads: table.wrong_reads.load(Relaxed),
            undeclared: table.undeclared.clone(),
            ..Proof::default()
        };
        Self { table, proof, next: 0 }
    }

    /// The number from which to read on after a reading was cut off. Foreign rows may precede the first one; then
    /// counting starts over.
    pub(crate) fn go_on(&mut self) -> u64 {
        if self.next == 0 {
            *self = Self::new(self.table);
        }
        self.next
    }

    /// The next row in the order of numbers, as it was read back.
    pub(crate) fn row(&mut self, row: &[u8]) -> Result<()> {
        let number = fields(row).next().flatten().and_then(|field| field.try_into().ok());
        let number = number.map(i64::from_be_bytes).and_then(|number| u64::try_from(number).ok());
        match number {
            Some(number) => self.found(number, version_of(row), |expected| expected == row),
            None => {
                self.foreign();
                Ok(())
            }
        }
    }

    /// A row with a number that no run writes.
    pub(crate) fn foreign(&mut self) {
        self.proof.foreign += u64::from(!self.is_undeclared());
        self.proof.read_back += 1;
    }

    /// Checks the next row in the order of numbers; `is` compares the row read back with an encoded row.
    pub(crate) fn found(
        &mut self,
        number: u64,
        version: Option<i64>,
        is: impl Fn(&[u8]) -> bool,
    ) -> Result<()> {
        if !self.table.is_ours(number) {
            return Ok(());
        }
        let known = self.table.states.get(number);
        let has_values =
            matches!(known.state, RowState::Acknowledged | RowState::Unknown | RowState::MaybeDeleted);
        let equal = match version {
            _ if !has_values => true,
            None => false,
            Some(version) => {
                let has = |other| -> Result<bool> {
                    let block = self.table.block_of(number, other)?;
                    Ok(is(&with_version(block.row(number), version)))
                };
                let other = version % 2 != 0;
                has(other)? || known.contended && has(!other)?
            }
        };
        self.note(number, known, if has_values { version } else { None }, equal);
        Ok(())
    }

    /// Counts a row that was read, and whether it has one of its possible values.
    fn note(&mut self, number: u64, known: Known, version: Option<i64>, equal: bool) {
        self.proof.read_back += 1;
        if number < self.next {
            self.proof.doubled += 1;
            self.example(number, "is there twice");
            return;
        }
        self.missing(number);
        self.next = number + 1;
        self.count(known.state);
        let ahead = version.map_or(0, |version| known.ahead(version));
        let (lost, more) = ((-ahead).max(0) as u64, (ahead - i64::from(known.pending)).max(0) as u64);
        match known.state {
            RowState::Outside | RowState::Own | RowState::MaybeOwn => self.proof.not_checked += 1,
            RowState::Untouched | RowState::Failed | RowState::Deleted if self.is_undeclared() => {}
            RowState::Untouched => {
                self.proof.foreign += 1;
                self.example(number, "is there, and this run did not write it");
            }
            RowState::Failed | RowState::Deleted => {
                self.proof.failed_but_found += 1;
                let what = if known.state == RowState::Failed {
                    "its insertion was refused"
                } else {
                    "it was deleted"
                };
                self.example(number, &format!("is there, although {what}"));
            }
            _ if (!equal || lost + more > 0) && self.is_undeclared() => {}
            _ if lost > 0 => {
                self.proof.lost_updates += lost;
                self.example(number, &format!("has lost {}", format_counted(lost, "acknowledged update")));
            }
            _ if more > 0 => {
                self.proof.unsent_updates += more;
                self.example(number, &format!("has {} more than were sent", format_counted(more, "update")));
            }
            _ if !equal => {
                self.proof.different += 1;
                self.example(number, "has other values than were written");
            }
            RowState::Acknowledged => self.proof.found += 1,
            _ => self.proof.unknown_found += 1,
        }
    }

    /// Whether a statement that does not declare its writes may have caused the difference; counts the row as not
    /// checked if so.
    fn is_undeclared(&mut self) -> bool {
        let undeclared = self.table.undeclared.is_some();
        self.proof.not_checked += u64::from(undeclared);
        undeclared
    }

    /// Counts the rows before `number` as missing.
    fn missing(&mut self, number: u64) {
        for missing in self.next..number.min(self.table.states.high()) {
            let state = self.table.states.get(missing).state;
            self.count(state);
            match state {
                RowState::Acknowledged | RowState::MaybeOwn | RowState::Own if !self.is_undeclared() => {
                    self.proof.lost += 1;
                    self.example(missing, "was acknowledged and is not there");
                }
                // It may be a lost row.
                RowState::Outside if self.table.undeclared.is_some() => self.proof.not_checked += 1,
                _ => {}
            }
        }
    }

    fn count(&mut self, state: RowState) {
        let proof = &mut self.proof;
        match state {
            RowState::Untouched | RowState::Outside => return,
            RowState::Acknowledged | RowState::MaybeOwn | RowState::Own => proof.acknowledged += 1,
            RowState::Failed => proof.failed += 1,
            RowState::Deleted => {}
            RowState::Unknown | RowState::OwnUnknown | RowState::MaybeDeleted => proof.unknown += 1,
        }
        proof.written += 1;
    }

    fn example(&mut self, number: u64, what: &str) {
        if self.proof.examples.len() < EXAMPLES {
            self.proof.examples.push(format!("row {number} {what}"));
        }
    }

    /// Ends the check after the last row: all further numbers are missing.
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
