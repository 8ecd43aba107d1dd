//! Sends a second request when the store is unusually late; the first of both answers counts.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};

/// How many of the last answers decide the usual time.
const ANSWERS: usize = 256;
/// Answers to collect before any request is sent twice.
const ENOUGH: usize = 64;
/// After how many answers the usual time is computed again.
const EVERY: usize = 16;
/// No request is sent twice before this: on a near store other causes are as likely.
const MIN: Duration = Duration::from_millis(50);
/// One request in this many may be sent twice, so that a slow store does not get twice the work.
const SHARE: u32 = 20;
/// How many second requests may be saved up.
const SAVED: u32 = 16;

/// How long a store usually takes until its answer begins, and how many requests may still be sent twice.
#[derive(Debug, Default)]
pub(super) struct Hedging(Mutex<Usual>);

#[derive(Debug, Default)]
struct Usual {
    last: Vec<Duration>,
    count: usize,
    /// After which time a second request is sent.
    patience: Option<Duration>,
    /// Requests since the credit last grew.
    requests: u32,
    credit: u32,
}

impl Usual {
    fn answered(&mut self, after: Duration) {
        match self.last.len() < ANSWERS {
            true => self.last.push(after),
            false => self.last[self.count % ANSWERS] = after,
        }
        self.count += 1;
        self.requests += 1;
        if self.requests == SHARE {
            self.requests = 0;
            self.credit = (self.credit + 1).min(SAVED);
        }
        if self.count >= ENOUGH && self.count.is_multiple_of(EVERY) {
            let mut sorted = self.last.clone();
            let at = sorted.len() * 19 / 20;
            let (_, most, _) = sorted.select_nth_unstable(at);
            self.patience = Some((*most * 2).max(MIN));
        }
    }

    fn spend(&mut self) -> bool {
        let may = self.credit > 0;
        self.credit = self.credit.saturating_sub(1);
        may
    }
}

impl Hedging {
    /// Sends a request, and once more if no answer begins within twice the time in which 95 % of the last ones began.
    /// If one of the two fails, the other one decides.
    pub(super) async fn first<T, E, Work>(&self, request: impl Fn() -> Work) -> Result<T, E>
    where
        Work: Future<Output = Result<T, E>>,
    {
        let began = Instant::now();
        let mut one = pin!(request());
        let patience = self.usual().patience;
        let late = async {
            match patience {
                Some(patience) => tokio::time::sleep(patience).await,
                None => std::future::pending().await,
            }
        };
        let result = match select(&mut one, pin!(late)).await {
            Either::Left((result, _)) => result,
            Either::Right(_) if self.usual().spend() => match select(one, pin!(request())).await {
                Either::Left((Err(_), other)) => other.await,
                Either::Right((Err(_), other)) => other.await,
                Either::Left((result, _)) | Either::Right((result, _)) => result,
            },
            Either::Right(_) => one.await,
        };
        if result.is_ok() {
            self.usual().answered(began.elapsed());
        }
        result
    }

    fn usual(&self) -> MutexGuard<'_, Usual> {
        // A panic cannot leave it half-changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    /// A store with a known usual time to an answer.
    fn usual(time: Duration) -> Hedging {
        let hedging = Hedging::default();
        (0..ENOUGH).for_each(|_| hedging.usual().answered(time));
        hedging
    }

    /// The results of requests that are sent at once, and how many were sent in all.
    fn ask<T: Send + 'static>(
        hedging: Hedging,
        requests: usize,
        answer: impl Fn(usize) -> (u64, Result<T, ()>) + Send + Sync + 'static,
    ) -> (Vec<Result<T, ()>>, usize) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build();
        let runtime = runtime.unwrap();
        let all = std::sync::Arc::new((hedging, AtomicUsize::new(0), answer));
        let asked: Vec<_> = (0..requests)
            .map(|_| {
                let all = std::sync::Arc::clone(&all);
                runtime.spawn(async move {
                    let request = || async {
                        let (millis, result) = (all.2)(all.1.fetch_add(1, Relaxed));
                        tokio::time::sleep(Duration::from_millis(millis)).await;
                        result
                    };
                    all.0.first(request).await
                })
            })
            .collect();
        let results = asked.into_iter().map(|one| runtime.block_on(one).unwrap()).collect();
        (results, all.1.load(Relaxed))
    }

    #[test]
    fn a_late_answer_is_overtaken_by_that_of_a_second_request() {
        let answer = |number| (if number == 0 { 60_000 } else { 20 }, Ok(number));
        assert_eq!(ask(usual(Duration::from_millis(20)), 1, answer), (vec![Ok(1)], 2));
    }

    #[test]
    fn a_store_that_has_become_slow_gets_few_requests_twice() {
        let (results, sent) = ask(usual(Duration::from_millis(1)), 200, |_| (400, Ok(())));
        assert_eq!(results.len(), 200);
        assert!((201..=203).contains(&sent), "{sent}");
    }

    #[test]
    fn if_one_of_two_requests_fails_the_other_one_decides() {
        let answer = |number| if number == 0 { (300, Ok("whole")) } else { (1, Err(())) };
        assert_eq!(ask(usual(Duration::from_millis(1)), 1, answer), (vec![Ok("whole")], 2));
    }
}
