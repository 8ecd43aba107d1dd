//! The CPU time of one thread, cheap enough to ask at every span.
//!
//! `CLOCK_THREAD_CPUTIME_ID` is a system call: 296 ns where the monotonic clock takes 38 ns
//! (Xeon, KVM, Linux 6.18; `getrusage(RUSAGE_THREAD)` takes 250 ns and counts in ticks on some
//! kernels). Asked twice a span it would cost more than everything else. So it is asked at most
//! once in [`REFRESH`], and in between the thread is taken to have run all the time. That is wrong
//! by at most [`REFRESH`] at each edge of a span, and a thread that slept for longer is read anew.

use std::time::{Duration, Instant};

/// How long a reading of the CPU clock is carried on by the wall clock. At 0.3 µs a reading this
/// bounds its cost to 0.6 % of a thread's time.
pub(crate) const REFRESH: Duration = Duration::from_micros(50);

/// A thread's CPU clock with its last reading.
#[derive(Debug)]
pub(crate) struct ThreadClock {
    read_at: Instant,
    cpu: Duration,
    /// The last answer: answers never run backwards.
    given: Duration,
}

impl ThreadClock {
    /// Reads the calling thread's clock; to be asked from this thread alone.
    pub(crate) fn start(now: Instant) -> Self {
        let cpu = thread_cpu_time();
        Self { read_at: now, cpu, given: cpu }
    }

    /// CPU time of this thread at `now`, a moment that has just been read.
    pub(crate) fn at(&mut self, now: Instant) -> Duration {
        let mut since = now.saturating_duration_since(self.read_at);
        if since > REFRESH {
            self.cpu = thread_cpu_time();
            self.read_at = now;
            since = Duration::ZERO;
        }
        self.given = self.given.max(self.cpu + since);
        self.given
    }

    /// CPU time of this thread at `now`, read from the system.
    pub(crate) fn exactly_at(&mut self, now: Instant) -> Duration {
        self.cpu = thread_cpu_time();
        self.read_at = now;
        self.given = self.given.max(self.cpu);
        self.given
    }
}

/// CPU time that the calling thread has used, user and system; zero where the system does not tell.
#[cfg(unix)]
fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to for the length of the call.
    let answer = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    if answer != 0 {
        return Duration::ZERO;
    }
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.clamp(0, 999_999_999) as u32)
}

#[cfg(not(unix))]
fn thread_cpu_time() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeping_thread_uses_no_cpu_time_and_a_busy_one_does() {
        let start = Instant::now();
        let mut clock = ThreadClock::start(start);
        let before = clock.at(start);
        std::thread::sleep(Duration::from_millis(30));
        let slept = clock.at(Instant::now()) - before;
        assert!(slept < Duration::from_millis(10), "{slept:?}");

        let mut sum = 0u64;
        let busy_since = clock.exactly_at(Instant::now());
        while clock.at(Instant::now()) - busy_since < Duration::from_millis(5) {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        let real = thread_cpu_time();
        assert!(clock.given <= real + REFRESH, "{:?} {real:?}", clock.given);
    }

    #[test]
    fn the_clock_never_runs_backwards() {
        let mut clock = ThreadClock::start(Instant::now());
        let mut last = Duration::ZERO;
        for _ in 0..10_000 {
            let next = clock.at(Instant::now());
            assert!(next >= last);
            last = next;
        }
    }
}
