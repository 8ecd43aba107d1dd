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
pub fn on_all_cores<T: Sync, S>(
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
    on_threads(name, items.len(), &work);
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// What `each` makes of the items, in their order, with as many threads. An error ends it.
///
/// # Errors
/// That of the first item, in their order, for which `each` gives one.
pub(crate) fn made_on_all_cores<T: Sync, R: Send>(
    name: &str,
    items: &[T],
    each: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let made = Mutex::new(Vec::with_capacity(items.len()));
    let work = || {
        while !stop.load(Relaxed) {
            let place = next.fetch_add(1, Relaxed);
            let Some(item) = items.get(place) else { return };
            let one = each(item);
            if one.is_err() {
                stop.store(true, Relaxed);
            }
            made.lock().unwrap_or_else(PoisonError::into_inner).push((place, one));
        }
    };
    on_threads(name, items.len(), &work);
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Whatever stands before an item that failed was begun before it, and is there.
    made.sort_unstable_by_key(|(place, _)| *place);
    made.into_iter().map(|(_, one)| one).collect()
}

/// Does the same work on several threads, the calling one among them.
fn on_threads(name: &str, items: usize, work: &(impl Fn() + Sync)) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST).min(items);
    std::thread::scope(|scope| {
        for number in 1..threads {
            let thread = std::thread::Builder::new().name(format!("{name}-{number}"));
            if thread.spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, Kind};

    #[test]
    fn what_is_made_stands_in_the_order_of_the_items_and_the_first_error_is_the_one() {
        let items: Vec<u32> = (0..1000).collect();
        let twice = made_on_all_cores("test", &items, |item| Ok(item * 2)).unwrap();
        assert_eq!(twice, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        for first in [0, 1, 500, 999] {
            let failing = |item: &u32| match *item >= first {
                true => Err(Error::new(Kind::Source, item.to_string())),
                false => Ok(()),
            };
            assert_eq!(made_on_all_cores("test", &items, failing).unwrap_err().what(), first.to_string());
        }
        assert_eq!(made_on_all_cores("test", &[] as &[u32], |_| Ok(())).unwrap(), []);
    }
}
