//! The rows of operations: new ones by their numbers, earlier ones by choice, and what becomes known of each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sawmill_source::Result;

use crate::mix::block::{BLOCK_ROWS, Block, RowMaker, with_version};
use crate::mix::pick::{Pick, Picker};
use crate::mix::supply::{KEPT_BYTES, KeptBlocks, Slice, Supply};
use crate::proof::states::{Known, RowState, RowStates};
use crate::work::outcome::{Change, Outcome};

/// A table while a run lasts, shared by all connections.
#[derive(Debug)]
pub(crate) struct SharedTable {
    pub name: String,
    pub maker: RowMaker,
    pub states: RowStates,
    /// Updates that were acknowledged.
    pub updates: AtomicU64,
    /// The first operation whose statement writes the table and does not say how: what differs may be its doing.
    pub undeclared: Option<String>,
    /// New rows that were made ahead.
    supply: Supply,
    /// Earlier rows.
    kept: KeptBlocks,
    /// Blocks that were given out.
    next: AtomicU64,
    /// Which of how many processes this is: block `b` belongs to process `b % n`.
    pub part: (u64, u64),
}

impl SharedTable {
    pub(crate) fn new(
        name: String,
        maker: RowMaker,
        part: (u64, u64),
        undeclared: Option<String>,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            maker,
            states: RowStates::default(),
            updates: AtomicU64::new(0),
            undeclared,
            supply: Supply::default(),
            kept: KeptBlocks::default(),
            next: AtomicU64::new(0),
            part,
        })
    }

    /// A block that no one else has.
    pub(crate) fn fill_block(&self) -> Result<Block> {
        let number = self.next.fetch_add(1, Relaxed) * self.part.1 + self.part.0 - 1;
        self.maker.block(number, false)
    }

    /// Makes new rows ahead of their use until `is_over`; [`end_supply`](Self::end_supply) has to be called then.
    pub(crate) fn supply(&self, is_over: &dyn Fn() -> bool) {
        while !is_over() {
            // Who finds no rows makes them, and reports why that fails.
            let Ok(block) = self.fill_block() else { return };
            self.supply.add(block);
        }
    }

    /// Leaves the rows of a block from `number` on to operations.
    pub(crate) fn leave(&self, block: Block, number: u64) {
        self.supply.offer(block, number);
    }

    /// Ends the waiting of the thread that makes rows ahead.
    pub(crate) fn end_supply(&self) {
        self.supply.drain();
    }

    /// The block with a row.
    fn block_of(&self, number: u64, other: bool) -> Result<Arc<Block>> {
        let key = (number / BLOCK_ROWS, other);
        if let Some(block) = self.kept.get(key) {
            return Ok(block);
        }
        let block = Arc::new(self.maker.block(key.0, other)?);
        self.kept.keep(key, &block);
        Ok(block)
    }

    /// Whether the blocks of so many rows, each with its values before and after an update, are kept once made.
    pub(crate) fn keeps(&self, rows: u64) -> Result<bool> {
        let blocks = 2 * rows.div_ceil(BLOCK_ROWS);
        Ok(blocks * self.block_of(0, false)?.bytes() as u64 <= KEPT_BYTES as u64)
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
    was: Known,
}

/// The rows of one connection.
pub(crate) struct Rows {
    pub tables: Arc<Vec<Arc<SharedTable>>>,
    fresh: Vec<Option<Slice>>,
    pickers: Vec<(Pick, usize, Picker)>,
    touched: Vec<Touched>,
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
            seed,
            stream,
            server_counts: false,
        }
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
        self.touched.push(Touched { table, number, change, was: Known::default() });
        Ok(take(number, row))
    }

    /// Chooses an earlier row: number, and what is known of it. `own`: also one with values of the user's own.
    pub(crate) fn pick(&mut self, table: usize, pick: Pick, draw: u64, own: bool) -> Option<(u64, Known)> {
        let at = self.pickers.iter().position(|(of, its, _)| (*of, *its) == (pick, table));
        let at = at.unwrap_or_else(|| {
            self.pickers.push((pick, table, Picker::new(pick, self.seed, self.stream)));
            self.pickers.len() - 1
        });
        self.pickers[at].2.pick(&self.tables[table].states, draw, own)
    }

    /// Chooses an earlier row to change it; no one else changes it meanwhile.
    pub(crate) fn claim(
        &mut self,
        table: usize,
        pick: Pick,
        draw: u64,
        change: Change,
    ) -> Option<(u64, Known)> {
        for attempt in 0..16 {
            let own = change == Change::OwnUpdate;
            let (number, was) = self.pick(table, pick, draw.wrapping_add(attempt), own)?;
            if self.tables[table].states.claim(number, was) {
                self.touched.push(Touched { table, number, change, was });
                return Some((number, was));
            }
        }
        None
    }

    /// The bytes of an earlier row of which so much is known.
    pub(crate) fn old(&self, table: usize, number: u64, known: Known) -> Result<Vec<u8>> {
        let other = known.version % 2 == 1;
        let block = self.tables[table].block_of(number, other)?;
        Ok(with_version(block.row(number), known.version.into()))
    }

    /// The bytes of an earlier row after its next update. Where the server counts, its version is what is added.
    pub(crate) fn next_version(
        &self,
        table: usize,
        number: u64,
        known: Known,
        add: i64,
    ) -> Result<Vec<u8>> {
        let row = self.old(table, number, known.updated())?;
        Ok(if self.server_counts { with_version(&row, add) } else { row })
    }

    /// Notes what the outcome says of the rows that were touched.
    pub(crate) fn settle(&mut self, outcome: &Outcome) {
        for Touched { table, number, change, was } in self.touched.drain(..) {
            use RowState::{
                Acknowledged, Deleted, Failed, MaybeDeleted, MaybeUpdated, Outside, Own, Unknown,
            };
            let without_effect = matches!(outcome, Outcome::Failed(failure) if failure.without_effect);
            let state = match (change, outcome) {
                (Change::Outside, _) => Outside,
                (Change::Insert, Outcome::Ok(_)) => Acknowledged,
                (Change::Update, Outcome::Ok(_)) => {
                    self.tables[table].updates.fetch_add(1, Relaxed);
                    self.tables[table].states.set(number, was.updated());
                    continue;
                }
                (Change::Delete, Outcome::Ok(_)) => Deleted,
                (Change::OwnInsert, Outcome::Ok(_)) => Own,
                (Change::Insert | Change::OwnInsert, _) if without_effect => Failed,
                (_, Outcome::Failed(_)) if without_effect => was.state,
                (Change::OwnUpdate, _) => Own,
                (Change::OwnInsert, _) => Outside,
                (Change::Insert, _) => Unknown,
                (Change::Update, _) => MaybeUpdated,
                (Change::Delete, _) => MaybeDeleted,
            };
            let state = Known { state, ..was };
            self.tables[table].states.set(number, state);
        }
    }
}
