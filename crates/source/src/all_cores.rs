//! Work on items by one thread per core, up to [`MAX`].

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use sawmill_profile::with_threads;

use crate::control::Control;
use crate::error::{Error, Result};

/// Most threads, including the calling one.
const MAX: usize = 8;

/// Calls `each` once for every item, with a state that each thread creates. The calling thread takes part;
/// the others are named `NAME-1` and so on. If none can be started, the calling thread does all the work.
///
/// # Errors
/// The first error that `each` returns, or its panic; it stops the other threads.
pub fn on_all_cores<T: Sync, S>(
    name: &str,
    items: &[T],
    control: &Control<'_>,
    state: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, &T, &Control<'_>) -> Result<()> + Sync,
) -> Result<()> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let control = control.with_stop(&stop);
    let work = |_| {
        let mut state = state();
        while let Some(item) = items.get(next.fetch_add(1, Relaxed)) {
            each(&mut state, item, &control)?;
        }
        Ok(())
    };
    with_threads(name, cores().min(items.len()), &stop, work).map(drop)
}

/// Returns what `each` returns for every item, in the order of the items, computed by as many threads. An
/// error stops the work.
///
/// # Errors
/// The error of the first item, in their order, for which `each` returns one; a panic of `each`.
pub(crate) fn map_on_all_cores<T: Sync, R: Send>(
    name: &str,
    items: &[T],
    each: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    map_on_threads(name, cores(), items, each)
}

/// As [`map_on_all_cores`], on this many threads: more than cores for work that waits.
///
/// # Errors
/// The error of the first item, in their order, for which `each` returns one; a panic of `each`.
pub(crate) fn map_on_threads<T: Sync, R: Send>(
    name: &str,
    threads: usize,
    items: &[T],
    each: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let work = |_| {
        while !stop.load(Relaxed) {
            let place = next.fetch_add(1, Relaxed);
            let Some(item) = items.get(place) else { break };
            let one = each(item);
            if one.is_err() {
                stop.store(true, Relaxed);
            }
            results.lock().unwrap_or_else(PoisonError::into_inner).push((place, one));
        }
        Ok::<_, Error>(())
    };
    with_threads(name, threads.min(items.len()), &stop, work)?;
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    // All items before a failed one were started before it, so their results are present.
    results.sort_unstable_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, one)| one).collect()
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn results_are_in_the_order_of_the_items_and_the_first_error_is_returned() {
        let items: Vec<u32> = (0..1000).collect();
        let twice = map_on_all_cores("test", &items, |item| Ok(item * 2)).unwrap();
        assert_eq!(twice, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        for first in [0, 1, 500, 999] {
            let failing = |item: &u32| match *item >= first {
                true => Err(Error::new(Kind::Source, item.to_string())),
                false => Ok(()),
            };
            assert_eq!(map_on_all_cores("test", &items, failing).unwrap_err().what(), first.to_string());
        }
        assert_eq!(map_on_all_cores("test", &[] as &[u32], |_| Ok(())).unwrap(), []);
    }

    #[test]
    fn a_panic_is_an_error() {
        let items: Vec<u32> = (0..1000).collect();
        let broken = |item: &u32| if *item == 500 { panic!("at {item}") } else { Ok(()) };
        let failed = map_on_all_cores("test", &items, broken).unwrap_err();
        assert!(failed.what().ends_with("panicked: at 500"), "{failed}");
        let phase = sawmill_profile::Profile::new().phase("test");
        let cancel = AtomicBool::new(false);
        let control = Control::new(&cancel, &phase);
        let failed = on_all_cores("test", &items, &control, || (), |(), item, _| broken(item)).unwrap_err();
        assert!(failed.what().ends_with("panicked: at 500"), "{failed}");
    }
}
