//! Named `rayon` pools for work that is parallel over row groups, files, columns or chunks.
//!
//! Work that waits for sockets runs on separate threads ([`on_threads`](crate::on_threads)).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, available_parallelism};

use crossbeam_channel::{Receiver, bounded};
use rayon::iter::{ParallelBridge, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::trace::ledger::SpanSink;
use crate::trace::threads::{ThreadFailure, caught};

/// The most threads of a pool on all cores.
const MAX_CORES: usize = 8;

/// How many values of an item wait for earlier items, besides the one in work.
const MAX_PARTS: usize = 2;

/// A pool of threads `NAME-0`, `NAME-1` and so on. They have ended when it is dropped.
///
/// The first error of a job ends it, and so does a panic, which becomes an error. Items are taken in order, so an item
/// may wait for earlier ones without a deadlock.
///
/// ```
/// use sawmill_profile::{Pool, Profile, ThreadFailure};
///
/// let phase = Profile::new().phase("count");
/// let pool = Pool::new("counter", 2, Some(&phase.sink()));
/// let words = ["born", "shredded"];
/// assert_eq!(pool.map(words, |word| Ok::<_, ThreadFailure>(word.len())), Ok(vec![4, 8]));
/// ```
#[derive(Debug)]
pub struct Pool {
    name: String,
    spans: Option<SpanSink>,
    /// Missing if the system starts no thread: then the calling thread does the work.
    rayon: Option<ThreadPool>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.rayon = None;
        for thread in self.threads.drain(..) {
            // A panic in a job is an error of the job.
            let _ = thread.join();
        }
    }
}

impl Pool {
    /// A pool with a thread for each core, up to eight, and no more than there are items.
    pub fn on_cores(name: &str, items: usize, spans: Option<&SpanSink>) -> Self {
        let cores = available_parallelism().map_or(1, usize::from).min(MAX_CORES);
        Self::new(name, cores.min(items), spans)
    }

    /// Starts `threads` threads, or fewer where the system starts no more. With `spans`, their work is recorded there.
    pub fn new(name: &str, threads: usize, spans: Option<&SpanSink>) -> Self {
        let mut wanted = threads;
        let mut pool =
            Self { name: name.to_owned(), spans: spans.cloned(), rayon: None, threads: Vec::new() };
        while wanted > 0 && pool.rayon.is_none() {
            let mut threads = Vec::with_capacity(wanted);
            let start = |thread: rayon::ThreadBuilder| {
                let (name, spans) = (format!("{name}-{}", thread.index()), spans.cloned());
                threads.push(Builder::new().name(name.clone()).spawn(move || {
                    let _attached = spans.map(|spans| spans.attach(&name));
                    thread.run();
                })?);
                Ok(())
            };
            pool.rayon = ThreadPoolBuilder::new().num_threads(wanted).spawn_handler(start).build().ok();
            wanted = threads.len();
            pool.threads = threads;
        }
        pool
    }

    /// Calls `each` for every item. Each thread creates a state when it takes its first item. An error raises `stop`,
    /// after which no item is begun; `each` may also look at it.
    ///
    /// # Errors
    /// The first error that `state` or `each` returns, or its panic.
    pub fn for_each<T: Send, S, E: From<ThreadFailure> + Send>(
        &self,
        items: impl IntoIterator<Item = T, IntoIter: Send>,
        stop: &AtomicBool,
        state: impl Fn() -> Result<S, E> + Sync,
        each: impl Fn(&mut S, T) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let failure = Mutex::new(None);
        let one = |of_thread: &mut Option<S>, item: T| {
            let work = || match of_thread {
                Some(state) => each(state, item),
                none => each(none.insert(state()?), item),
            };
            if let Err(error) = caught(&self.thread(), work) {
                // Later errors may come from items that were stopped.
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                stop.store(true, Relaxed);
            }
        };
        // A taken item is always begun, so that all items before a failed one have results.
        let items = items.into_iter().take_while(|_| !stop.load(Relaxed));
        match &self.rayon {
            Some(pool) => pool.install(|| items.par_bridge().for_each_init(|| None, one)),
            None => {
                let _attached = self.spans.as_ref().map(|spans| spans.attach(&self.thread()));
                let mut state = None;
                items.for_each(|item| one(&mut state, item));
            }
        }
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// Returns what `each` returns for every item, in the order of the items.
    ///
    /// # Errors
    /// The error of the first item, in their order, for which `each` returns one, or its panic.
    pub fn map<T: Send, R: Send, E: From<ThreadFailure> + Send>(
        &self,
        items: impl IntoIterator<Item = T, IntoIter: Send>,
        each: impl Fn(T) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        let (results, stop) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        let keep = |(): &mut (), (place, item): (usize, T)| {
            let one = caught(&self.thread(), || each(item));
            stop.fetch_or(one.is_err(), Relaxed);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((place, one));
            Ok::<_, E>(())
        };
        self.for_each(items.into_iter().enumerate(), &stop, || Ok(()), keep)?;
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        // All items before a failed one were begun before it, so their results are present.
        results.sort_unstable_by_key(|(place, _)| *place);
        results.into_iter().map(|(_, one)| one).collect()
    }

    /// Makes a value of every item, and passes the values to `take` in the order of the items, on the calling thread.
    /// At most `ahead` items, and at least one, are begun before they are taken.
    ///
    /// # Errors
    /// The first error of `take`, after which no item is begun; a panic of `make`.
    pub fn in_order<T: Send, R: Send, E: From<ThreadFailure>>(
        &self,
        items: impl IntoIterator<Item = T>,
        ahead: usize,
        make: impl Fn(T) -> R + Sync,
        take: impl FnMut(R) -> Result<(), E>,
    ) -> Result<(), E> {
        let whole = |item, give: &mut dyn FnMut(R) -> bool| {
            give(make(item));
        };
        self.parts_in_order(items, ahead, whole, take)
    }

    /// Like [`in_order`](Self::in_order), but `make` gives some values for every item, one by one. Once two values of
    /// an item wait, its thread waits for its turn. `give` returns whether to continue: `false` once `take` or an
    /// earlier item has failed.
    ///
    /// # Errors
    /// The first error of `take`, after which no item is begun; a panic of `make`.
    pub fn parts_in_order<T: Send, R: Send, E: From<ThreadFailure>>(
        &self,
        items: impl IntoIterator<Item = T>,
        ahead: usize,
        make: impl Fn(T, &mut dyn FnMut(R) -> bool) + Sync,
        mut take: impl FnMut(R) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut items = items.into_iter();
        let make = &|item, give: &mut dyn FnMut(R) -> bool| {
            caught::<(), ThreadFailure>(&self.thread(), || {
                make(item, give);
                Ok(())
            })
        };
        let Some(pool) = &self.rayon else {
            let _attached = self.spans.as_ref().map(|spans| spans.attach(&self.thread()));
            return items.try_for_each(|item| {
                let mut taken = Ok(());
                let made = make(item, &mut |part| {
                    if taken.is_ok() {
                        taken = take(part);
                    }
                    taken.is_ok()
                });
                taken.and_then(|()| Ok(made?))
            });
        };
        pool.in_place_scope_fifo(|scope| {
            let begin = |item: T| -> Receiver<Result<R, ThreadFailure>> {
                let (parts, made) = bounded(MAX_PARTS);
                scope.spawn_fifo(move |_| {
                    if let Err(panicked) = make(item, &mut |part| parts.send(Ok(part)).is_ok()) {
                        // The receiver is gone after an error of `take`.
                        let _ = parts.send(Err(panicked));
                    }
                });
                made
            };
            let mut begun: VecDeque<_> = items.by_ref().take(ahead.max(1)).map(begin).collect();
            while let Some(next) = begun.pop_front() {
                next.into_iter().try_for_each(|part| take(part?))?;
                begun.extend(items.next().map(begin));
            }
            Ok(())
        })
    }

    /// The name of the calling thread.
    fn thread(&self) -> String {
        let number = self.rayon.as_ref().and_then(ThreadPool::current_thread_index).unwrap_or(0);
        format!("{}-{number}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use super::*;

    fn pool(threads: usize) -> Pool {
        Pool::new("test", threads, None)
    }

    #[test]
    fn results_are_in_the_order_of_the_items_and_the_first_error_is_returned() {
        for pool in [pool(1), pool(2), pool(7)] {
            let twice = pool.map(0..1000, |item| Ok::<_, io::Error>(item * 2)).unwrap();
            assert_eq!(twice, (0..1000).map(|item| item * 2).collect::<Vec<_>>());
            for first in [0, 1, 500, 999] {
                let failing = |item: u32| match item >= first {
                    true => Err(io::Error::other(item.to_string())),
                    false => Ok(()),
                };
                assert_eq!(pool.map(0..1000, failing).unwrap_err().to_string(), first.to_string());
            }
            assert_eq!(pool.map(0..0, Ok::<u32, ThreadFailure>), Ok(vec![]));
        }
    }

    #[test]
    fn a_panic_is_an_error_of_the_job_and_ends_it() {
        let pool = pool(3);
        let begun = AtomicUsize::new(0);
        let broken = |item: usize| {
            begun.fetch_add(1, Relaxed);
            match item {
                500 => panic!("at {item}"),
                // The panic takes a moment.
                501.. => std::thread::sleep(Duration::from_millis(1)),
                _ => {}
            }
            Ok::<_, ThreadFailure>(())
        };
        let failed = pool.map(0..100_000, broken).unwrap_err();
        assert!(failed.what().starts_with("the thread test-"), "{failed}");
        assert!(failed.what().ends_with(" panicked: at 500"), "{failed}");
        assert!(begun.into_inner() < 100_000);
        let failed = pool.in_order(0..1000, 4, |item| broken_at(item, 20), |made| made).unwrap_err();
        assert!(failed.what().ends_with(" panicked: at 20"), "{failed}");
    }

    fn broken_at(item: usize, at: usize) -> Result<(), ThreadFailure> {
        assert!(item != at, "at {item}");
        Ok(())
    }

    #[test]
    fn each_thread_makes_its_state_once_and_an_item_may_wait_for_the_one_before_it() {
        let (states, done, stop) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        let state = || Ok(states.fetch_add(1, Relaxed));
        let in_turn = |_: &mut usize, item: usize| {
            while done.load(Relaxed) < item {
                std::thread::yield_now();
            }
            done.store(item + 1, Relaxed);
            Ok::<_, ThreadFailure>(())
        };
        assert_eq!(pool(4).for_each(0..1000, &stop, state, in_turn), Ok(()));
        assert!(done.into_inner() == 1000 && (1..=4).contains(&states.into_inner()));
        let failed =
            pool(4).for_each(0..10, &stop, || Err::<(), _>(io::Error::other("no state")), |(), _| Ok(()));
        assert_eq!(failed.unwrap_err().to_string(), "no state");
    }

    #[test]
    fn values_are_taken_in_order_and_few_are_begun_before_they_are() {
        for threads in [1, 2, 7] {
            let (begun, mut taken) = (AtomicUsize::new(0), Vec::new());
            let make = |item: u64| {
                begun.fetch_add(1, Relaxed);
                std::thread::sleep(Duration::from_micros(item * 37 % 200));
                item * item
            };
            let take = |square| {
                assert!(begun.load(Relaxed) <= taken.len() + 3);
                taken.push(square);
                Ok::<_, ThreadFailure>(())
            };
            assert_eq!(pool(threads).in_order(0..100, 3, make, take), Ok(()));
            assert_eq!(taken, (0..100).map(|item| item * item).collect::<Vec<_>>());
        }
        for threads in [0, 1, 2, 7] {
            let mut taken = Vec::new();
            let make = |item: usize, give: &mut dyn FnMut(usize) -> bool| {
                assert!((0..item).all(|part| give(100 * item + part)) || item >= 20);
            };
            let take = |part| {
                if part == 2010 {
                    return Err(io::Error::other("full"));
                }
                taken.push(part);
                Ok(())
            };
            let failed = pool(threads).parts_in_order(0..100, 3, make, take).unwrap_err();
            assert_eq!((failed.to_string().as_str(), taken.len()), ("full", 200), "{threads}");
            assert!(taken.is_sorted() && taken.starts_with(&[100, 200, 201, 300]));
        }
        let take = |item| if item == 10 { Err(io::Error::other("full")) } else { Ok(()) };
        assert_eq!(pool(2).in_order(0.., 4, |item| item, take).unwrap_err().to_string(), "full");
    }
}
