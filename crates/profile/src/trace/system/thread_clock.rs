//! The CPU time of one thread, cheap enough to read at every span.
//!
//! `CLOCK_THREAD_CPUTIME_ID` is a system call: 296 ns, compared with 38 ns for the monotonic clock (Xeon,
//! KVM, Linux 6.18; `getrusage(RUSAGE_THREAD)` takes 250 ns and counts in ticks on some kernels). Twice per
//! span, it would cost more than everything else. So it is read at most once per [`REFRESH`]; in between, the
//! thread is assumed to have run all the time. The error is at most that much at each edge of a span, and
//! after a longer sleep the clock is read again.

use std::time::Instant;

/// How long, in ns, the wall clock extrapolates a reading of the CPU clock. At 0.3 µs per reading, this
/// bounds the cost to 0.6 % of a thread's time.
pub(crate) const REFRESH: u64 = 50_000;

/// A thread's wall and CPU clocks. All times are plain numbers of ns because they are taken at every span;
/// the wall clock starts with this struct.
#[derive(Debug)]
pub(crate) struct ThreadClock {
    base: Instant,
    read_at: u64,
    cpu: u64,
    /// The last result: results never run backwards.
    given: u64,
}

impl ThreadClock {
    /// Starts the calling thread's clock; only this thread may use it.
    pub(crate) fn start() -> Self {
        let cpu = thread_cpu_time();
        Self { base: Instant::now(), read_at: 0, cpu, given: cpu }
    }

    /// The current wall time.
    #[inline]
    pub(crate) fn wall(&self) -> u64 {
        let elapsed = self.base.elapsed();
        // Enough for 584 years.
        elapsed.as_secs().wrapping_mul(1_000_000_000).wrapping_add(u64::from(elapsed.subsec_nanos()))
    }

    /// CPU time of this thread at the wall time `now`, which was just read.
    #[inline]
    pub(crate) fn cpu_at(&mut self, now: u64) -> u64 {
        let since = now.saturating_sub(self.read_at);
        if since > REFRESH {
            return self.exact_cpu_at(now);
        }
        self.given = self.given.max(self.cpu + since);
        self.given
    }

    /// CPU time of this thread at the wall time `now`, read from the system.
    pub(crate) fn exact_cpu_at(&mut self, now: u64) -> u64 {
        self.cpu = thread_cpu_time();
        self.read_at = now;
        self.given = self.given.max(self.cpu);
        self.given
    }
}

/// Time in ns that the calling thread was ready to run but did not get a processor; `None` if the system does
/// not report it. Takes some microseconds: use it at the edges of an attachment, not of a span.
pub(crate) fn thread_ready_time() -> Option<u64> {
    #[cfg(target_os = "linux")]
    return crate::trace::system::proc_text::ready_time("/proc/thread-self/schedstat")
        .map(|time| time.as_nanos() as u64);
    #[cfg(not(target_os = "linux"))]
    return None;
}

/// CPU time in ns that the calling thread has used, user plus system; zero if the system does not report it.
pub(crate) fn thread_cpu_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to during the call.
    let answer = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    if answer != 0 {
        return 0;
    }
    time.tv_sec.max(0) as u64 * 1_000_000_000 + time.tv_nsec.max(0) as u64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_sleeping_thread_uses_no_cpu_time_and_a_busy_one_does() {
        let mut clock = ThreadClock::start();
        let before = clock.cpu_at(clock.wall());
        std::thread::sleep(Duration::from_millis(30));
        let slept = clock.cpu_at(clock.wall()) - before;
        assert!(slept < 10_000_000, "{slept}");

        let mut sum = 0u64;
        let busy_since = clock.exact_cpu_at(clock.wall());
        while clock.cpu_at(clock.wall()) - busy_since < 5_000_000 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        let real = thread_cpu_time();
        assert!(clock.given <= real + REFRESH, "{} {real}", clock.given);
    }

    #[test]
    fn the_clock_never_runs_backwards() {
        let mut clock = ThreadClock::start();
        let mut last = 0;
        for _ in 0..10_000 {
            let next = clock.cpu_at(clock.wall());
            assert!(next >= last);
            last = next;
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_sleeping_thread_is_not_ready_but_one_of_too_many_busy_ones_is() {
        let Some(before) = thread_ready_time() else {
            println!("skipped: this kernel does not count ready time");
            return;
        };
        let (began, asleep) = (Instant::now(), Duration::from_millis(200));
        std::thread::sleep(asleep);
        let slept = thread_ready_time().unwrap() - before;
        // On a busy machine it waits for a processor when it wakes.
        let late = (began.elapsed() - asleep).as_nanos() as u64;
        assert!(slept < 100_000_000 + late, "{slept} ns of {late}");
        let many = 3 * std::thread::available_parallelism().unwrap().get();
        let busy = || {
            let (before, until) = (thread_ready_time().unwrap(), Instant::now() + Duration::from_millis(300));
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            thread_ready_time().unwrap() - before
        };
        let waited: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..many).map(|_| scope.spawn(busy)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(waited > 300_000_000, "{waited} ns of {many} threads");
    }
}
