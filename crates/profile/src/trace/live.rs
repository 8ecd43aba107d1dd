//! The current activity of attached threads, for observers while they run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::trace::wait::WaitKind;

/// The state of an attached thread at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveThread {
    /// The name it was attached with.
    pub name: String,
    /// The reason of its wait; `None` while it works.
    pub waiting: Option<WaitKind>,
    /// Rows counted so far by its closed outermost spans.
    pub rows: u64,
    /// Bytes counted so far by those spans.
    pub bytes: u64,
}

/// The state that a thread publishes. Read without a lock; its values are of about the same moment.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    attached: AtomicU32,
    /// One more than the wait's index in [`WaitKind::ALL`]; 0 if it does not wait.
    waiting: AtomicU8,
    rows: AtomicU64,
    bytes: AtomicU64,
}

/// The threads of a phase by name.
#[derive(Debug, Default)]
pub(crate) struct ShownThreads(Vec<(String, Arc<Shown>)>);

impl ShownThreads {
    /// The published state of a thread with this name; a shared one if there are already `most` others.
    pub(crate) fn attach(&mut self, name: &str, most: usize) -> Arc<Shown> {
        let shown = match self.0.iter().find(|(have, _)| have == name) {
            Some((_, shown)) => Arc::clone(shown),
            None => {
                let shown = Arc::new(Shown::default());
                if self.0.len() < most {
                    self.0.push((name.to_owned(), Arc::clone(&shown)));
                }
                shown
            }
        };
        shown.attached.fetch_add(1, Relaxed);
        shown
    }

    /// The currently attached threads, in order of first attachment.
    pub(crate) fn now(&self) -> Vec<LiveThread> {
        let attached = self.0.iter().filter(|(_, shown)| shown.attached.load(Relaxed) > 0);
        let live = attached.map(|(name, shown)| LiveThread {
            name: name.clone(),
            waiting: usize::from(shown.waiting.load(Relaxed))
                .checked_sub(1)
                .and_then(|place| WaitKind::ALL.get(place).copied()),
            rows: shown.rows.load(Relaxed),
            bytes: shown.bytes.load(Relaxed),
        });
        live.collect()
    }
}

impl Shown {
    pub(crate) fn begin_wait(&self, kind: WaitKind) {
        let place = WaitKind::ALL.iter().position(|one| *one == kind).map_or(0, |place| place + 1);
        self.waiting.store(place as u8, Relaxed);
    }

    pub(crate) fn end_wait(&self) {
        self.waiting.store(0, Relaxed);
    }

    pub(crate) fn count(&self, rows: u64, bytes: u64) {
        if rows > 0 {
            self.rows.fetch_add(rows, Relaxed);
        }
        if bytes > 0 {
            self.bytes.fetch_add(bytes, Relaxed);
        }
    }

    pub(crate) fn detach(&self) {
        self.end_wait();
        self.attached.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use crate::Profile;
    use crate::WaitKind;
    use crate::wait;

    #[test]
    fn an_attached_thread_shows_what_it_waits_for_and_what_it_has_counted() {
        let phase = Profile::new().phase("work");
        assert_eq!(phase.live(), []);
        let attached = phase.attach("sender 1");
        {
            let sending = wait(WaitKind::Network);
            sending.add_rows(5);
            sending.add_bytes(70);
            assert_eq!(phase.live()[0].waiting, Some(WaitKind::Network));
        }
        let live = phase.live();
        assert_eq!(
            (live[0].name.as_str(), live[0].waiting, live[0].rows, live[0].bytes),
            ("sender 1", None, 5, 70)
        );
        {
            let _outer = wait(WaitKind::Network);
            drop(wait(WaitKind::Lock));
            assert_eq!(phase.live()[0].waiting, Some(WaitKind::Network), "back in the outer wait");
        }
        drop(attached);
        assert_eq!(phase.live(), []);
        let _again = phase.attach("sender 1");
        assert_eq!(phase.live()[0].rows, 5, "a name keeps counting");
    }
}
