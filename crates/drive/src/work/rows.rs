//! Rows for operations: new rows, previously written rows, and the state of each.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use sawmill_generator::ZipfSampler;
use sawmill_pgcopy::PgType;
use sawmill_source::{Error, Result};

use crate::mix::block::{BLOCK_ROWS, Block, RowMaker, fields, with_version};
use crate::mix::pick::{Pick, Picker, sampler};
use crate::mix::supply::{KEPT_BYTES, KeptBlocks, Slice, Supply};
use crate::plan::types::{ChosenRow, Writes};
use crate::proof::states::{Known, MAX_PENDING, RowState, RowStates};
use crate::work::outcome::{CHECK, Change, Failure, Outcome};
use crate::work::step::Arguments;

/// Keeps the draws of an operation's rows and statements apart.
pub(crate) const DRAWS: u64 = 1_000_003;

/// Rows whose early reads are remembered.
const MAX_EARLY: usize = 1 << 16;

/// A table while a run lasts, shared by all connections.
#[derive(Debug)]
pub(crate) struct SharedTable {
    pub name: String,
    pub maker: RowMaker,
    pub states: RowStates,
    /// Updates that were acknowledged.
    pub updates: AtomicU64,
    /// Reads of single rows that did not show what was acknowledged before they began, or showed what was rolled back.
    pub wrong_reads: AtomicU64,
    /// The version that a read of a row has shown while its update was under way.
    early: Mutex<HashMap<u64, i64>>,
    /// The first operation with a statement that writes the table without declaring how. It may cause differences.
    pub undeclared: Option<String>,
    /// Whether operations upsert its rows.
    pub upserts: bool,
    /// New rows that were made ahead.
    pub supply: Supply,
    /// Earlier rows.
    kept: KeptBlocks,
    /// The samplers, by the skew of the choices that draw from them.
    samplers: Mutex<Vec<(f64, Arc<ZipfSampler>)>>,
    /// How many blocks were handed out.
    next: AtomicU64,
    /// The number of this process, and how many there are: block `b` belongs to process `b % n`.
    pub part: (u64, u64),
}

impl SharedTable {
    pub(crate) fn new(
        name: String,
        maker: RowMaker,
        part: (u64, u64),
        undeclared: Option<String>,
        upserts: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            maker,
            states: RowStates::default(),
            updates: AtomicU64::new(0),
            wrong_reads: AtomicU64::new(0),
            early: Mutex::default(),
            undeclared,
            upserts,
            supply: Supply::default(),
            kept: KeptBlocks::default(),
            samplers: Mutex::default(),
            next: AtomicU64::new(0),
            part,
        })
    }

    /// A read that did not show what it had to.
    pub(crate) fn wrong_read(&self, number: u64, what: &str) -> Failure {
        self.wrong_reads.fetch_add(1, Relaxed);
        Failure::new(CHECK, format!("table {}, row {number}: {what}", self.name), true)
    }

    /// Remembers that a read has shown an update which is still under way.
    pub(crate) fn read_early(&self, number: u64, version: i64) {
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        if early.len() < MAX_EARLY {
            early.insert(number, version);
        }
    }

    /// An update of the row had no effect. A read that has shown it was dirty; while others are under way, one of them
    /// may be what it has shown.
    fn rolled_back(&self, number: u64, now: Known) {
        if now.pending > 0 {
            return;
        }
        let shown = self.early.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        let is_dirty = shown.is_some_and(|version| now.ahead(version) > 0);
        self.wrong_reads.fetch_add(is_dirty.into(), Relaxed);
    }

    /// A block of new rows for the caller alone.
    pub(crate) fn fill_block(&self) -> Result<Block> {
        let number = self.next.fetch_add(1, Relaxed) * self.part.1 + self.part.0 - 1;
        self.maker.block(number, false)
    }

    /// Makes new rows ahead of their use until `is_over`; the supply has to be drained then.
    pub(crate) fn supply(&self, is_over: &dyn Fn() -> bool) {
        while !is_over() {
            // A connection that finds no rows makes them, and reports why that fails.
            let Ok(block) = self.fill_block() else { return };
            self.supply.add(block);
        }
    }

    /// Makes the rows that the table has before the run, and passes them to `send` block by block. Operations take the
    /// rest of the last block.
    pub(crate) fn fill(
        &self,
        rows: u64,
        cancel: &AtomicBool,
        mut send: impl FnMut(&[&[u8]]) -> Result<()>,
    ) -> Result<()> {
        let mut left = rows;
        while left > 0 {
            if cancel.load(Relaxed) {
                return Err(Error::cancelled());
            }
            let block = self.fill_block()?;
            let numbers = block.first..block.first + left.min(BLOCK_ROWS);
            send(&numbers.clone().map(|number| block.row(number)).collect::<Vec<_>>())?;
            numbers.clone().for_each(|number| self.states.set(number, RowState::Acknowledged));
            left -= numbers.end - numbers.start;
            self.supply.offer(block, numbers.end);
        }
        Ok(())
    }

    /// The block that contains a row.
    pub(crate) fn block_of(&self, number: u64, other: bool) -> Result<Arc<Block>> {
        let key = (number / BLOCK_ROWS, other);
        if let Some(block) = self.kept.get(key) {
            return Ok(block);
        }
        let block = Arc::new(self.maker.block(key.0, other)?);
        self.kept.keep(key, &block);
        Ok(block)
    }

    /// Whether the blocks of `rows` rows, each with its values before and after an update, are kept once made.
    pub(crate) fn keeps(&self, rows: u64) -> Result<bool> {
        let blocks = 2 * rows.div_ceil(BLOCK_ROWS);
        Ok(blocks * self.block_of(0, false)?.bytes() as u64 <= KEPT_BYTES as u64)
    }

    /// The sampler for choices of this skew, shared by all connections.
    fn sampler(&self, skew: f64, seed: u64) -> Option<Arc<ZipfSampler>> {
        let mut samplers = self.samplers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = samplers.iter().find(|(its, _)| *its == skew) {
            return Some(Arc::clone(known));
        }
        let sampler = sampler(skew, seed)?;
        samplers.push((skew, Arc::clone(&sampler)));
        Some(sampler)
    }

    /// Makes the block of an earlier row, with its values before and after an update.
    pub(crate) fn make_kept(&self, number: u64) -> Result<()> {
        [false, true].into_iter().try_for_each(|other| self.block_of(number, other).map(drop))
    }

    /// Whether this process writes the row.
    pub(crate) fn is_ours(&self, number: u64) -> bool {
        number / BLOCK_ROWS % self.part.1 == self.part.0 - 1
    }
}

/// A change that is under way.
#[derive(Clone, Copy, Debug)]
struct Touched {
    table: usize,
    number: u64,
    change: Change,
}

/// The rows of one connection.
pub(crate) struct Rows {
    pub tables: Arc<Vec<Arc<SharedTable>>>,
    fresh: Vec<Option<Slice>>,
    pickers: Vec<(Pick, usize, Picker)>,
    touched: Vec<Touched>,
    /// The rows that the operation's own statements take their parameters from, with their tables.
    chosen: Vec<(usize, Vec<u8>)>,
    seed: u64,
    stream: u64,
    /// Updates add to the version that the server has, so that it counts each. Otherwise they set it.
    pub server_counts: bool,
}

impl Rows {
    pub(crate) fn new(tables: &Arc<Vec<Arc<SharedTable>>>, seed: u64, stream: u64) -> Self {
        Self {
            fresh: tables.iter().map(|_| None).collect(),
            tables: Arc::clone(tables),
            pickers: Vec::new(),
            touched: Vec::new(),
            chosen: Vec::new(),
            seed,
            stream,
            server_counts: false,
        }
    }

    /// The types of each table's columns.
    pub(crate) fn types(&self) -> Vec<Vec<PgType>> {
        self.tables.iter().map(|table| table.maker.column_types().map(|(_, of)| of).collect()).collect()
    }

    /// Passes a new row to `take`: its number and its bytes.
    pub(crate) fn fresh<T>(
        &mut self,
        table: usize,
        change: Change,
        take: impl FnOnce(u64, &[u8]) -> T,
    ) -> Result<T> {
        let slot = &mut self.fresh[table];
        let mut next = slot.as_mut().and_then(Slice::next);
        if next.is_none() {
            let shared = &self.tables[table];
            next = slot.insert(shared.supply.take(self.stream, || shared.fill_block())?).next();
        }
        // A supply hands over slices of at least one row.
        let Some((number, row)) = next else { unreachable!("what is taken has rows") };
        self.touched.push(Touched { table, number, change });
        Ok(take(number, row))
    }

    /// Chooses an earlier row: its number and known state. With `own`, also accepts rows with values from the
    /// plan's statements.
    pub(crate) fn pick(&mut self, table: usize, pick: Pick, draw: u64, own: bool) -> Option<(u64, Known)> {
        let at = self.pickers.iter().position(|(of, its, _)| (*of, *its) == (pick, table));
        let at = at.unwrap_or_else(|| {
            let sampler = pick.skew().and_then(|skew| self.tables[table].sampler(skew, self.seed));
            self.pickers.push((pick, table, Picker::new(pick, sampler, self.stream)));
            self.pickers.len() - 1
        });
        self.pickers[at].2.pick(&self.tables[table].states, draw, own)
    }

    /// Chooses an earlier row to change. Others may be changing it as well; an operation changes a row only once.
    pub(crate) fn claim(
        &mut self,
        table: usize,
        pick: Pick,
        draw: u64,
        change: Change,
    ) -> Option<(u64, Known)> {
        let shared = Arc::clone(&self.tables[table]);
        // A version that is set, not counted, cannot tell two simultaneous updates apart.
        let max_pending = if self.server_counts { MAX_PENDING } else { 1 };
        // An upsert creates a row again that was deleted under it.
        let max_deleted = if shared.upserts { 0 } else { max_pending - 1 };
        let next = |was: Known| match (change, was.state) {
            (Change::Update, RowState::Acknowledged) => was.updating(max_pending),
            (Change::Delete, RowState::Acknowledged) if was.pending <= max_deleted => {
                Some(was.with(RowState::MaybeDeleted))
            }
            (Change::OwnUpdate, RowState::Acknowledged) => Some(was.with(RowState::MaybeOwn)),
            // If two statements write their values at the same time and one of them fails, the values of the other
            // remain.
            (Change::OwnUpdate, RowState::MaybeOwn | RowState::Own) => Some(was.with(RowState::Own)),
            _ => None,
        };
        for attempt in 0..16 {
            let own = change == Change::OwnUpdate;
            let (number, _) = self.pick(table, pick, draw.wrapping_add(attempt), own)?;
            if self.changes(table, number) {
                continue;
            }
            if let Some(was) = shared.states.change(number, next) {
                self.touched.push(Touched { table, number, change });
                return Some((number, was));
            }
        }
        None
    }

    /// Whether the operation under way changes the row.
    pub(crate) fn changes(&self, table: usize, number: u64) -> bool {
        self.touched.iter().any(|other| (other.table, other.number) == (table, number))
    }

    /// Chooses the rows for an operation's own statements; `false` if it needs an earlier row and there is none.
    pub(crate) fn choose(&mut self, rows: &[ChosenRow], draw: u64) -> Result<bool> {
        self.chosen.clear();
        for ChosenRow { table, old, pick, writes, .. } in rows {
            let (table, pick) = (*table, *pick);
            let draw = draw.rotate_left(32).wrapping_add(self.chosen.len() as u64 * DRAWS);
            let change = match writes {
                Writes::Insert => Change::OwnInsert,
                Writes::Update => Change::OwnUpdate,
                Writes::Delete => Change::Delete,
                Writes::Nothing | Writes::Undeclared => Change::Outside,
            };
            let row = if *old {
                let earlier = match change {
                    Change::Outside => self.pick(table, pick, draw, true),
                    _ => self.claim(table, pick, draw, change),
                };
                let Some((number, known)) = earlier else { return Ok(false) };
                self.old(table, number, known)?
            } else {
                self.fresh(table, change, |_, row| row.to_vec())?
            };
            self.chosen.push((table, row));
        }
        Ok(true)
    }

    /// Passes on a column of a chosen row.
    pub(crate) fn column(&self, row: usize, column: usize, out: &mut impl Arguments) {
        let Some((table, row)) = self.chosen.get(row) else { return };
        out.field(self.tables[*table].maker.type_of(column), fields(row).nth(column).flatten());
    }

    /// The bytes of an earlier row in its known state.
    pub(crate) fn old(&self, table: usize, number: u64, known: Known) -> Result<Vec<u8>> {
        let other = known.version % 2 == 1;
        let block = self.tables[table].block_of(number, other)?;
        Ok(with_version(block.row(number), known.version.into()))
    }

    /// The bytes of an earlier row after its next update. If the server counts, the version field holds the
    /// increment.
    pub(crate) fn next_version(&self, table: usize, number: u64, known: Known, add: i64) -> Result<Vec<u8>> {
        let version = known.version.wrapping_add(known.pending + 1);
        let row = self.old(table, number, Known { version, ..known })?;
        Ok(if self.server_counts { with_version(&row, add) } else { row })
    }

    /// Updates the states of the touched rows after the outcome.
    pub(crate) fn settle(&mut self, outcome: &Outcome) {
        for Touched { table, number, change } in self.touched.drain(..) {
            let table = &self.tables[table];
            if (change, outcome.is_ok()) == (Change::Update, true) {
                table.updates.fetch_add(1, Relaxed);
            }
            let was = table.states.change(number, |now| Some(settled(now, change, outcome)));
            if let (Change::Update, false, Some(was)) = (change, outcome.is_ok(), was) {
                table.rolled_back(number, settled(was, change, outcome));
            }
        }
    }
}

/// The state of a row after a change that was under way.
fn settled(now: Known, change: Change, outcome: &Outcome) -> Known {
    use RowState::{Acknowledged, Deleted, Failed, MaybeOwn, Outside, Own, OwnUnknown, Unknown};
    let without_effect = matches!(outcome, Outcome::Failed(failure) if failure.without_effect);
    match (change, outcome.is_ok(), without_effect) {
        (Change::Outside, ..) => now.with(Outside),
        (Change::Insert, true, _) => now.with(Acknowledged),
        (Change::Insert, _, true) | (Change::OwnInsert, _, true) => now.with(Failed),
        (Change::Insert, ..) => now.with(Unknown),
        (Change::OwnInsert, true, _) => now.with(Own),
        (Change::OwnInsert, ..) => now.with(OwnUnknown),
        (Change::Update, done, no_effect) if done || no_effect => now.updated(done),
        (Change::Delete, true, _) => now.with(Deleted),
        (Change::Delete, _, true) => now.with(Acknowledged),
        (Change::OwnUpdate, _, true) if now.state == MaybeOwn => now.with(Acknowledged),
        (Change::OwnUpdate, done, no_effect) if done || !no_effect => now.with(Own),
        (Change::Update | Change::Delete | Change::OwnUpdate, ..) => now,
    }
}

#[cfg(test)]
mod tests {
    use sawmill_generator::Dataset;

    use super::*;
    use crate::work::step::Expect;

    #[test]
    fn a_read_of_an_update_that_is_then_rolled_back_is_wrong() {
        let dataset = Arc::new(Dataset::built_in("orders").unwrap().unwrap());
        let maker = RowMaker::new(dataset, 42).unwrap();
        let tables = Arc::new(vec![SharedTable::new("orders".to_owned(), maker, (1, 1), None, false)]);
        let table = &tables[0];
        table.states.set(0, RowState::Acknowledged);
        let mut rows = Rows::new(&tables, 42, 0);
        rows.server_counts = true;
        let pick = Pick::Uniform;
        let failed = |without_effect| {
            Outcome::Failed(Failure::new("40001", "serialization failure".to_owned(), without_effect))
        };
        for (outcome, read_before, wrong) in [
            (Outcome::Ok(1), true, 0),
            (failed(true), false, 0),
            (failed(true), true, 1),
            // It may have been committed.
            (failed(false), true, 1),
        ] {
            let (_, known) = rows.claim(0, pick, 7, Change::Update).unwrap();
            if read_before {
                let expect = Expect::Row { table: 0, number: 0, known, row: Vec::new() };
                let shown = i64::from(known.version) + 1;
                expect.judge(&rows, 1, false, Some(shown)).unwrap();
            }
            rows.settle(&outcome);
            assert_eq!(table.wrong_reads.load(Relaxed), wrong, "{outcome:?}");
        }
    }
}
