//! Work on each column separately, on all processors.

use std::panic::resume_unwind;

use sawmill_profile::Pool;

use crate::error::Result;

/// The result of `work` for each of `n` columns.
pub(crate) fn by_column<T: Send>(n: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let done: Result<Vec<T>> = Pool::on_cores("infer", n, None).map(0..n, |column| Ok(work(column)));
    done.unwrap_or_else(|panic| resume_unwind(Box::new(panic.to_string())))
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
