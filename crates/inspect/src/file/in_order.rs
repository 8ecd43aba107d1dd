//! Works on many items on a few threads, and passes the results on in order.
//!
//! Why our own: `rayon` has no iterator that keeps the order with a bound on results that wait.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

struct State<T> {
    /// The next item to make, and the next to take.
    next: usize,
    taken: usize,
    ready: BTreeMap<usize, T>,
    stop: bool,
}

/// Ends the other threads if one panics: they would wait for its result forever.
struct StopOnPanic<F: Fn()>(F);

impl<F: Fn()> Drop for StopOnPanic<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)();
        }
    }
}

/// Calls `make` for 0, 1, ... `count` - 1 on `threads` threads, and passes the results to `take` in this
/// order, on the caller's thread. At most `ahead` results wait to be taken.
///
/// # Errors
///
/// The first error of `take`. What has not been started by then is not made.
///
/// # Panics
///
/// If `make` panics, after all threads have ended.
pub fn in_order<T: Send, E>(
    count: usize,
    threads: usize,
    ahead: usize,
    make: impl Fn(usize) -> T + Sync,
    mut take: impl FnMut(usize, T) -> Result<(), E>,
) -> Result<(), E> {
    let threads = threads.min(count);
    if threads <= 1 {
        return (0..count).try_for_each(|index| take(index, make(index)));
    }
    let ahead = ahead.max(1);
    let state = Mutex::new(State { next: 0, taken: 0, ready: BTreeMap::new(), stop: false });
    let (made, room) = (Condvar::new(), Condvar::new());
    // No panic under the lock can leave the state half-changed.
    let lock = || -> MutexGuard<'_, State<T>> { state.lock().unwrap_or_else(PoisonError::into_inner) };
    let wait = |on: &Condvar, guard| on.wait(guard).unwrap_or_else(PoisonError::into_inner);
    let end = || {
        lock().stop = true;
        made.notify_all();
        room.notify_all();
    };
    let work = || {
        let _others_stop = StopOnPanic(end);
        loop {
            let mut state = lock();
            while !state.stop && state.next < count && state.next >= state.taken + ahead {
                state = wait(&room, state);
            }
            if state.stop || state.next >= count {
                return;
            }
            let index = state.next;
            state.next += 1;
            drop(state);
            let value = make(index);
            lock().ready.insert(index, value);
            made.notify_one();
        }
    };
    std::thread::scope(|scope| {
        let _threads_stop = StopOnPanic(end);
        for _ in 0..threads {
            scope.spawn(work);
        }
        let result = (0..count).try_for_each(|index| {
            let mut state = lock();
            let value = loop {
                match state.ready.remove(&index) {
                    Some(value) => break value,
                    // A thread panicked; the scope passes the panic on.
                    None if state.stop => return Ok(()),
                    None => state = wait(&made, state),
                }
            };
            state.taken = index + 1;
            drop(state);
            room.notify_all();
            take(index, value)
        });
        end();
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_a_thread_ends_all_of_them() {
        let ended = std::panic::catch_unwind(|| {
            let make = |i| if i == 5 { panic!("expected by the test") } else { i };
            in_order(100, 3, 2, make, |_, _| Ok::<_, ()>(()))
        });
        assert!(ended.is_err());
    }

    #[test]
    fn results_come_in_order_with_any_number_of_threads() {
        for threads in [0, 1, 2, 7] {
            let mut seen = Vec::new();
            let done: Result<(), ()> = in_order(
                100,
                threads,
                3,
                |i| {
                    std::thread::sleep(std::time::Duration::from_micros((i as u64 * 37) % 200));
                    i * i
                },
                |i, square| {
                    assert_eq!(square, i * i);
                    seen.push(i);
                    Ok(())
                },
            );
            assert_eq!(done, Ok(()));
            assert_eq!(seen, (0..100).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_ends_it() {
        let result = in_order(1_000_000, 3, 4, |i| i, |i, _| if i == 10 { Err(i) } else { Ok(()) });
        assert_eq!(result, Err(10));
        assert_eq!(in_order(0, 3, 4, |i| i, |_, _| Err(())), Ok(()));
    }
}
