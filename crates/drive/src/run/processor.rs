//! How long a thread waited for a processor, as Linux counts it: other threads had them, or the quota was used up.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;

/// Three numbers of the present thread: nanoseconds of running, nanoseconds of waiting for a processor, and how often
/// it ran.
const COUNTS: &str = "/proc/thread-self/schedstat";
/// Threads of a process that keep this file open. More would take what sockets need.
const MAX_OPEN: usize = 200;
/// An operation begins with counts that were read at most so many nanoseconds before.
const RECENT: u64 = 100_000;

/// The waiting of one thread; none where the system does not count it.
#[derive(Debug)]
pub(crate) struct Processor {
    is_counted: bool,
    file: Option<File>,
    /// How long the thread had waited when it was looked at, and when that was.
    waited: u64,
    looked: u64,
}

impl Processor {
    /// For the present thread, which is one of so many.
    pub(crate) fn new(threads: usize) -> Self {
        let file = File::open(COUNTS).ok();
        let is_counted = file.is_some();
        let mut new = Self { is_counted, file: file.filter(|_| threads <= MAX_OPEN), waited: 0, looked: 0 };
        new.look(0);
        new
    }

    /// An operation begins now.
    pub(crate) fn begin(&mut self, now: u64) {
        if now.saturating_sub(self.looked) > RECENT {
            self.look(now);
        }
    }

    /// How long the thread has waited since the operation began.
    pub(crate) fn waited(&mut self, now: u64) -> u64 {
        let before = self.waited;
        self.look(now);
        self.waited - before
    }

    fn look(&mut self, now: u64) {
        if let Some(count) = self.count() {
            (self.waited, self.looked) = (count.max(self.waited), now);
        }
    }

    fn count(&self) -> Option<u64> {
        let mut text = [0; 64];
        let length = match &self.file {
            Some(file) => file.read_at(&mut text, 0),
            None if self.is_counted => File::open(COUNTS).and_then(|mut file| file.read(&mut text)),
            None => return None,
        };
        let text = std::str::from_utf8(text.get(..length.ok()?)?).ok()?;
        text.split(' ').nth(1)?.parse().ok()
    }
}
