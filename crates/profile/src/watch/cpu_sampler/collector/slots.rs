//! Stacks on their way from the signal handlers of all threads to the collecting thread: fixed memory, no
//! locks and no allocation, so that a handler can interrupt anything.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The number of frames kept per stack, from the innermost.
pub(super) const MAX_DEPTH: usize = 128;
/// The most stacks in transit: 40 busy threads produce 40 every 5 ms.
const SLOTS: usize = 512;

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const FULL: u32 = 2;

/// A stack as the signal handler recorded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sampled {
    pub(super) thread: u32,
    /// The number of periods of CPU time that it represents.
    pub(super) weight: u32,
    /// Addresses, innermost first.
    pub(super) frames: Vec<usize>,
}

struct Slot {
    state: AtomicU32,
    thread: AtomicU32,
    weight: AtomicU32,
    depth: AtomicUsize,
    frames: [AtomicUsize; MAX_DEPTH],
}

impl Slot {
    const fn new() -> Self {
        Self {
            state: AtomicU32::new(FREE),
            thread: AtomicU32::new(0),
            weight: AtomicU32::new(0),
            depth: AtomicUsize::new(0),
            frames: [const { AtomicUsize::new(0) }; MAX_DEPTH],
        }
    }
}

/// The slots, used round-robin.
pub(super) struct Slots {
    next: AtomicUsize,
    /// Periods for which no slot was free.
    lost: AtomicU64,
    slots: [Slot; SLOTS],
}

/// A slot that a handler fills.
pub(super) struct Filling<'a>(&'a Slot);

impl Slots {
    pub(super) const fn new() -> Self {
        Self { next: AtomicUsize::new(0), lost: AtomicU64::new(0), slots: [const { Slot::new() }; SLOTS] }
    }

    /// Takes a slot for a sample; if none is free, returns `None` and counts the sample as lost.
    pub(super) fn take(&self, thread: u32, weight: u32) -> Option<Filling<'_>> {
        let place = self.next.fetch_add(1, Ordering::Relaxed) % SLOTS;
        let slot = self.slots.get(place)?;
        if slot.state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.lost.fetch_add(u64::from(weight), Ordering::Relaxed);
            return None;
        }
        slot.thread.store(thread, Ordering::Relaxed);
        slot.weight.store(weight, Ordering::Relaxed);
        slot.depth.store(0, Ordering::Relaxed);
        Some(Filling(slot))
    }

    /// Passes the full slots to `take` and frees them.
    pub(super) fn drain(&self, mut take: impl FnMut(Sampled)) {
        for slot in self.slots.iter().filter(|slot| slot.state.load(Ordering::Acquire) == FULL) {
            let frames = slot.frames.iter().take(slot.depth.load(Ordering::Relaxed));
            take(Sampled {
                thread: slot.thread.load(Ordering::Relaxed),
                weight: slot.weight.load(Ordering::Relaxed),
                frames: frames.map(|frame| frame.load(Ordering::Relaxed)).collect(),
            });
            slot.state.store(FREE, Ordering::Release);
        }
    }

    /// Periods lost since the last call.
    pub(super) fn lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}

impl Filling<'_> {
    /// Adds the next outer frame; returns whether there is room for another.
    pub(super) fn push(&mut self, address: usize) -> bool {
        let depth = self.0.depth.load(Ordering::Relaxed);
        if let Some(frame) = self.0.frames.get(depth) {
            frame.store(address, Ordering::Relaxed);
            self.0.depth.store(depth + 1, Ordering::Relaxed);
        }
        depth + 1 < MAX_DEPTH
    }

    /// Removes the frames so far.
    pub(super) fn clear(&mut self) {
        self.0.depth.store(0, Ordering::Relaxed);
    }

    /// Releases the stack to the collector.
    pub(super) fn done(self) {
        self.0.state.store(FULL, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_come_out_unchanged_and_lost_ones_are_counted() {
        let slots = Box::new(Slots::new());
        for number in 0..SLOTS as u32 + 3 {
            if let Some(mut filling) = slots.take(number, 2) {
                (0..MAX_DEPTH + 5).for_each(|frame| {
                    filling.push(frame);
                });
                filling.done();
            }
        }
        let mut all = Vec::new();
        slots.drain(|sampled| all.push(sampled));
        assert_eq!((all.len(), slots.lost(), slots.lost()), (SLOTS, 6, 0));
        assert_eq!(all[7], Sampled { thread: 7, weight: 2, frames: (0..MAX_DEPTH).collect() });
        slots.drain(|_| panic!("all slots are free again"));
        assert!(slots.take(1, 1).is_some());
    }
}
