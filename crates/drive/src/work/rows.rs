//! The rows of operations: new ones by their numbers, earlier ones by choice, and what becomes known of each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sawmill_source::Result;

use crate::mix::block::{BLOCK_ROWS, Block, Blocks, RowMaker};
use crate::mix::pick::{Pick, Picker};
use crate::proof::states::{RowState, RowStates};
use crate::work::outcome::{Change, Outcome};

/// Blocks of earlier rows that a connection keeps for each table.
const KEPT_BLOCKS: usize = 8;

/// A table while a run lasts, shared by all connections.
#[derive(Debug)]
pub(crate) struct SharedTable {
    pub name: String,
    pub maker: RowMaker,
    pub states: RowStates,
    /// Blocks that were given out.
    next: AtomicU64,
    /// Which of how many processes this is: block `b` belongs to process `b % n`.
    part: (u64, u64),
}

impl SharedTable {
    pub(crate) fn new(name: String, maker: RowMaker, part: (u64, u64)) -> Arc<Self> {
        Arc::new(Self { name, maker, states: RowStates::default(), next: AtomicU64::new(0), part })
    }

    /// A block that no one else has.
    pub(crate) fn fill_block(&self) -> Result<Block> {
        let number = self.next.fetch_add(1, Relaxed) * self.part.1 + self.part.0 - 1;
        self.maker.block(number, 0)
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
    was: RowState,
}

/// The rows of one connection.
pub(crate) struct Rows {
    pub tables: Arc<Vec<Arc<SharedTable>>>,
    fresh: Vec<Option<(Block, u64)>>,
    old: Vec<Blocks>,
    pickers: Vec<(Pick, usize, Picker)>,
    touched: Vec<Touched>,
    seed: u64,
    stream: u64,
}

impl Rows {
    pub(crate) fn new(tables: &Arc<Vec<Arc<SharedTable>>>, seed: u64, stream: u64) -> Self {
        Self {
            fresh: tables.iter().map(|_| None).collect(),
            old: tables.iter().map(|_| Blocks::new(KEPT_BLOCKS)).collect(),
            tables: Arc::clone(tables),
            pickers: Vec::new(),
            touched: Vec::new(),
            seed,
            stream,
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
        if slot.as_ref().is_none_or(|(block, next)| *next >= block.numbers().end) {
            let block = self.tables[table].fill_block()?;
            let first = block.first;
            *slot = Some((block, first));
        }
        let Some((block, next)) = slot else { unreachable!("a block was just put there") };
        let number = *next;
        *next += 1;
        self.touched.push(Touched { table, number, change, was: RowState::Untouched });
        Ok(take(number, block.row(number)))
    }

    /// Chooses an earlier row: number, and what is known of it.
    pub(crate) fn pick(&mut self, table: usize, pick: Pick, draw: u64) -> Option<(u64, RowState)> {
        let at = self.pickers.iter().position(|(of, its, _)| (*of, *its) == (pick, table));
        let at = at.unwrap_or_else(|| {
            self.pickers.push((pick, table, Picker::new(pick, self.seed, self.stream)));
            self.pickers.len() - 1
        });
        self.pickers[at].2.pick(&self.tables[table].states, draw)
    }

    /// Chooses an earlier row to change it; no one else changes it meanwhile.
    pub(crate) fn claim(&mut self, table: usize, pick: Pick, draw: u64, change: Change) -> Option<u64> {
        for attempt in 0..16 {
            let (number, was) = self.pick(table, pick, draw.wrapping_add(attempt))?;
            if self.tables[table].states.claim(number, was) {
                self.touched.push(Touched { table, number, change, was });
                return Some(number);
            }
        }
        None
    }

    /// The bytes of an earlier row.
    pub(crate) fn old(&mut self, table: usize, number: u64, version: u64) -> Result<&[u8]> {
        self.old[table].row(&self.tables[table].maker, number, version)
    }

    /// Notes what the outcome says of the rows that were touched.
    pub(crate) fn settle(&mut self, outcome: &Outcome) {
        for Touched { table, number, change, was } in self.touched.drain(..) {
            use RowState::{
                Acknowledged, Deleted, Failed, MaybeDeleted, MaybeDeletedUpdated, MaybeUpdated, Outside,
                Unknown, Updated,
            };
            let state = match (change, outcome) {
                (Change::Outside, _) => Outside,
                (Change::Insert, Outcome::Ok(_)) => Acknowledged,
                (Change::Update, Outcome::Ok(_)) => Updated,
                (Change::Delete, Outcome::Ok(_)) => Deleted,
                (Change::Insert, Outcome::Failed(failure)) if failure.without_effect => Failed,
                (_, Outcome::Failed(failure)) if failure.without_effect => was,
                (Change::Insert, Outcome::Failed(_)) => Unknown,
                (Change::Update, Outcome::Failed(_)) if was == Updated => Updated,
                (Change::Update, Outcome::Failed(_)) => MaybeUpdated,
                (Change::Delete, Outcome::Failed(_)) if was == Updated => MaybeDeletedUpdated,
                (Change::Delete, Outcome::Failed(_)) => MaybeDeleted,
            };
            self.tables[table].states.set(number, state);
        }
    }
}
