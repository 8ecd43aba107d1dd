//! Stacks on their way from the signal handlers of all threads to the thread that collects them: fixed
//! memory, no locks, no allocation, so that a handler can interrupt anything.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Frames of a stack that are kept, from the innermost.
pub(super) const DEEPEST: usize = 128;
/// Stacks that can be on their way at once: 40 a thread and second are made every 5 ms of 40 busy threads.
const SLOTS: usize = 512;

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const FULL: u32 = 2;

/// A stack as the signal handler saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sampled {
    pub(super) thread: u32,
    /// How many periods of CPU time it stands for.
    pub(super) weight: u32,
    /// Addresses, the innermost first.
    pub(super) frames: Vec<usize>,
}

struct Slot {
    state: AtomicU32,
    thread: AtomicU32,
    weight: AtomicU32,
    depth: AtomicUsize,
    frames: [AtomicUsize; DEEPEST],
}

impl Slot {
    const fn new() -> Self {
        Self {
            state: AtomicU32::new(FREE),
            thread: AtomicU32::new(0),
            weight: AtomicU32::new(0),
            depth: AtomicUsize::new(0),
            frames: [const { AtomicUsize::new(0) }; DEEPEST],
        }
    }
}

/// The slots, used in turn.
pub(super) struct Slots {
    next: AtomicUsize,
    /// Periods that found no slot.
    lost: AtomicU64,
    slots: [Slot; SLOTS],
}

/// A slot that a handler fills.
pub(super) struct Filling<'a>(&'a Slot);

impl Slots {
    pub(super) const fn new() -> Self {
        Self { next: AtomicUsize::new(0), lost: AtomicU64::new(0), slots: [const { Slot::new() }; SLOTS] }
    }

    /// A slot for a sample, none where all are on their way; then the sample counts as lost.
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

    /// Gives the full slots to `take` and frees them.
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

    /// Periods that were lost since this was last asked.
    pub(super) fn lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}

impl Filling<'_> {
    /// Adds a frame, outwards; whether there is room for another.
    pub(super) fn push(&mut self, address: usize) -> bool {
        let depth = self.0.depth.load(Ordering::Relaxed);
        if let Some(frame) = self.0.frames.get(depth) {
            frame.store(address, Ordering::Relaxed);
            self.0.depth.store(depth + 1, Ordering::Relaxed);
        }
        depth + 1 < DEEPEST
    }

    /// Forgets the frames so far.
    pub(super) fn clear(&mut self) {
        self.0.depth.store(0, Ordering::Relaxed);
    }

    /// Hands the stack over.
    pub(super) fn done(self) {
        self.0.state.store(FULL, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_come_out_as_they_went_in_and_what_finds_no_room_is_counted() {
        let slots = Box::new(Slots::new());
        for number in 0..SLOTS as u32 + 3 {
            if let Some(mut filling) = slots.take(number, 2) {
                (0..DEEPEST + 5).for_each(|frame| {
                    filling.push(frame);
                });
                filling.done();
            }
        }
        let mut all = Vec::new();
        slots.drain(|sampled| all.push(sampled));
        assert_eq!((all.len(), slots.lost(), slots.lost()), (SLOTS, 6, 0));
        assert_eq!(all[7], Sampled { thread: 7, weight: 2, frames: (0..DEEPEST).collect() });
        slots.drain(|_| panic!("they are free again"));
        assert!(slots.take(1, 1).is_some());
    }
}
