//! Work on each column separately, on all processors.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, available_parallelism, scope};

/// The most threads: each holds the numbers of a column or two.
const MAX_THREADS: usize = 8;

/// The result of `work` for each of `n` columns.
pub(crate) fn by_column<T: Send>(n: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = available_parallelism().map_or(1, usize::from).min(MAX_THREADS).min(n);
    let next = AtomicUsize::new(0);
    let take = || {
        let one = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|column| *column < n);
        std::iter::from_fn(one).map(|column| (column, work(column))).collect::<Vec<_>>()
    };
    let mut done = scope(|scope| {
        // Where no thread can be started, this one does the work of all.
        let others = (1..threads).filter_map(|_| Builder::new().spawn_scoped(scope, take).ok());
        let others: Vec<_> = others.collect();
        let mut done = take();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(column, _)| *column);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_columns() {
        assert_eq!(by_column(100, |column| column * column), (0..100).map(|i| i * i).collect::<Vec<_>>());
        assert!(by_column(0, |column| column).is_empty());
    }
}
