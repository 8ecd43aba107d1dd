//! The blocks of a table that connections share: new rows, made ahead of their use by a thread of their own, and
//! earlier rows, of which the blocks that were used last are kept.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::mix::block::Block;

/// Rows that a connection takes at once. Few, so that thousands of connections do not keep a block each.
const SLICE: u64 = 64;
/// Blocks that are made ahead.
const AHEAD: usize = 4;
/// Bytes of blocks of earlier rows that are kept.
pub(crate) const KEPT_BYTES: usize = 64 << 20;

/// Rows that one connection has for itself.
#[derive(Debug)]
pub(crate) struct Slice {
    block: Arc<Block>,
    numbers: Range<u64>,
}

impl Slice {
    /// All rows of a block.
    pub(crate) fn whole(block: Block) -> Self {
        Self { numbers: block.numbers(), block: Arc::new(block) }
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
    make: SyncSender<Block>,
    made: Mutex<Made>,
}

#[derive(Debug)]
struct Made {
    blocks: Receiver<Block>,
    /// What is left of the block that was taken last.
    open: Option<Slice>,
}

impl Default for Supply {
    fn default() -> Self {
        let (make, blocks) = sync_channel(AHEAD);
        Self { make, made: Mutex::new(Made { blocks, open: None }) }
    }
}

impl Supply {
    fn lock(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rows of a block that was made ahead, if there is one.
    pub(crate) fn take(&self) -> Option<Slice> {
        let mut made = self.lock();
        if made.open.as_ref().is_none_or(|open| open.numbers.is_empty()) {
            made.open = Some(Slice::whole(made.blocks.try_recv().ok()?));
        }
        let open = made.open.as_mut()?;
        let end = (open.numbers.start + SLICE).min(open.numbers.end);
        let numbers = open.numbers.start..end;
        open.numbers.start = end;
        Some(Slice { block: Arc::clone(&open.block), numbers })
    }

    /// Offers the rows of a block from `number` on: they are taken next.
    pub(crate) fn offer(&self, block: Block, number: u64) {
        let numbers = number..block.numbers().end;
        if !numbers.is_empty() {
            self.lock().open = Some(Slice { block: Arc::new(block), numbers });
        }
    }

    /// Adds a block; waits while there are enough.
    pub(crate) fn add(&self, block: Block) {
        // The receiver is in this struct.
        let _ = self.make.send(block);
    }

    /// Ends the waiting of the thread that makes blocks: what was made ahead is forgotten.
    pub(crate) fn drain(&self) {
        let made = self.lock();
        while made.blocks.try_recv().is_ok() {}
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Keeps a block, in place of the ones that were not used for longest.
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
        assert!(supply.take().is_none(), "nothing was made yet");
        (0..2).for_each(|block| supply.add(maker.block(block, false).unwrap()));
        let mut numbers = Vec::new();
        let (mut one, mut other) = (supply.take().unwrap(), supply.take().unwrap());
        while let Some((number, row)) = one.next() {
            assert_eq!(row, maker.block(0, false).unwrap().row(number));
            numbers.push(number);
        }
        while let Some((number, _)) = other.next() {
            numbers.push(number);
        }
        while let Some(mut slice) = supply.take() {
            while let Some((number, _)) = slice.next() {
                numbers.push(number);
            }
        }
        assert_eq!(numbers, (0..2048).collect::<Vec<_>>());
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
