//! Items that are worked on by as many threads as there are cores, up to [`MOST`].

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::control::Control;
use crate::error::Result;

/// Threads at most, the calling one included.
const MOST: usize = 8;

/// Hands each item to `each` once, with a state that every thread makes for itself. The threads are called
/// `NAME-1` and so on; the calling thread is one of them, and where there are no more it does all by itself.
///
/// # Errors
/// The first that `each` gives, which stops the others.
pub(crate) fn on_all_cores<T: Sync, S>(
    name: &str,
    items: &[T],
    control: &Control<'_>,
    state: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, &T, &Control<'_>) -> Result<()> + Sync,
) -> Result<()> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let failure = Mutex::new(None);
    let control = control.with_stop(&stop);
    let work = || {
        let mut state = state();
        while let Some(item) = items.get(next.fetch_add(1, Relaxed)) {
            if let Err(error) = each(&mut state, item, &control) {
                stop.store(true, Relaxed);
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                return;
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST).min(items.len());
    std::thread::scope(|scope| {
        for number in 1..threads {
            let thread = std::thread::Builder::new().name(format!("{name}-{number}"));
            if thread.spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}
