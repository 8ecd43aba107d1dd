//! The threads of a run as coroutines on one thread of the system. A turn is handed over in some 20 ns, where two
//! threads of the system take some 3 µs, and each new one 20 µs: a run has 140 turns and 10 threads.

use std::cell::{Cell, RefCell};
use std::ptr;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// Bytes of a stack; the pages that a thread does not touch cost nothing.
const STACK: usize = 1 << 20;

type Fiber = Coroutine<(), (), (), DefaultStack>;

thread_local! {
    /// The thread whose turn it is; 0, the first one of a run, resumes the others and is not a coroutine itself.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
    static FIBERS: RefCell<Vec<Slot>> = const { RefCell::new(Vec::new()) };
    static SPARE_STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// A thread of the run.
struct Slot {
    /// `None` while it runs, and when it has ended.
    fiber: Option<Fiber>,
    /// How it gives up its turn.
    yielder: *const Yielder<(), ()>,
}

/// The number of the calling thread.
pub fn current() -> usize {
    CURRENT.get()
}

/// Forgets the threads of an earlier run. The threads of a failed run have ended as well.
pub fn clear() {
    CURRENT.set(0);
    FIBERS.take();
}

/// Adds a thread that runs `work` when it is resumed first. `number` counts up from 1.
///
/// # Safety
/// The values that `work` borrows outlive it.
pub unsafe fn add(number: usize, work: Box<dyn FnOnce() + Send + '_>) {
    // SAFETY: the two types differ in the lifetime alone, which the caller guarantees.
    let work: Box<dyn FnOnce() + Send> = unsafe { std::mem::transmute(work) };
    let stack = SPARE_STACKS.with_borrow_mut(Vec::pop);
    let stack = stack.unwrap_or_else(|| DefaultStack::new(STACK).expect("memory for a stack"));
    let fiber = Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
        FIBERS.with_borrow_mut(|fibers| fibers[number].yielder = yielder);
        work();
    });
    FIBERS.with_borrow_mut(|fibers| {
        fibers.resize_with(fibers.len().max(number + 1), || Slot { fiber: None, yielder: ptr::null() });
        fibers[number].fiber = Some(fiber);
    });
}

/// Lets a thread run until it gives up its turn or ends; nothing happens if it has ended. Only the first thread of a run
/// calls it.
pub fn resume(number: usize) {
    let fiber = FIBERS.with_borrow_mut(|fibers| fibers.get_mut(number).and_then(|slot| slot.fiber.take()));
    let Some(mut fiber) = fiber else { return };
    CURRENT.set(number);
    let result = fiber.resume(());
    CURRENT.set(0);
    match result {
        CoroutineResult::Yield(()) => FIBERS.with_borrow_mut(|fibers| fibers[number].fiber = Some(fiber)),
        CoroutineResult::Return(()) => SPARE_STACKS.with_borrow_mut(|spare| spare.push(fiber.into_stack())),
    }
}

/// Whether a thread has not ended.
pub fn is_alive(number: usize) -> bool {
    FIBERS.with_borrow(|fibers| fibers.get(number).is_some_and(|slot| slot.fiber.is_some()))
}

/// Gives up the turn of the calling thread, which is not the first, and returns when it is resumed.
pub fn suspend() {
    let yielder = FIBERS.with_borrow(|fibers| fibers[current()].yielder);
    // SAFETY: the running coroutine stored the address of its yielder before its work began, and the yielder
    // lives on its stack until the work has returned.
    unsafe { (*yielder).suspend(()) };
}
