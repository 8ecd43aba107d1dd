//! The blocks of a table that connections share. A separate thread makes new rows ahead of their use. Of earlier
//! rows, the most recently used blocks are kept.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded};
use sawmill_source::Result;

use crate::mix::block::Block;

/// Rows that a connection takes at once, and keeps in memory: few, where there are thousands of connections.
const SLICE: u64 = 64;
/// Blocks that are made ahead.
const AHEAD: usize = 4;
/// Bytes of blocks of earlier rows that are kept.
pub(crate) const KEPT_BYTES: usize = 64 << 20;

/// Rows reserved for one connection.
#[derive(Debug, Default)]
pub(crate) struct Slice {
    block: Block,
    numbers: Range<u64>,
}

impl Slice {
    /// All rows of a block.
    fn whole(block: Block) -> Self {
        Self { numbers: block.numbers(), block }
    }

    /// The next row: its number and its bytes.
    pub(crate) fn next(&mut self) -> Option<(u64, &[u8])> {
        let number = self.numbers.next()?;
        Some((number, self.block.row(number)))
    }
}

/// New rows of a table.
#[derive(Debug)]
pub(crate) struct Supply {
    make: Sender<Block>,
    made: Receiver<Block>,
    /// The rest of the blocks taken last, one for each processor.
    open: Vec<Mutex<Slice>>,
}

impl Default for Supply {
    fn default() -> Self {
        let (make, made) = bounded(AHEAD);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self { make, made, open: (0..processors).map(|_| Mutex::default()).collect() }
    }
}

/// Locks a value; a thread that panicked leaves a whole one.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Supply {
    /// Rows for a connection, of a block that was made ahead or that `make` makes now. Connections of one processor
    /// that find none wait for one block, instead of making one each.
    pub(crate) fn take(&self, connection: u64, make: impl FnOnce() -> Result<Block>) -> Result<Slice> {
        let mut open = locked(&self.open[connection as usize % self.open.len()]);
        if open.numbers.is_empty() {
            let ahead = self.made.try_recv().ok();
            *open = Slice::whole(ahead.map_or_else(make, Ok)?);
        }
        let end = (open.numbers.start + SLICE).min(open.numbers.end);
        let slice = Slice::whole(open.block.part(open.numbers.start..end));
        open.numbers.start = end;
        Ok(slice)
    }

    /// Offers the rows of a block from `number` on, to be taken next.
    pub(crate) fn offer(&self, block: Block, number: u64) {
        let numbers = number..block.numbers().end;
        if let (Some(open), false) = (self.open.first(), numbers.is_empty()) {
            *locked(open) = Slice { block, numbers };
        }
    }

    /// Adds a block; waits while there are enough.
    pub(crate) fn add(&self, block: Block) {
        // The receiver is in this struct.
        let _ = self.make.send(block);
    }

    /// Wakes the thread that waits to add a block, by discarding the blocks made ahead.
    pub(crate) fn drain(&self) {
        while self.made.try_recv().is_ok() {}
    }
}

/// Blocks of earlier rows.
#[derive(Debug, Default)]
pub(crate) struct KeptBlocks(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// By number, and whether with other values, with the moment of the last use.
    blocks: HashMap<(u64, bool), (Arc<Block>, u64)>,
    bytes: usize,
    clock: u64,
}

impl KeptBlocks {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        locked(&self.0)
    }

    /// The block of this number, perhaps with other values, if it is kept.
    pub(crate) fn get(&self, key: (u64, bool)) -> Option<Arc<Block>> {
        let mut kept = self.lock();
        kept.clock += 1;
        let clock = kept.clock;
        let (block, used) = kept.blocks.get_mut(&key)?;
        *used = clock;
        Some(Arc::clone(block))
    }

    /// Keeps a block, and drops the least recently used ones to make room.
    pub(crate) fn keep(&self, key: (u64, bool), block: &Arc<Block>) {
        let mut kept = self.lock();
        kept.clock += 1;
        let clock = kept.clock;
        if let Some((before, _)) = kept.blocks.insert(key, (Arc::clone(block), clock)) {
            kept.bytes -= before.bytes();
        }
        kept.bytes += block.bytes();
        while kept.bytes > KEPT_BYTES && kept.blocks.len() > 1 {
            let oldest = kept.blocks.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key);
            let Some((gone, _)) = oldest.and_then(|oldest| kept.blocks.remove(&oldest)) else { return };
            kept.bytes -= gone.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::block::RowMaker;
    use sawmill_generator::Dataset;

    fn maker() -> RowMaker {
        RowMaker::new(Arc::new(Dataset::built_in("events").unwrap().unwrap()), 1).unwrap()
    }

    #[test]
    fn connections_share_a_block_and_every_row_is_taken_once() {
        let (maker, supply) = (maker(), Supply::default());
        let blocks: Vec<Block> = (0..3).map(|block| maker.block(block, false).unwrap()).collect();
        (0..2).for_each(|block| supply.add(maker.block(block, false).unwrap()));
        let take = || supply.take(7, || maker.block(2, false)).unwrap();
        let mut numbers = Vec::new();
        let mut slices: Vec<Slice> = (0..3 * 1024 / SLICE).map(|_| take()).collect();
        for slice in &mut slices {
            assert!(slice.block.bytes() < blocks[0].bytes() / 8, "it keeps no whole block");
            while let Some((number, row)) = slice.next() {
                assert_eq!(row, blocks[number as usize / 1024].row(number));
                numbers.push(number);
            }
        }
        assert_eq!(
            numbers,
            (0..3072).collect::<Vec<_>>(),
            "two blocks were made ahead, and one when it was needed"
        );
    }

    #[test]
    fn blocks_that_were_not_used_for_longest_make_room() {
        let (maker, kept) = (maker(), KeptBlocks::default());
        let block = Arc::new(maker.block(0, false).unwrap());
        let most = (KEPT_BYTES / block.bytes()) as u64;
        (0..most).for_each(|number| kept.keep((number, false), &block));
        assert!(kept.get((0, false)).is_some());
        kept.keep((most, false), &block);
        assert!(
            kept.get((0, false)).is_some()
                && kept.get((1, false)).is_none()
                && kept.get((most, false)).is_some()
        );
        assert!(kept.lock().bytes <= KEPT_BYTES);
    }
}
